/** Text that people write: names, reasons, notes, appeals. */
import { DateTime, Option, Schema, SchemaTransformation } from "effect"

/** A time in a response. */
export const Timestamp = Schema.String.annotate({
  identifier: "Timestamp",
  description: "A time in ISO 8601, in UTC.",
  format: "date-time",
  examples: ["2026-11-20T09:30:00.000Z"]
})

/** Whether a text is a day of the calendar, like `2026-11-20`. */
export const isDay = (text: string): boolean =>
  Option.exists(
    DateTime.make(`${text}T00:00:00Z`),
    (time) => DateTime.formatIsoDateUtc(time) === text
  )

/** Line breaks and tabs. */
const layout = /[\t\n\r\u2028\u2029]/gu

/** Line breaks that are no control characters: the line and the paragraph separator. */
const separators = /[\u2028\u2029]/gu

/** Marks that have no character before them to sit on. */
const leadingMarks = /^\p{M}+/u

const controlCharacters = /\p{Cc}/u

/** Characters that reorder the text around them, so that a text could rewrite its neighbours. */
const bidiControls = /\p{Bidi_Control}/u

/** A character that shows something by itself: U+2800 is a blank Braille pattern. */
const visible = /[^\p{White_Space}\p{Default_Ignorable_Code_Point}\p{C}\p{M}\u2800]/u

/** Whether Postgres can store a text, also as JSON: no NUL, no lone surrogate. */
export const isStorable = (text: string): boolean => text.isWellFormed() && !text.includes("\u0000")

/** Returns why a text cannot be shown on one line, or undefined. */
export const lineIssue = (text: string): string | undefined => {
  if (!text.isWellFormed()) return "Expected no lone surrogates"
  if (!visible.test(text)) return "Expected at least one visible character"
  if (controlCharacters.test(text)) return "Expected no control characters"
  if (text.search(separators) >= 0) return "Expected no line separators"
  return bidiControls.test(text) ? "Expected no bidirectional control characters" : undefined
}

/** Returns why a text cannot be shown on several lines, or undefined. */
export const linesIssue = (text: string): string | undefined => lineIssue(text.replace(layout, " "))

/**
 * A text of several lines and up to `maxCharacters`. It shows at least one character, and has no control
 * characters but line breaks and tabs, no bidirectional controls and no lone surrogates. It decodes to its
 * composed form (NFC).
 */
export const textUpTo = (maxCharacters: number) => {
  const Text = Schema.String.check(
    Schema.isMaxLength(maxCharacters),
    Schema.makeFilter((text: string) => linesIssue(text))
  )
  return Text.pipe(
    Schema.decodeTo(
      Text,
      SchemaTransformation.transform({
        decode: (text) => text.normalize("NFC"),
        encode: (text) => text
      })
    )
  )
}

/** The stored form of a name. */
export const normalizeName = (text: string): string => text.normalize("NFC").trim()

/** Returns why a text cannot be a name of up to `maxCharacters` code points, or undefined. */
const nameIssue = (text: string, maxCharacters: number): string | undefined => {
  const name = normalizeName(text)
  if ([...name].length > maxCharacters) return `Expected at most ${maxCharacters} characters`
  if (leadingMarks.test(name)) return "Expected no combining mark at the start"
  return lineIssue(name)
}

/**
 * A name of 1 to `maxCharacters` code points after NFC normalization and trimming. It shows at least
 * one character, starts with no combining mark, and has no line separators, control characters,
 * bidirectional controls or lone surrogates.
 */
export const nameUpTo = (maxCharacters: number) =>
  Schema.String.check(Schema.makeFilter((text: string) => nameIssue(text, maxCharacters)))

/** Converts a foreign text to a name: drops what names may not contain, and cuts it. */
export const nameFrom = (text: string, maxCharacters: number): string | undefined => {
  const clean = text
    .toWellFormed()
    .replace(new RegExp(controlCharacters, "gu"), " ")
    .replace(separators, " ")
    .replace(new RegExp(bidiControls, "gu"), "")
    .trim()
    .replace(leadingMarks, "")
  const cut = normalizeName([...normalizeName(clean)].slice(0, maxCharacters).join(""))
  return nameIssue(cut, maxCharacters) === undefined ? cut : undefined
}
