/** What people write in their own words. */
import { Schema } from "effect"

/** Any text up to a length, but a NUL, which the database cannot hold. */
export const textUpTo = (maxCharacters: number) =>
  Schema.String.check(
    Schema.isMaxLength(maxCharacters),
    Schema.makeFilter((text) => (text.includes("\u0000") ? "Expected no NUL" : undefined))
  )
