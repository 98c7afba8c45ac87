/**
 * Schemas of what players send and store: the part of JSON Schema 2020-12 that a check bounded by the size
 * of the data can decide. `$ref` names another schema of the same config.
 */

/** A value that `enum` and `const` may name. */
export type Scalar = string | number | boolean | null

export const typeNames = [
  "object",
  "array",
  "string",
  "number",
  "integer",
  "boolean",
  "null"
] as const
export type TypeName = (typeof typeNames)[number]

/** A schema, or a part of one. */
export interface DataSchema {
  readonly description?: string
  readonly type?: TypeName | ReadonlyArray<TypeName>
  readonly enum?: ReadonlyArray<Scalar>
  readonly const?: Scalar
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  /** False for a string that is no text of a player, such as the code of an item. */
  readonly text?: boolean
  readonly items?: DataSchema
  readonly minItems?: number
  readonly maxItems?: number
  readonly properties?: Readonly<Record<string, DataSchema>>
  readonly required?: ReadonlyArray<string>
  readonly additionalProperties?: boolean
  readonly oneOf?: ReadonlyArray<DataSchema>
  readonly $ref?: string
}

/** The schemas of a config, by name. */
export type DataSchemas = Readonly<Record<string, DataSchema>>

/** Limits of schemas. */
export const schemaLimits = {
  schemasMax: 64,
  /** Levels of a schema, with those of the schemas that it refers to. */
  depthMax: 8,
  nodesMax: 500,
  bytesMax: 64 * 1024
} as const

export const typesOf = ({ type }: DataSchema): ReadonlyArray<TypeName> | undefined => {
  if (type === undefined) return undefined
  return typeof type === "string" ? [type] : type
}

/** The scalars that a schema lists, or undefined if it lists none. */
export const valuesOf = (schema: DataSchema): ReadonlyArray<Scalar> | undefined => {
  if (schema.enum === undefined) return schema.const === undefined ? undefined : [schema.const]
  return schema.const === undefined
    ? schema.enum
    : schema.enum.filter((value) => value === schema.const)
}

/** Finds a schema by its name; a name that an object inherits is none. */
export const schemaNamed = (schemas: DataSchemas, name: string): DataSchema | undefined =>
  Object.hasOwn(schemas, name) ? schemas[name] : undefined

/** Follows `$ref` to a schema with content. One that leads nowhere accepts everything. */
export const resolved = (schema: DataSchema, schemas: DataSchemas): DataSchema => {
  const seen = new Set<DataSchema>()
  let at = schema
  while (at.$ref !== undefined && !seen.has(at)) {
    seen.add(at)
    at = schemaNamed(schemas, at.$ref) ?? {}
  }
  return at.$ref === undefined ? at : {}
}

/** The forms of a `oneOf`, by the value of the property in which they differ. */
export interface Forms {
  readonly tag: string
  readonly byTag: ReadonlyMap<Scalar, DataSchema>
}

const constOf = (form: DataSchema, name: string, schemas: DataSchemas): Scalar | undefined => {
  if (form.required?.includes(name) !== true || form.properties === undefined) return undefined
  const property = schemaNamed(form.properties, name)
  return property === undefined ? undefined : resolved(property, schemas).const
}

/** Returns the forms of a `oneOf`; undefined unless one required property has another `const` in each. */
export const formsOf = (
  forms: ReadonlyArray<DataSchema>,
  schemas: DataSchemas
): Forms | undefined => {
  const all = forms.map((form) => resolved(form, schemas))
  for (const tag of Object.keys(all[0]?.properties ?? {})) {
    const byTag = new Map<Scalar, DataSchema>()
    for (const form of all) {
      const value = constOf(form, tag, schemas)
      if (value !== undefined) byTag.set(value, form)
    }
    if (byTag.size === all.length) return { tag, byTag }
  }
  return undefined
}

/** Whether a schema accepts every value. */
export const acceptsAll = (schema: DataSchema): boolean =>
  schema.type === undefined &&
  schema.enum === undefined &&
  schema.const === undefined &&
  schema.oneOf === undefined
