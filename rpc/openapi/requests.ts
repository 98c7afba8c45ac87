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

/** Describes each parameter as its schema is described. */
export const describeParameters = (document: unknown): unknown =>
  mapOperations(document, (operation) =>
    mapMember(operation, "parameters", (parameters) =>
      Array.isArray(parameters) ? parameters.map(describedParameter) : parameters
    )
  )

/** The components, each with its name. */
export const componentsOf = (document: unknown): ReadonlyArray<readonly [string, unknown]> =>
  membersOf(member(member(document, "components"), "schemas"))
