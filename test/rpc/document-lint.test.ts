/** Redocly's recommended rules on the OpenAPI document, and the examples of its schemas. */
import { assert, describe, it } from "@effect/vitest"
import { createConfig, lintFromString } from "@redocly/openapi-core"
import { openapiText } from "#server/http/openapi"
import { at } from "#testing/players"

const document: unknown = JSON.parse(openapiText())

/** The problems that redocly finds, with where they are. */
const lint = async (source: string): Promise<ReadonlyArray<string>> => {
  const config = await createConfig({
    extends: ["recommended"],
    rules: { "no-invalid-schema-examples": "error" }
  })
  const problems = await lintFromString({ source, absoluteRef: "openapi.json", config })
  return problems.map(
    ({ location, message, ruleId }) => `${ruleId}: ${message} ${location[0]?.pointer ?? ""}`
  )
}

describe("the OpenAPI document under redocly", () => {
  it("writes an OpenAPI document in which redocly finds no error, no warning and no unfit example", async () => {
    assert.deepStrictEqual(await lint(openapiText()), [])
  })

  it("finds with redocly an example that does not fit its schema", async () => {
    const schemas = { Score: { type: "integer", examples: ["ten"] } }
    const broken = JSON.stringify({ openapi: "3.1.0", components: { schemas } })
    assert.match((await lint(broken)).join("\n"), /no-invalid-schema-examples/)
  })

  it("describes every schema and gives it an example", () => {
    const schemas = Object.entries(Object(at(document, "components", "schemas")))
    const missing = schemas.flatMap(([name, schema]) =>
      typeof at(schema, "description") === "string" && at(schema, "examples", 0) !== undefined
        ? []
        : [`Annotate the schema ${name} with a description`]
    )
    assert.deepStrictEqual(missing, [])
  })

  it("names operations so that a generator can use them as functions", () => {
    const ids = Object.values(Object(at(document, "paths"))).flatMap((methods) =>
      Object.values(Object(methods)).map((operation) => String(at(operation, "operationId")))
    )
    assert.deepStrictEqual(
      ids.filter((id) => !/^[a-z][A-Za-z]+$/.test(id)),
      []
    )
  })
})
