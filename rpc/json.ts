/** Checks of untrusted JSON: its depth, and numbers that change on their way. */

/**
 * Whether a value nests deeper than `levels`. Check it before any recursive walk: deep nesting
 * overflows the stack.
 */
export const exceedsDepth = (value: unknown, levels: number): boolean =>
  typeof value === "object" &&
  value !== null &&
  (levels === 0 || Object.values(value).some((member) => exceedsDepth(member, levels - 1)))

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
