/** Schemas in a config: what a push refuses, and what it says to change. */
import { assert, describe, it } from "@effect/vitest"
import { schemaIssues } from "#rpc/contracts/document"
import { isOpenText } from "#rpc/contracts/open-text"
import type { DataSchema } from "#rpc/contracts/schema"

const issuesOf = (schemas: unknown) => schemaIssues(schemas, "schemas")
const pathsOf = (schemas: unknown) => issuesOf(schemas).map(({ path }) => path)

const nested = (levels: number): unknown =>
  levels === 1 ? { type: "string" } : { type: "array", items: nested(levels - 1) }

const wide = (parts: number) => ({
  type: "object",
  properties: Object.fromEntries(Array.from({ length: parts - 1 }, (_, index) => [`p${index}`, {}]))
})

describe("schemaIssues", () => {
  it("accepts 8 levels and 500 parts, and refuses one more of each", () => {
    assert.deepStrictEqual(issuesOf({ a: nested(8), b: wide(500) }), [])
    assert.deepStrictEqual(pathsOf({ a: nested(9) }), [`schemas.a${".items".repeat(8)}`])
    assert.deepStrictEqual(pathsOf({ b: wide(501) }), ["schemas.b"])
  })

  it("refuses a document of more than 64 KiB, and more than 64 of them", () => {
    const large = { enum: Array.from({ length: 8000 }, (_, index) => `value-${index}`) }
    assert.deepStrictEqual(pathsOf({ large }), ["schemas.large"])
    const many = Object.fromEntries(Array.from({ length: 65 }, (_, index) => [`s${index}`, {}]))
    assert.deepStrictEqual(pathsOf(many), ["schemas"])
  })

  it("refuses schemas that refer to themselves, and names the circle", () => {
    const a = { type: "object", properties: { b: { $ref: "b" } } }
    const b = { type: "array", items: { $ref: "a" } }
    assert.deepStrictEqual(issuesOf({ a, b }), [
      { path: "schemas.a", message: "refers to itself, a -> b -> a: end the circle" }
    ])
    assert.deepStrictEqual(pathsOf({ a: { $ref: "a" } }), ["schemas.a"])
  })

  it("counts the levels of the schemas that one refers to", () => {
    const deep = { type: "array", items: { $ref: "below" } }
    assert.deepStrictEqual(issuesOf({ deep, below: nested(7) }), [])
    assert.deepStrictEqual(issuesOf({ deep, below: nested(8) }), [
      { path: "schemas.deep", message: "has 9 levels with its references: at most 8" }
    ])
  })

  it("refuses keywords outside of the subset, and forms of another type", () => {
    assert.deepStrictEqual(pathsOf({ a: { type: "string", pattern: "^a+$" } }), [
      "schemas.a.pattern"
    ])
    assert.deepStrictEqual(issuesOf({ a: { minimum: 1 } }), [
      { path: "schemas.a.minimum", message: 'needs "type": "number"' }
    ])
    assert.deepStrictEqual(pathsOf({ a: { $ref: "https://example.com/a.json" } }), [
      "schemas.a.$ref"
    ])
    assert.deepStrictEqual(pathsOf({ a: { type: "object", properties: {}, required: ["x"] } }), [
      "schemas.a.required[0]"
    ])
    assert.deepStrictEqual(pathsOf({ a: { type: "number", minimum: 2, maximum: 1 } }), [
      "schemas.a.maximum"
    ])
    assert.deepStrictEqual(pathsOf({ a: true, "B-2": {} }), ['schemas["B-2"]'])
  })

  it("refuses members named like parts of an object's prototype", () => {
    const properties: unknown = JSON.parse('{ "__proto__": {}, "constructor": {} }')
    assert.deepStrictEqual(pathsOf({ a: { type: "object", properties } }), [
      "schemas.a.properties.__proto__",
      "schemas.a.properties.constructor"
    ])
  })

  it("refuses forms that have no required constant in which they differ", () => {
    const form = (kind: string, required: ReadonlyArray<string>) => ({
      type: "object",
      properties: { kind: { const: kind } },
      required
    })
    assert.deepStrictEqual(
      issuesOf({ a: { oneOf: [form("x", ["kind"]), form("y", ["kind"])] } }),
      []
    )
    assert.deepStrictEqual(pathsOf({ a: { oneOf: [form("x", ["kind"]), form("y", [])] } }), [
      "schemas.a.oneOf"
    ])
    assert.deepStrictEqual(pathsOf({ a: { oneOf: [form("x", ["kind"]), form("x", ["kind"])] } }), [
      "schemas.a.oneOf"
    ])
  })
})

describe("isOpenText", () => {
  const isOpen = (schema: DataSchema) => isOpenText(schema, { said: { type: "string" } })

  it("finds a free string at any depth", () => {
    assert.isTrue(isOpen({ type: "string", maxLength: 5 }))
    assert.isTrue(isOpen({ type: "array", items: { $ref: "said" } }))
    assert.isTrue(isOpen({ type: ["null", "string"] }))
    assert.isTrue(isOpen({}))
    assert.isTrue(isOpen({ type: "object", properties: {} }))
  })

  it("lets lists of values, numbers and codes pass", () => {
    const properties: Readonly<Record<string, DataSchema>> = {
      phrase: { enum: ["gg", "sorry"] },
      x: { type: "number" },
      item: { type: "string", maxLength: 8, text: false }
    }
    assert.isFalse(isOpen({ type: "object", properties, additionalProperties: false }))
  })
})
