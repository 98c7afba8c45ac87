/**
 * Common field types of the environment config: keys, texts in one or several languages, and paths of
 * deployed files. Lengths count Unicode code points.
 */
import { Schema } from "effect"
import { string } from "./fields.ts"
import { configLimits } from "./limits.ts"

/** An identifier in lowercase snake_case, unique within its section. */
export const key = (description: string) =>
  string(description).check(
    Schema.isPattern(new RegExp(`^[a-z][a-z0-9_]{0,${configLimits.keyMaxCharacters - 1}}$`, "u"), {
      message:
        `must be lowercase snake_case of at most ${configLimits.keyMaxCharacters} characters` +
        " that starts with a letter, like high_score"
    })
  )

const LanguageCode = Schema.String.check(
  Schema.isPattern(/^[a-z]{2,3}(-[A-Z][a-z]{3})?(-([A-Z]{2}|[0-9]{3}))?$/u)
)

/** A display text: one string, or one per language code (`en`, `ja`, `pt-BR`). */
export const text = (description: string, max: number = configLimits.textMaxCharacters) => {
  const one = Schema.String.annotate({ message: "must be a string" }).check(
    Schema.isBetweenCodePoints(1, max, {
      message: `must be 1 to ${max} characters long`,
      toJsonSchema: () => ({ minLength: 1, maxLength: max })
    }),
    Schema.makeFilter((value) => value.isWellFormed(), {
      message: "must not contain lone surrogates",
      toJsonSchema: () => ({})
    })
  )
  const many = Schema.Record(LanguageCode, one)
    .annotate({ messageUnexpectedKey: "is not a language code such as en, ja or pt-BR" })
    .check(Schema.isMinProperties(1, { message: "must have a text in at least one language" }))
  return Schema.optionalKey(
    Schema.Union([one, many]).annotate({
      message: "must be a string, or an object from language code to string",
      description
    })
  )
}

/** Whether a text is a plain file path: no scheme, no query, no `.` or `..` segment. */
const isDeploymentPath = (path: string): boolean =>
  !/[\\:?#\p{Cc}]/u.test(path) &&
  path
    .replace(/^\//, "")
    .split("/")
    .every((name) => !["", ".", ".."].includes(name))

/** A path of a file in the deployment, like `assets/card.png`. */
export const deploymentPath = (description: string) =>
  Schema.optionalKey(
    string(description).check(
      Schema.makeFilter(isDeploymentPath, {
        message: "must be the path of a file in the deployment, like assets/card.png"
      })
    )
  )

/** A deployment path, or an `https` URL. */
export const imageSource = (description: string) =>
  Schema.optionalKey(
    string(description).check(
      Schema.makeFilter(
        (image) => isDeploymentPath(image) || URL.parse(image)?.protocol === "https:",
        { message: "must be the path of a file in the deployment, or an https URL" }
      )
    )
  )
