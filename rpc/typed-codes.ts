/**
 * Codes that people type: of rooms and of session transfers. One rule says what they may type for a code,
 * and every entrance applies it.
 */
import { Schema, SchemaTransformation } from "effect"

/** Raw length of a typed code, longer than the code itself: people type and paste what separates. */
const typedMaxCharacters = 64

/** What separates the parts of a code, or shows nothing. */
const separators = /[\p{White_Space}\p{Pd}\u2212\p{Default_Ignorable_Code_Point}\p{Cf}\p{Cc}]/gu

/**
 * The code that a typed text means. Spaces, dashes, invisible characters, case and full width do not matter.
 */
export const typedCode = (text: string): string =>
  text
    .normalize("NFKC")
    .replace(separators, "")
    .replace(/[a-z]/g, (letter) => letter.toUpperCase())

const Typed = Schema.String.check(Schema.isBetweenLength(1, typedMaxCharacters))

const toCode = SchemaTransformation.transform({ decode: typedCode, encode: (code: string) => code })

/** A code as people type it; it decodes to the code. */
export const TypedCode = Typed.annotate({
  description: "A code as a person types it: case, width, spaces and dashes do not matter."
}).pipe(Schema.decodeTo(Schema.String, toCode))

/** The code that the creator of a room chooses; it decodes to the code. */
export const ChosenRoomCode = Typed.check(
  Schema.makeFilter((text) =>
    /^[A-Z0-9]{4,12}$/.test(typedCode(text)) ? undefined : "Expected 4 to 12 letters or digits"
  )
)
  .annotate({
    description: "4 to 12 letters or digits; case, width, spaces and dashes do not matter."
  })
  .pipe(Schema.decodeTo(Schema.String, toCode))
