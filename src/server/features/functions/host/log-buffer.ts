/**
 * Buffer of the lines that a function writes. It drops and counts lines beyond the rate limit per
 * second, so that a function that writes endlessly cannot fill the log or delay others.
 */
import { Option, Schema } from "effect"
import { functionRuntime as limits } from "#rpc/functions/runtime-limits"
import type { FunctionLogLine } from "../control-plane.ts"

/** Log line of workerd. Lines with a source are workerd's own and name its internals. */
const Line = Schema.Struct({
  level: Schema.String,
  message: Schema.String,
  source: Schema.optionalKey(Schema.String)
})
const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Line))

/** Start of a line that exceeded the length limit. */
const cutForm = /^\{"timestamp":\d+,"level":"(\w+)","message":"(.*)$/s
const escapeMaxCharacters = 6

/** Decodes the start of a JSON string, which may end within an escape. */
const unescape = (text: string): string => {
  for (let cut = 0; cut < escapeMaxCharacters; cut += 1) {
    try {
      return String(JSON.parse(`"${text.slice(0, text.length - cut)}"`))
    } catch {
      // Cut one more character.
    }
  }
  return ""
}

const parse = (text: string): typeof Line.Type | undefined => {
  const line = Option.getOrUndefined(decode(text))
  if (line !== undefined) return line
  const [, level, message] = cutForm.exec(text) ?? []
  return level === undefined || message === undefined
    ? undefined
    : { level, message: unescape(message) }
}

const levels: Readonly<Record<string, FunctionLogLine["level"]>> = {
  debug: "debug",
  trace: "debug",
  warn: "warn",
  error: "error",
  assert: "error"
}

const second = 1000

export class LogBuffer {
  #lines: Array<FunctionLogLine> = []
  #windowAt = 0
  #written = 0
  #dropped = 0

  get isEmpty(): boolean {
    return this.#lines.length === 0 && this.#dropped === 0
  }

  /** Adds a line of output if the function wrote it. */
  add(text: string, version: number, now: number): void {
    const line = parse(text)
    if (line === undefined || line.source !== undefined) return
    this.write({ at: now, level: levels[line.level] ?? "info", message: line.message, version })
  }

  /** Adds a line of the runtime. */
  write(line: FunctionLogLine): void {
    if (line.at - this.#windowAt >= second) {
      this.#windowAt = line.at
      this.#written = 0
    }
    this.#written += 1
    const isFull = this.#lines.length >= limits.logLinesWaiting
    if (isFull || this.#written > limits.logLinesPerSecond) this.#dropped += 1
    else this.#lines.push({ ...line, message: line.message.slice(0, limits.logLineBytes) })
  }

  /** Takes the lines, and appends one with the number of dropped lines. */
  take(version: number, now: number): ReadonlyArray<FunctionLogLine> {
    const taken = this.#lines
    if (this.#dropped > 0) {
      const message = `${this.#dropped} more lines were dropped: ${limits.logLinesPerSecond} a second are kept.`
      taken.push({ at: now, level: "warn", message, version })
    }
    this.#lines = []
    this.#dropped = 0
    return taken
  }
}
