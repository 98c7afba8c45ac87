/**
 * Response schemas of the OpenAPI document: open to new fields, with one named schema for each error
 * code. Responses gain fields over time, and a client generated from a closed schema would reject the
 * first new field. Request bodies stay closed.
 */
import {
  isJson,
  itemsOf,
  type Json,
  mapMember,
  mapMembers,
  mapOperations,
  member,
  membersOf,
  pascalCase,
  refName,
  refTo,
  textOf
} from "./json.ts"

const open = (schema: unknown): unknown => {
  if (Array.isArray(schema)) return schema.map(open)
  if (!isJson(schema)) return schema
  const { additionalProperties, ...rest } = schema
  const members = mapMembers(rest, open)
  return additionalProperties === undefined || additionalProperties === false
    ? members
    : { ...Object(members), additionalProperties: open(additionalProperties) }
}

/** Removes `additionalProperties: false` from responses and components. */
export const openResponses = (document: unknown): unknown =>
  mapMember(
    mapOperations(document, (operation) => mapMember(operation, "responses", open)),
    "components",
    (components) => mapMember(components, "schemas", open)
  )

const schemasOf = (document: unknown): unknown => member(member(document, "components"), "schemas")

const errorName = (code: string): string => `${pascalCase(code).replace(/Error$/, "")}Error`

const encoded = "Encoded"

/** The codes of all errors: each has a schema of its body, and one of the `error` within. */
const errorCodes = (document: unknown): ReadonlySet<string> => {
  const schemas = schemasOf(document)
  return new Set(
    membersOf(schemas).flatMap(([name]) =>
      member(schemas, name + encoded) === undefined ? [] : [name]
    )
  )
}

const replaceRefs = (value: unknown, replace: (name: string) => unknown): unknown => {
  if (Array.isArray(value)) return value.map((item) => replaceRefs(item, replace))
  const name = refName(value)
  if (name !== undefined) return replace(name)
  return mapMembers(value, (inner) => replaceRefs(inner, replace))
}

/** Renames the schema of `save_not_found` to `SaveNotFoundError`, and puts its `error` into it. */
export const nameErrors = (document: unknown): unknown => {
  const schemas = schemasOf(document)
  const codes = errorCodes(document)
  const replace = (name: string): unknown => {
    const code = name.endsWith(encoded) ? name.slice(0, -encoded.length) : undefined
    if (code !== undefined && codes.has(code)) return replaceRefs(member(schemas, name), replace)
    return refTo(codes.has(name) ? errorName(name) : name)
  }
  const kept = membersOf(schemas).filter(
    ([name]) => !(name.endsWith(encoded) && codes.has(name.slice(0, -encoded.length)))
  )
  const named = kept.map(([name, schema]) => [codes.has(name) ? errorName(name) : name, schema])
  return replaceRefs(
    mapMember(document, "components", (components) =>
      mapMember(components, "schemas", () => Object.fromEntries(named))
    ),
    replace
  )
}

const anyError = "AnyError"

/** Schema of the body of an error whose code the document does not list. */
const anyErrorSchema: Json = {
  type: "object",
  description: "The body of every error. Decide by `code`; a later release may add codes.",
  properties: {
    error: {
      type: "object",
      properties: {
        code: { type: "string" },
        message: { type: "string", description: "What is wrong and what to do, in English." },
        details: { type: "object" }
      },
      required: ["code", "message"]
    }
  },
  required: ["error"]
}

const codesOf = (response: unknown, schemas: unknown): ReadonlyArray<string> => {
  const schema = member(member(member(response, "content"), "application/json"), "schema")
  const either = itemsOf(member(schema, "anyOf"))
  return (either.length === 0 ? [schema] : either).flatMap((one) => {
    const body = member(schemas, refName(one) ?? "")
    const error = member(member(body, "properties"), "error")
    const code = textOf(itemsOf(member(member(member(error, "properties"), "code"), "enum"))[0])
    return code === "" ? [] : [`\`${code}\``]
  })
}

const redirect: Json = {
  description: "Redirects to the address in `Location`.",
  headers: { Location: { schema: { type: "string" } } }
}

const describe = (schemas: unknown) => (response: unknown, status: string) => {
  if (status === "302") return redirect
  const codes = codesOf(response, schemas)
  return codes.length === 0 || !isJson(response)
    ? response
    : { ...response, description: codes.join(", ") }
}

const fallback: Json = {
  description: "Any other error.",
  content: { "application/json": { schema: refTo(anyError) } }
}

/**
 * Describes error responses by their codes. An operation that only redirects gets a response for all
 * other errors, since it has none of success.
 */
export const describeResponses = (document: unknown): unknown => {
  const schemas = schemasOf(document)
  const described = mapOperations(document, (operation) =>
    mapMember(operation, "responses", (responses) => {
      const all = mapMembers(responses, describe(schemas))
      const succeeds = membersOf(all).some(([status]) => status.startsWith("2"))
      return succeeds ? all : { ...Object(all), default: fallback }
    })
  )
  return mapMember(described, "components", (components) =>
    mapMember(components, "schemas", (named) => ({ ...Object(named), [anyError]: anyErrorSchema }))
  )
}
