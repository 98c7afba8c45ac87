/** Schemas as TypeScript types. */
import { type DataSchema, type DataSchemas, typesOf, valuesOf } from "./schema.ts"

const commentOf = ({ description }: DataSchema, indent: string): string => {
  const text = description?.replaceAll("*/", "* /").replace(/\s+/g, " ").trim() ?? ""
  return text === "" ? "" : `${indent}/** ${text} */\n`
}

const union = (types: ReadonlyArray<string>): string =>
  types.length === 0 ? "never" : Array.from(new Set(types)).join(" | ")

const objectText = (schema: DataSchema, indent: string): string => {
  const inner = `${indent}  `
  const { additionalProperties, properties = {}, required = [] } = schema
  const members = Object.entries(properties).map(([name, member]) => {
    const mark = required.includes(name) ? "" : "?"
    return `${commentOf(member, inner)}${inner}readonly ${JSON.stringify(name)}${mark}: ${typeText(member, inner)}\n`
  })
  if (additionalProperties !== false) members.push(`${inner}readonly [name: string]: unknown\n`)
  return members.length === 0
    ? "{ readonly [name: string]: never }"
    : `{\n${members.join("")}${indent}}`
}

const arrayText = ({ items }: DataSchema, indent: string): string =>
  `ReadonlyArray<${items === undefined ? "unknown" : typeText(items, indent)}>`

/** Returns the type of a schema; a reference is a member of the interface `Schemas`. */
const typeText = (schema: DataSchema, indent: string): string => {
  if (schema.$ref !== undefined) return `Schemas[${JSON.stringify(schema.$ref)}]`
  if (schema.oneOf !== undefined) return union(schema.oneOf.map((it) => typeText(it, indent)))
  const values = valuesOf(schema)
  if (values !== undefined) return union(values.map((value) => JSON.stringify(value)))
  const types = typesOf(schema)?.map((type) => {
    if (type === "object") return objectText(schema, indent)
    if (type === "array") return arrayText(schema, indent)
    return type === "integer" ? "number" : type
  })
  return types === undefined ? "unknown" : union(types)
}

/** Returns the members of the interface `Schemas`. */
export const schemaLines = (schemas: DataSchemas): string =>
  Object.entries(schemas)
    .map(
      ([name, schema]) =>
        `${commentOf(schema, "  ")}  readonly ${JSON.stringify(name)}: ${typeText(schema, "  ")}\n`
    )
    .join("")
