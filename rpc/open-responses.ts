/**
 * Opens the response schemas of the OpenAPI document: removes `additionalProperties: false` from
 * responses and components. Responses gain fields over time, and a client generated from a closed
 * schema would reject the first new field. Request bodies stay closed.
 */

type Json = Readonly<Record<string, unknown>>

const isJson = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const mapValues = (value: Json, change: (member: unknown, key: string) => unknown): Json =>
  Object.fromEntries(Object.entries(value).map(([key, member]) => [key, change(member, key)]))

const open = (schema: unknown): unknown => {
  if (Array.isArray(schema)) return schema.map(open)
  if (!isJson(schema)) return schema
  const { additionalProperties, ...rest } = schema
  const members = mapValues(rest, open)
  return additionalProperties === undefined || additionalProperties === false
    ? members
    : { ...members, additionalProperties: open(additionalProperties) }
}

const member = (value: unknown, key: string, change: (member: unknown) => unknown): unknown =>
  isJson(value) && key in value ? { ...value, [key]: change(value[key]) } : value

const openPath = (path: unknown): unknown =>
  isJson(path) ? mapValues(path, (operation) => member(operation, "responses", open)) : path

/** The document with open response schemas. */
export const openResponses = (document: Json): Record<string, unknown> => {
  const { components, paths } = document
  return {
    ...document,
    paths: isJson(paths) ? mapValues(paths, openPath) : paths,
    components: member(components, "schemas", open)
  }
}
