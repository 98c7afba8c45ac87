/**
 * Examples of the schemas of a document. A schema with `examples` keeps them. Any other gets one that is
 * made from its fields: their own examples, the only or first value that they allow, or a value that
 * suits their name and type.
 */
import {
  isJson,
  itemsOf,
  type Json,
  mapMember,
  mapMembers,
  member,
  membersOf,
  refName
} from "./json.ts"
import { sampleValues } from "./sample-values.ts"

const byFormat: Readonly<Record<string, unknown>> = { "date-time": "2026-11-20T09:30:00.000Z" }

const typeOf = (value: unknown): string =>
  typeof value === "number" ? "number" : Array.isArray(value) ? "array" : typeof value

/** Returns the value for the name of a field, if it has the type of the schema and the schema names no fields. */
const sampleOf = (schema: Json, name: string): unknown => {
  if (membersOf(schema["properties"]).length > 0) return undefined
  const sample = sampleValues[name]
  const type = schema["type"] === "integer" ? "number" : schema["type"]
  return type === undefined || type === typeOf(sample) ? sample : undefined
}

const object = (schema: Json, schemas: unknown): unknown => {
  const fields = membersOf(schema["properties"]).map(([name, field]) => [
    name,
    exampleOf(field, schemas, name)
  ])
  const values = schema["additionalProperties"]
  return isJson(values) && fields.length === 0
    ? { score: exampleOf(values, schemas, "score") }
    : Object.fromEntries(fields)
}

const ofType = (schema: Json, schemas: unknown, name: string): unknown => {
  switch (schema["type"]) {
    case "object":
      return sampleOf(schema, name) ?? object(schema, schemas)
    case "array":
      return schema["items"] === undefined || isNever(schema["items"])
        ? []
        : [exampleOf(schema["items"], schemas, name)]
    case "string":
      return sampleOf(schema, name) ?? byFormat[String(schema["format"])] ?? name
    case "integer":
    case "number":
      return sampleOf(schema, name) ?? 1
    case "boolean":
      return sampleOf(schema, name) ?? true
    case "null":
      return null
    default:
      return sampleOf(schema, name) ?? { level: 3 }
  }
}

const isNever = (schema: unknown): boolean => isJson(member(schema, "not"))

/** Returns a value that the schema allows. `name` is that of the field which holds it. */
export const exampleOf = (schema: unknown, schemas: unknown, name = ""): unknown => {
  if (!isJson(schema)) return null
  const ref = refName(schema)
  if (ref !== undefined) return exampleOf(member(schemas, ref), schemas, name)
  const given = itemsOf(schema["examples"])
  if (given.length > 0) return given[0]
  if ("const" in schema) return schema["const"]
  const choices = itemsOf(schema["enum"])
  if (choices.length > 0) {
    const sample = sampleOf(schema, name)
    return choices.includes(sample) ? sample : choices[0]
  }
  const either = itemsOf(schema["anyOf"] ?? schema["oneOf"])
  return either.length > 0 ? exampleOf(either[0], schemas, name) : ofType(schema, schemas, name)
}

/** The document with an example in each component. */
export const withExamples = (document: unknown): unknown => {
  const schemas = member(member(document, "components"), "schemas")
  return mapMember(document, "components", (components) =>
    mapMember(components, "schemas", () =>
      mapMembers(schemas, (schema) =>
        isJson(schema) && schema["examples"] === undefined
          ? { ...schema, examples: [exampleOf(schema, schemas)] }
          : schema
      )
    )
  )
}
