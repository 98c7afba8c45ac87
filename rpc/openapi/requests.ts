/** Names of operations and request bodies in the OpenAPI document, as generated clients use them. */
import {
  camelCase,
  isJson,
  type Json,
  mapMember,
  mapMembers,
  mapOperations,
  member,
  membersOf,
  pascalCase,
  refTo,
  textOf
} from "./json.ts"

/** Operation ids as identifiers: `sessions.guest` becomes `sessionsGuest`. */
export const nameOperations = (document: unknown): unknown =>
  mapOperations(document, (operation) =>
    mapMember(operation, "operationId", (id) => camelCase(textOf(id)))
  )

const described = (schema: Json, operation: Json): Json => ({
  ...schema,
  description: schema["description"] ?? `Body of: ${textOf(operation["summary"])}.`
})

/**
 * Moves the body of each request into a component, named after its first operation. The two mounts of
 * an operator endpoint share one.
 */
export const nameRequests = (document: unknown): unknown => {
  const named = new Map<string, Json>()
  const nameByText = new Map<string, string>()
  const hoist = (schema: unknown, operation: Json): unknown => {
    if (!isJson(schema) || schema["type"] !== "object") return schema
    const text = JSON.stringify(schema)
    const name = nameByText.get(text) ?? `${pascalCase(textOf(operation["operationId"]))}Request`
    if (!named.has(name)) named.set(name, described(schema, operation))
    nameByText.set(text, name)
    return refTo(name)
  }
  const moved = mapOperations(document, (operation) =>
    mapMember(operation, "requestBody", (body) =>
      mapMember(body, "content", (content) =>
        mapMembers(content, (media) =>
          mapMember(media, "schema", (schema) => hoist(schema, operation))
        )
      )
    )
  )
  return mapMember(moved, "components", (components) =>
    mapMember(components, "schemas", (schemas) => ({
      ...Object(schemas),
      ...Object.fromEntries(named)
    }))
  )
}

const describedParameter = (parameter: unknown): unknown => {
  const description = member(member(parameter, "schema"), "description")
  return isJson(parameter) && typeof description === "string"
    ? { ...parameter, description }
    : parameter
}

const integerFormat = /^integer (\d+) (\d+)$/

/** Shows a text that holds an integer as an integer with its bounds. */
const integerParameter = (parameter: unknown): unknown =>
  mapMember(parameter, "schema", (schema) => {
    if (!isJson(schema)) return schema
    const { format, type: _, ...rest } = schema
    const bounds = integerFormat.exec(textOf(format))
    if (bounds === null) return schema
    return { ...rest, type: "integer", minimum: Number(bounds[1]), maximum: Number(bounds[2]) }
  })

/** Describes each parameter as its schema is described, and shows those that hold integers as such. */
export const describeParameters = (document: unknown): unknown =>
  mapOperations(document, (operation) =>
    mapMember(operation, "parameters", (parameters) =>
      Array.isArray(parameters)
        ? parameters.map((each) => integerParameter(describedParameter(each)))
        : parameters
    )
  )

/** An object with fields, none of which is needed: the service reads an empty body as that object. */
const isOptional = (body: unknown): boolean => {
  const schema = member(member(member(body, "content"), "application/json"), "schema")
  return (
    member(schema, "type") === "object" &&
    isJson(member(schema, "properties")) &&
    !Array.isArray(member(schema, "required"))
  )
}

/** Marks bodies that may be left out. */
export const markOptionalBodies = (document: unknown): unknown =>
  mapOperations(document, (operation) =>
    mapMember(operation, "requestBody", (body) =>
      isJson(body) && isOptional(body) ? { ...body, required: false } : body
    )
  )

/** The components, each with its name. */
export const componentsOf = (document: unknown): ReadonlyArray<readonly [string, unknown]> =>
  membersOf(member(member(document, "components"), "schemas"))
