/** Random schemas of the subset that contracts allow, with data that fits often and data that does not. */
import * as fc from "fast-check"
import type { DataSchema, DataSchemas, Scalar } from "#rpc/contracts/schema"

const names = ["a", "b", "c", "kind"] as const

const scalar: fc.Arbitrary<Scalar> = fc.oneof(
  fc.constantFrom("", "x", "yy", "😀", "__proto__"),
  fc.constantFrom(-2, -1, 0, 0.5, 1, 2, 3),
  fc.boolean(),
  fc.constant(null)
)

const upTo = (least: string, most: string, values: fc.Arbitrary<number>) =>
  fc
    .tuple(fc.option(values, { nil: undefined }), fc.option(values, { nil: undefined }))
    .map(([a, b]) => {
      const [min, max] =
        a !== undefined && b !== undefined ? [Math.min(a, b), Math.max(a, b)] : [a, b]
      return {
        ...(min === undefined ? {} : { [least]: min }),
        ...(max === undefined ? {} : { [most]: max })
      }
    })

const small = fc.integer({ min: 0, max: 3 })

const strings: fc.Arbitrary<DataSchema> = upTo("minLength", "maxLength", small).map((bounds) => ({
  type: "string",
  ...bounds
}))

const numbers: fc.Arbitrary<DataSchema> = fc
  .tuple(
    fc.constantFrom("number", "integer"),
    upTo("minimum", "maximum", fc.integer({ min: -2, max: 3 }))
  )
  .map(([type, bounds]) => ({ type, ...bounds }))

const values: fc.Arbitrary<DataSchema> = fc.oneof(
  fc.record({ enum: fc.uniqueArray(scalar, { minLength: 1, maxLength: 3 }) }),
  fc.record({ const: scalar })
)

const leaves: fc.Arbitrary<DataSchema> = fc.oneof(
  strings,
  numbers,
  values,
  fc.constantFrom<DataSchema>(
    {},
    { type: "boolean" },
    { type: "null" },
    { type: ["string", "null"] },
    { type: ["boolean", "number"] }
  )
)

const objectOf = (member: fc.Arbitrary<DataSchema>): fc.Arbitrary<DataSchema> =>
  fc
    .record({
      properties: fc.dictionary(fc.constantFrom(...names), member, { maxKeys: 3 }),
      additionalProperties: fc.option(fc.boolean(), { nil: undefined }),
      wanted: fc.subarray([...names])
    })
    .map(({ additionalProperties, properties, wanted }) => ({
      type: "object",
      properties,
      required: wanted.filter((name) => Object.hasOwn(properties, name)),
      ...(additionalProperties === undefined ? {} : { additionalProperties })
    }))

const formsWith = (member: fc.Arbitrary<DataSchema>): fc.Arbitrary<DataSchema> =>
  fc
    .uniqueArray(fc.tuple(fc.constantFrom<Scalar>("x", 1, true, null), objectOf(member)), {
      minLength: 1,
      maxLength: 3,
      selector: ([tag]) => tag
    })
    .map((forms) => ({
      oneOf: forms.map(([tag, { additionalProperties, properties, required = [] }]) => ({
        type: "object" as const,
        properties: { ...properties, kind: { const: tag } },
        required: Array.from(new Set([...required, "kind"])),
        ...(additionalProperties === undefined ? {} : { additionalProperties })
      }))
    }))

const withParts = (member: fc.Arbitrary<DataSchema>): fc.Arbitrary<DataSchema> =>
  fc.oneof(
    leaves,
    objectOf(member),
    formsWith(member),
    fc
      .tuple(member, upTo("minItems", "maxItems", small))
      .map(([items, bounds]) => ({ type: "array" as const, items, ...bounds }))
  )

const shared: DataSchema = { $ref: "shared" }

/** A schema that may refer to the schema `shared`. */
const referring = withParts(withParts(fc.oneof(leaves, fc.constant(shared))))

/** Two schemas: `root`, and `shared`, to which it may refer. */
export const contractSchemas: fc.Arbitrary<DataSchemas> = fc.record({
  root: referring,
  shared: withParts(leaves)
})

/** JSON values of the words that the schemas use. */
export const contractData: fc.Arbitrary<unknown> = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    scalar,
    fc.array(tie("value"), { maxLength: 4 }),
    fc.dictionary(fc.constantFrom(...names, "other", "__proto__"), tie("value"), { maxKeys: 4 })
  )
})).value
