/**
 * What the sections of the environment config are built of: fields whose default, description and
 * message stand together, so that the decoded config, the JSON Schema and the errors agree
 * (spec section 2.2).
 */
import { Effect, Schema } from "effect"

/**
 * A field that may be left out. The default is applied after the field is decoded in full: the
 * variant that applies it before would report wrong types alone and hide every other problem.
 */
export const withDefault = <S extends Schema.Constraint>(schema: S, value: S["Type"]) =>
  Schema.withDecodingDefaultTypeKey<S>(Effect.succeed(value))(schema)

/** A section that may be left out, which is the same as an empty one. */
export const optional = <S extends Schema.ConstraintDecoder<unknown>>(schema: S) =>
  withDefault(schema, Schema.decodeUnknownSync(schema)({}))

/** An object that refuses fields it does not know, and names those it does. */
export const section = <const Fields extends Schema.Struct.Fields>(
  description: string,
  fields: Fields,
  what = "field"
): Schema.Struct<Fields> =>
  Schema.Struct(fields).annotate({
    description,
    message: "must be an object",
    messageUnexpectedKey: `is no known ${what}; known are ${Object.keys(fields).join(", ")}`
  })

/** A text for machines: a path, a URL, a handle. */
export const string = (description: string) =>
  Schema.String.annotate({ message: "must be a string", description })

/** A switch, off unless told otherwise. */
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

/** One of a few words; the first is the default. */
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

/** A bounded list, empty unless told otherwise. */
export const list = <Item extends Schema.Constraint>(
  description: string,
  item: Item,
  max: number
) => withDefault(bounded(description, item, max), [])

/** A bounded list whose entries are told apart by their `key`; `path` is where it stands. */
export const keyedList = <Item extends Schema.Schema<{ readonly key: string }>>(
  description: string,
  item: Item,
  max: number,
  path: string
) => withDefault(bounded(description, item, max).check(Schema.makeFilter(repeatedKeys(path))), [])

const bounded = <Item extends Schema.Constraint>(description: string, item: Item, max: number) =>
  Schema.Array(item)
    .annotate({ message: "must be a list", description, default: [] })
    .check(Schema.isMaxLength(max, { message: `must have at most ${max} entries` }))

const repeatedKeys = (path: string) => (entries: ReadonlyArray<{ readonly key: string }>) => {
  const first = new Map<string, number>()
  return entries.flatMap(({ key }, index) => {
    const earlier = first.get(key)
    if (earlier === undefined) first.set(key, index)
    return earlier === undefined
      ? []
      : [{ path: [index, "key"], issue: `"${key}" is already the key of ${path}[${earlier}]` }]
  })
}
