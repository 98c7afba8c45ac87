/** Free text that people write: reasons, notes, appeals. */
import { Schema } from "effect"

/** Any text of up to `maxCharacters`. NUL is refused, because Postgres cannot store it. */
export const textUpTo = (maxCharacters: number) =>
  Schema.String.check(
    Schema.isMaxLength(maxCharacters),
    Schema.makeFilter((text) =>
      text.includes("\u0000") ? "Expected text without NUL characters" : undefined
    )
  )
