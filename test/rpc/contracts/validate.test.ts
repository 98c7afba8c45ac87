/** Checks of data by schemas, compared with a validator of JSON Schema. */
import { Ajv2020 } from "@redocly/ajv/dist/2020.js"
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { schemaIssues } from "#rpc/contracts/document"
import type { DataSchema, DataSchemas } from "#rpc/contracts/schema"
import { compileSchemas } from "#rpc/contracts/validate"
import { contractData, contractSchemas } from "../../support/contract-schemas.ts"

const checkOf = (schemas: DataSchemas, name = "root") =>
  compileSchemas(schemas).of(name) ?? (() => undefined)

const reference = (schemas: DataSchemas) => {
  const ajv = new Ajv2020({ strict: false })
  for (const [name, schema] of Object.entries(schemas)) ajv.addSchema(schema, name)
  return ajv.getSchema("root")
}

const problemOf = (root: DataSchema, value: unknown) => checkOf({ root })(value)

describe("the check of a schema", () => {
  it("agrees with a validator of JSON Schema on random schemas and data", () => {
    fc.assert(
      fc.property(
        contractSchemas,
        fc.array(contractData, { minLength: 20, maxLength: 20 }),
        (schemas, all) => {
          assert.deepStrictEqual(schemaIssues(schemas, "schemas"), [])
          const check = checkOf(schemas)
          const fits = reference(schemas)
          for (const data of all)
            assert.strictEqual(check(data) === undefined, fits?.(data) === true)
        }
      ),
      { numRuns: 80 }
    )
  })

  it("says where the data does not fit, and what to change", () => {
    const root: DataSchema = {
      type: "object",
      properties: {
        to: {
          type: "array",
          items: { type: "object", properties: { x: { type: "number", maximum: 9 } } }
        }
      },
      required: ["to"],
      additionalProperties: false
    }
    assert.deepStrictEqual(problemOf(root, { to: [{ x: 1 }, { x: 10 }] }), {
      path: ["to", 1, "x"],
      problem: "must be at most 9"
    })
    assert.deepStrictEqual(problemOf(root, {}), { path: ["to"], problem: "is required" })
    assert.deepStrictEqual(problemOf(root, { to: [], extra: 1 }), {
      path: ["extra"],
      problem: "is not declared: leave it out"
    })
    assert.deepStrictEqual(problemOf(root, []), { path: [], problem: "must be an object" })
  })

  it("counts characters of a text as people do, not halves of them", () => {
    const root: DataSchema = { type: "string", maxLength: 2 }
    assert.isUndefined(problemOf(root, "😀😀"))
    assert.isDefined(problemOf(root, "😀😀😀"))
  })

  it("refuses members named like parts of an object's prototype", () => {
    const closed: DataSchema = { type: "object", properties: {}, additionalProperties: false }
    for (const name of ["__proto__", "constructor", "toString"]) {
      const value: unknown = JSON.parse(`{ ${JSON.stringify(name)}: 1 }`)
      assert.deepStrictEqual(problemOf(closed, value)?.path, [name])
    }
    const required: DataSchema = {
      type: "object",
      properties: { ["toString"]: { type: "string" as const } },
      required: ["toString"]
    }
    assert.deepStrictEqual(problemOf(required, {})?.path, ["toString"])
  })

  it("reads data of thousands of entries in one pass, and stops at the first that does not fit", () => {
    const root: DataSchema = { type: "array", items: { type: "integer" } }
    const data: Array<unknown> = Array.from({ length: 8000 }, (_, index) => index)
    assert.isUndefined(problemOf(root, data))
    data[4000] = 0.5
    assert.deepStrictEqual(problemOf(root, data)?.path, [4000])
  })
})
