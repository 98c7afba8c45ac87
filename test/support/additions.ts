/**
 * Values and schemas as a newer release might have them: with fields that this release does not know,
 * in every object.
 */
import { assert } from "@effect/vitest"
import { Predicate, Schema, SchemaAST } from "effect"

/** The name of the added field. */
export const addition = "addedLater"

const mapObjects = (
  value: unknown,
  change: (members: ReadonlyArray<[string, unknown]>) => ReadonlyArray<[string, unknown]>
): unknown => {
  if (Array.isArray(value)) return value.map((element) => mapObjects(element, change))
  if (!Predicate.isObject(value)) return value
  const members = Object.entries(value).map(([key, member]): [string, unknown] => [
    key,
    mapObjects(member, change)
  ])
  return Object.fromEntries(change(members))
}

/** Adds the field to every object of a JSON value. */
export const withAddition = (value: unknown): unknown =>
  mapObjects(value, (members) => [[addition, { nested: true }], ...members])

/** Removes the field again, where a decoder has kept free-form data. */
export const withoutAddition = (value: unknown): unknown =>
  mapObjects(value, (members) => members.filter(([key]) => key !== addition))

/** An older runner decodes what a newer one has encoded as if its own release had encoded it. */
export const assertSame = (decoded: unknown, expected: unknown): void =>
  assert.deepStrictEqual(withoutAddition(decoded), withoutAddition(expected))

const added = new SchemaAST.PropertySignature(addition, Schema.optionalKey(Schema.Unknown).ast)

const widen = (ast: SchemaAST.AST): SchemaAST.AST => {
  const { context } = ast
  const rest = [undefined, undefined, undefined, context] as const
  if (SchemaAST.isUnion(ast)) {
    return new SchemaAST.Union(ast.types.map(widen), ast.options, ...rest)
  }
  if (SchemaAST.isArrays(ast)) {
    return new SchemaAST.Arrays(
      ast.isMutable,
      ast.elements.map(widen),
      ast.rest.map(widen),
      ...rest
    )
  }
  if (!SchemaAST.isObjects(ast) || ast.propertySignatures.length === 0) return ast
  const members = ast.propertySignatures.map(
    ({ name, type }) => new SchemaAST.PropertySignature(name, widen(type))
  )
  return new SchemaAST.Objects([added, ...members], ast.indexSignatures, ...rest)
}

/** The encoded side of a schema, with the field in every struct. */
export const widened = (schema: Schema.Constraint): Schema.Codec<unknown> =>
  Schema.make(widen(SchemaAST.toEncoded(schema.ast)))
