/** Text that people write: names, reasons, notes, appeals. */
import { Schema } from "effect"

/** Any text of up to `maxCharacters` that Postgres can store: no NUL, no lone surrogate. */
export const textUpTo = (maxCharacters: number) =>
  Schema.String.check(
    Schema.isMaxLength(maxCharacters),
    Schema.makeFilter((text) => {
      if (!text.isWellFormed()) return "Expected text without lone surrogates"
      return text.includes("\u0000") ? "Expected text without NUL characters" : undefined
    })
  )

const controlCharacters = /\p{Cc}/u

/** These reorder the text around a name, so that a name could rewrite its neighbours. */
const bidiControls = /\p{Bidi_Control}/u

/** A character that shows something: U+2800 is a blank Braille pattern. */
const visible = /[^\p{White_Space}\p{Default_Ignorable_Code_Point}\p{C}\u2800]/u

/** The stored form of a name. */
export const normalizeName = (text: string): string => text.normalize("NFC").trim()

/** Returns why a text cannot be a name of up to `maxCharacters` code points, or undefined. */
const nameIssue = (text: string, maxCharacters: number): string | undefined => {
  if (!text.isWellFormed()) return "Expected text without lone surrogates"
  const name = normalizeName(text)
  if (!visible.test(name)) return "Expected a name that is not blank"
  if ([...name].length > maxCharacters) return `Expected at most ${maxCharacters} characters`
  if (controlCharacters.test(name)) return "Expected no control characters"
  return bidiControls.test(name) ? "Expected no bidirectional control characters" : undefined
}

/**
 * A name of 1 to `maxCharacters` code points after NFC normalization and trimming. It shows at least
 * one character, and has no control characters, bidirectional controls or lone surrogates.
 */
export const nameUpTo = (maxCharacters: number) =>
  Schema.String.check(Schema.makeFilter((text: string) => nameIssue(text, maxCharacters)))

/** Turns a foreign text into a name: drops what names may not contain, and cuts it. */
export const nameFrom = (text: string, maxCharacters: number): string | undefined => {
  const clean = text
    .toWellFormed()
    .replace(new RegExp(controlCharacters, "gu"), " ")
    .replace(new RegExp(bidiControls, "gu"), "")
  const cut = normalizeName([...normalizeName(clean)].slice(0, maxCharacters).join(""))
  return nameIssue(cut, maxCharacters) === undefined ? cut : undefined
}
