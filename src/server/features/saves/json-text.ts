/**
 * Extracts a member's value from a JSON text without re-encoding it. Numbers, key order and escapes of
 * a save stay exactly as the client sent them. It removes only white space between tokens. The caller
 * must pass valid JSON whose root is an object.
 */

/** Text of a JSON value. */
export interface JsonText {
  readonly text: string
  /** Levels of objects and lists: 0 for a scalar. */
  readonly depth: number
}

const code = { quote: 34, backslash: 92, comma: 44, colon: 58, space: 32 } as const
const opening: ReadonlySet<number> = new Set([91, 123])
const closing: ReadonlySet<number> = new Set([93, 125])

/** Returns the index after the string literal that begins at `start`. */
const stringEnd = (text: string, start: number): number => {
  for (let at = text.indexOf('"', start + 1); ; at = text.indexOf('"', at + 1)) {
    let escapes = 0
    while (text.charCodeAt(at - 1 - escapes) === code.backslash) escapes += 1
    if (escapes % 2 === 0) return at + 1
  }
}

const skipSpace = (text: string, start: number): number => {
  let at = start
  while (text.charCodeAt(at) <= code.space) at += 1
  return at
}

/** Reads the value that begins at `start`; `end` is the index after it. */
const readValue = (text: string, start: number): JsonText & { readonly end: number } => {
  let compact = ""
  let from = start
  let at = start
  let level = 0
  let depth = 0
  for (; at < text.length; at += 1) {
    const char = text.charCodeAt(at)
    if (char === code.quote) at = stringEnd(text, at) - 1
    else if (opening.has(char)) depth = Math.max(depth, (level += 1))
    else if (closing.has(char)) {
      if (level === 0) break
      level -= 1
    } else if (char === code.comma && level === 0) break
    else if (char <= code.space) {
      compact += text.slice(from, at)
      at = skipSpace(text, at) - 1
      from = at + 1
    }
  }
  return { text: compact + text.slice(from, at), depth, end: at }
}

/** Returns a member of the root object; the last one if the name occurs several times. */
export const memberText = (text: string, name: string): JsonText | undefined => {
  let found: JsonText | undefined
  let at = skipSpace(text, text.indexOf("{") + 1)
  while (text.charCodeAt(at) === code.quote) {
    const nameEnd = stringEnd(text, at)
    const isNamed = JSON.parse(text.slice(at, nameEnd)) === name
    const colon = skipSpace(text, nameEnd)
    const value = readValue(text, skipSpace(text, colon + 1))
    if (isNamed) found = value
    // A comma is followed by another member; the closing brace is not.
    at = skipSpace(text, value.end + 1)
  }
  return found
}
