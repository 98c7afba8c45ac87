/**
 * Building blocks of the config sections. A field defines its default, description and error message
 * together, so that the decoded config, the JSON Schema and the errors agree.
 */
import { Effect, Schema } from "effect"
import { unknownKeyMessage } from "./unknown-keys.ts"

/**
 * An optional field with a default. The default applies to the decoded type: a default on the encoded
 * type would report type errors only and hide all other issues.
 */
export const withDefault = <S extends Schema.Constraint>(schema: S, value: S["Type"]) =>
  Schema.withDecodingDefaultTypeKey<S>(Effect.succeed(value))(schema)

/** An optional section; a missing section equals an empty one. */
export const optional = <S extends Schema.ConstraintDecoder<unknown>>(schema: S) =>
  withDefault(schema, Schema.decodeUnknownSync(schema)({}))

/** An object that rejects unknown fields; the error lists the known ones. */
export const section = <const Fields extends Schema.Struct.Fields>(
  description: string,
  fields: Fields,
  noun = "field"
): Schema.Struct<Fields> =>
  Schema.Struct(fields).annotate({
    description,
    message: "must be an object",
    messageUnexpectedKey: unknownKeyMessage(noun, Object.keys(fields))
  })

/** A technical string, such as a path, a URL or a handle. */
export const string = (description: string) =>
  Schema.String.annotate({ message: "must be a string", description })

/** A boolean, `false` by default. */
export const toggle = (description: string, value = false) =>
  withDefault(
    Schema.Boolean.annotate({ message: "must be true or false", description, default: value }),
    value
  )

/** An integer within inclusive bounds. */
export const integer = (
  description: string,
  range: { readonly minimum: number; readonly maximum: number; readonly default: number }
) => {
  const message = `must be an integer from ${range.minimum} to ${range.maximum}`
  const number = Schema.Number.annotate({ message, description, default: range.default })
  return withDefault(
    number.check(Schema.isInt({ message }), Schema.isBetween(range, { message })),
    range.default
  )
}

/** One of several literals; the first is the default. */
export const choice = <const Words extends readonly [string, ...ReadonlyArray<string>]>(
  description: string,
  words: Words
) => {
  const message = `must be one of ${words.map((word) => `"${word}"`).join(", ")}`
  return withDefault(
    Schema.Literals(words).annotate({ message, description, default: words[0] }),
    words[0]
  )
}

/** A bounded list, empty by default. */
export const list = <Item extends Schema.Constraint>(
  description: string,
  item: Item,
  max: number
) => withDefault(bounded(description, item, max), [])

const bounded = <Item extends Schema.Constraint>(description: string, item: Item, max: number) =>
  Schema.Array(item)
    .annotate({ message: "must be a list", description, default: [] })
    .check(Schema.isMaxLength(max, { message: `must have at most ${max} entries` }))
