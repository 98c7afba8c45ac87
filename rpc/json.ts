/** JSON that players send: its schemas, its depth, and numbers that change on their way. */
import { Schema } from "effect"
import { isStorable } from "./text.ts"

const objectDepthMax = 32

/** Levels of a message's `data`: what nests deeper overflows the stack that writes it. */
export const dataDepthMax = 64

/**
 * Whether a value nests deeper than `levels`. Check it before any recursive walk: deep nesting
 * overflows the stack.
 */
export const exceedsDepth = (value: unknown, levels: number): boolean =>
  typeof value === "object" &&
  value !== null &&
  (levels === 0 || Object.values(value).some((member) => exceedsDepth(member, levels - 1)))

const prototypeKeys: ReadonlySet<string> = new Set(["__proto__", "constructor", "prototype"])

/** Whether a key could reach an object's prototype. */
export const isPrototypeKey = (key: string): boolean => prototypeKeys.has(key)

/** Returns why a JSON value cannot be stored, with its path, or undefined. */
const firstProblem = (value: unknown, path: ReadonlyArray<string>): string | undefined => {
  if (typeof value === "number" && !Number.isFinite(value)) {
    return `The number at ${path.join(".")} is too large`
  }
  if (typeof value === "string" && !isStorable(value)) {
    return `The text at ${path.join(".")} must not have NUL characters or lone surrogates`
  }
  if (typeof value !== "object" || value === null) return undefined
  if (path.length > objectDepthMax) return `Expected at most ${objectDepthMax} levels`
  for (const [key, member] of Object.entries(value)) {
    if (!isStorable(key)) return "Keys must not have NUL characters or lone surrogates"
    if (isPrototypeKey(key)) return `The key ${[...path, key].join(".")} is not allowed`
    const inner = firstProblem(member, [...path, key])
    if (inner !== undefined) return inner
  }
  return undefined
}

/**
 * JSON object that a client sends or receives. The schema refuses keys that could reach an object's
 * prototype at any depth, texts that Postgres cannot read as JSON, and nesting beyond 32 levels.
 */
export const JsonObject = Schema.Record(Schema.String, Schema.Unknown).check(
  Schema.makeFilter((members) => firstProblem(members, []))
)
export type JsonObject = typeof JsonObject.Type

/** A JSON object that a runner has accepted: a newer release with stricter rules reads it, too. */
export const AcceptedJsonObject = Schema.Record(Schema.String, Schema.Unknown)

/** JSON value of at most 64 levels. Deeper nesting would overflow the stack of the encoder. */
export const MessageData = Schema.Unknown.check(
  Schema.makeFilter((data) =>
    exceedsDepth(data, dataDepthMax) ? `Expected at most ${dataDepthMax} levels` : undefined
  )
)

/** Remedy for a number that changes. */
export const numberRule =
  "Expected a number that JSON carries unchanged: send a longer integer as a string"

const quote = 0x22
const backslash = 0x5c
const point = 0x2e
const plus = 0x2b
const lowerE = 0x65

const isDigit = (code: number): boolean => code >= 0x30 && code <= 0x39

/** The index of the quote that ends a string, or the length of a text that does not end it. */
const endOfString = (text: string, start: number): number => {
  let end = text.indexOf('"', start + 1)
  while (end > 0 && text.charCodeAt(end - 1) === backslash) {
    let before = end - 1
    while (text.charCodeAt(before - 1) === backslash) before -= 1
    if ((end - before) % 2 === 0) return end
    end = text.indexOf('"', end + 1)
  }
  return end < 0 ? text.length : end
}

/**
 * Whether a text has, outside of its strings, 16 digits in a row before a point, or an exponent that is not
 * negative. Only such a number can change, and few texts have one. Every frame passes here: a regular
 * expression takes as long as `JSON.parse`.
 */
const isSuspect = (text: string): boolean => {
  let digits = 0
  let isFraction = false
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (isDigit(code)) {
      digits += 1
      if (digits === 16 && !isFraction) return true
      continue
    }
    if (digits > 0 && (code | 0x20) === lowerE) {
      const next = text.charCodeAt(at + 1)
      if (isDigit(next) || next === plus) return true
    }
    isFraction = code === point
    digits = 0
    if (code === quote) at = endOfString(text, at)
  }
  return false
}

/** The digits of a number that count: without sign, point, exponent, and zeros at the ends. */
const significantDigits = (number: string): string =>
  number
    .replace(/[eE].*$/, "")
    .replace(/\D/g, "")
    .replace(/^0+|0+$/g, "")

/** Whether a number is not finite, or an integer beyond the safe ones that gets other digits. */
const changes = (number: string): boolean => {
  const value = Number(number)
  if (!Number.isFinite(value)) return true
  if (Math.abs(value) <= Number.MAX_SAFE_INTEGER) return false
  return significantDigits(number) !== significantDigits(String(value))
}

/** A string, closed or not, a number, or a sign. Each character is read once, also in a text that is not JSON. */
const token = /"[^"\\]*(?:\\[^]?[^"\\]*)*(?:"|$)|-?\d[\d.eE+-]*|[[\]{},]/g

/** The name of a member; a text that is not JSON is refused elsewhere. */
const nameOf = (quoted: string): string => {
  try {
    return String(JSON.parse(quoted))
  } catch {
    return quoted
  }
}

/** The part of a JSON value that is being read. */
interface Level {
  readonly isArray: boolean
  /** The member that is being read. */
  key: string
  index: number
  /** Whether the next text is the name of a member. */
  expectsKey: boolean
}

/**
 * The path of the first number of a JSON text that does not reach the other side unchanged, like `data.n`
 * or `data.0`; undefined if all do. Of a text that is not JSON it says nothing.
 */
export const changedNumberOf = (text: string): string | undefined =>
  isSuspect(text) ? findChangedNumber(text) : undefined

const findChangedNumber = (text: string): string | undefined => {
  const levels: Array<Level> = []
  for (const [part] of text.matchAll(token)) {
    const level = levels.at(-1)
    if (part === "{" || part === "[") {
      levels.push({ isArray: part === "[", key: "", index: 0, expectsKey: part === "{" })
    } else if (part === "}" || part === "]") {
      levels.pop()
    } else if (part === ",") {
      if (level === undefined) continue
      level.index += 1
      level.expectsKey = !level.isArray
    } else if (part.startsWith('"')) {
      if (level?.expectsKey !== true) continue
      level.key = nameOf(part)
      level.expectsKey = false
    } else if (changes(part)) {
      return levels.map(({ index, isArray, key }) => (isArray ? String(index) : key)).join(".")
    }
  }
  return undefined
}
