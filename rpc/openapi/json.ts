/** Access to a JSON document whose shape is known only in part. */

export type Json = Readonly<Record<string, unknown>>

export const isJson = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The member of an object; undefined of anything else. */
export const member = (value: unknown, key: string): unknown =>
  isJson(value) ? value[key] : undefined

/** The members of an object; none of anything else. */
export const membersOf = (value: unknown): ReadonlyArray<readonly [string, unknown]> =>
  isJson(value) ? Object.entries(value) : []

/** The items of an array; none of anything else. */
export const itemsOf = (value: unknown): ReadonlyArray<unknown> =>
  Array.isArray(value) ? value : []

export const textOf = (value: unknown): string => (typeof value === "string" ? value : "")

/** An object with each of its members changed. */
export const mapMembers = (
  value: unknown,
  change: (member: unknown, key: string) => unknown
): unknown =>
  isJson(value)
    ? Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, change(inner, key)]))
    : value

/** Returns an object with one of its members changed, if it has it. */
export const mapMember = (
  value: unknown,
  key: string,
  change: (member: unknown) => unknown
): unknown => (isJson(value) && key in value ? { ...value, [key]: change(value[key]) } : value)

/** An object with every operation of its `paths` changed. */
export const mapOperations = (
  document: unknown,
  change: (operation: Json, method: string, path: string) => unknown
): unknown =>
  mapMember(document, "paths", (paths) =>
    mapMembers(paths, (methods, path) =>
      mapMembers(methods, (operation, method) =>
        isJson(operation) ? change(operation, method, path) : operation
      )
    )
  )

const refPrefix = "#/components/schemas/"

/** The name of the component that a schema refers to; undefined if it is no reference. */
export const refName = (schema: unknown): string | undefined => {
  const ref = member(schema, "$ref")
  return typeof ref === "string" ? ref.slice(ref.lastIndexOf("/") + 1) : undefined
}

/** A reference to a component. */
export const refTo = (name: string): Json => ({ $ref: refPrefix + name })

const words = (name: string): ReadonlyArray<string> =>
  name.split(/[^A-Za-z0-9]+/).filter((word) => word !== "")

/** `save_not_found` as `SaveNotFound`. */
export const pascalCase = (name: string): string =>
  words(name)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join("")

/** `sessions.guest` as `sessionsGuest`. */
export const camelCase = (name: string): string => {
  const pascal = pascalCase(name)
  return pascal.charAt(0).toLowerCase() + pascal.slice(1)
}
