/**
 * Checks the schemas of a config document: only keywords that a bounded check can decide, no recursion,
 * and limits of size. Each issue says what to change.
 */
import { memberPath } from "../config-document/paths.ts"
import type { Issue } from "../errors/requests.ts"
import { isPrototypeKey } from "../json.ts"
import {
  type DataSchema,
  type DataSchemas,
  formsOf,
  schemaLimits,
  schemaNamed,
  type TypeName,
  typeNames
} from "./schema.ts"

type Members = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Members =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const isScalar = (value: unknown): boolean =>
  value === null || ["string", "number", "boolean"].includes(typeof value)

const isTypeName = (value: unknown): value is TypeName =>
  typeof value === "string" && typeNames.some((name) => name === value)

/** The types that a keyword is for; a schema with the keyword must name one of them. */
const keywordTypes: Readonly<Record<string, ReadonlyArray<TypeName>>> = {
  properties: ["object"],
  required: ["object"],
  additionalProperties: ["object"],
  items: ["array"],
  minItems: ["array"],
  maxItems: ["array"],
  minLength: ["string"],
  maxLength: ["string"],
  text: ["string"],
  minimum: ["number", "integer"],
  maximum: ["number", "integer"]
}

const keywords = [
  "type",
  ...Object.keys(keywordTypes),
  "enum",
  "const",
  "oneOf",
  "$ref",
  "description"
]

const schemaNameForm = /^[a-z][a-z0-9_]{0,47}$/

/** Keywords that stand alone, apart from a description. */
const lonely = ["$ref", "oneOf"]

/** Collects the issues of one schema. */
class SchemaCheck {
  readonly issues: Array<Issue> = []
  #nodes = 0
  readonly #names: ReadonlySet<string>

  constructor(names: ReadonlySet<string>) {
    this.#names = names
  }

  add(path: string, message: string): void {
    this.issues.push({ path, message })
  }

  /** Checks a schema and all its parts; `depth` is 1 for a whole schema. */
  node(value: unknown, path: string, depth: number): void {
    this.#nodes += 1
    if (this.#nodes > schemaLimits.nodesMax) return
    if (!isObject(value)) return this.add(path, "must be a schema, which is an object")
    if (depth > schemaLimits.depthMax) {
      return this.add(path, `must have at most ${schemaLimits.depthMax} levels`)
    }
    this.#keywords(value, path)
    this.#scalars(value, path)
    this.#bounds(value, path)
    if ("properties" in value) this.#object(value, path, depth)
    else if ("required" in value) this.add(`${path}.required`, "needs properties: declare them")
    if ("items" in value) this.node(value["items"], memberPath(path, "items"), depth + 1)
    if ("oneOf" in value) this.#forms(value["oneOf"], memberPath(path, "oneOf"), depth)
    if ("$ref" in value) this.#reference(value["$ref"], memberPath(path, "$ref"))
  }

  /** Whether the schema has too many parts; the rest of it is not checked then. */
  get isTooLarge(): boolean {
    return this.#nodes > schemaLimits.nodesMax
  }

  #keywords(value: Members, path: string): void {
    const { type } = value
    const types: ReadonlyArray<unknown> = Array.isArray(type) ? type : [type]
    for (const keyword of Object.keys(value)) {
      const at = memberPath(path, keyword)
      const needed = Object.hasOwn(keywordTypes, keyword) ? keywordTypes[keyword] : undefined
      if (!keywords.includes(keyword)) {
        this.add(at, `is not supported: remove it, or use one of ${keywords.join(", ")}`)
      } else if (needed !== undefined && !needed.some((name) => types.includes(name))) {
        this.add(at, `needs "type": "${needed[0]}"`)
      }
    }
    for (const alone of lonely) {
      const others = Object.keys(value).filter((name) => name !== alone && name !== "description")
      if (alone in value && others.length > 0) {
        this.add(path, `must have nothing beside ${alone}: remove ${others.join(", ")}`)
      }
    }
    if ("description" in value && typeof value["description"] !== "string") {
      this.add(memberPath(path, "description"), "must be a string")
    }
  }

  #scalars({ const: only, enum: values, type }: Members, path: string): void {
    if (type !== undefined) {
      const all: ReadonlyArray<unknown> = Array.isArray(type) ? type : [type]
      if (all.length === 0 || !all.every(isTypeName) || new Set(all).size !== all.length) {
        const names = typeNames.map((name) => `"${name}"`).join(", ")
        this.add(memberPath(path, "type"), `must be one of ${names}, or a list of different ones`)
      }
    }
    if (only !== undefined && !isScalar(only)) {
      this.add(memberPath(path, "const"), "must be a string, a number, true, false or null")
    }
    if (values === undefined) return
    if (!Array.isArray(values) || values.length === 0 || !values.every(isScalar)) {
      const message = "must be a list of strings, numbers, true, false or null"
      this.add(memberPath(path, "enum"), message)
    }
  }

  #bounds(value: Members, path: string): void {
    for (const [least, most, whole] of [
      ["minimum", "maximum", false],
      ["minLength", "maxLength", true],
      ["minItems", "maxItems", true]
    ] as const) {
      for (const keyword of [least, most]) {
        const bound = value[keyword]
        const isBound = whole ? Number.isSafeInteger(bound) && Number(bound) >= 0 : isNumber(bound)
        if (bound !== undefined && !isBound) {
          this.add(
            memberPath(path, keyword),
            whole ? "must be an integer >= 0" : "must be a number"
          )
        }
      }
      const [min, max] = [value[least], value[most]]
      if (isNumber(min) && isNumber(max) && max < min) {
        this.add(memberPath(path, most), `must be >= ${least} (${min})`)
      }
    }
    for (const keyword of ["text", "additionalProperties"]) {
      if (keyword in value && typeof value[keyword] !== "boolean") {
        this.add(memberPath(path, keyword), "must be true or false")
      }
    }
  }

  #object({ properties, required }: Members, path: string, depth: number): void {
    const at = memberPath(path, "properties")
    if (!isObject(properties)) return this.add(at, "must be an object of schemas by name")
    for (const [name, member] of Object.entries(properties)) {
      if (isPrototypeKey(name)) this.add(memberPath(at, name), "is no allowed name: use another")
      this.node(member, memberPath(at, name), depth + 1)
      if (this.isTooLarge) return
    }
    if (required === undefined) return
    const requiredPath = memberPath(path, "required")
    if (!Array.isArray(required)) return this.add(requiredPath, "must be a list of names")
    for (const [index, name] of required.entries()) {
      if (typeof name !== "string" || !Object.hasOwn(properties, name)) {
        this.add(memberPath(requiredPath, index), "names none of the properties: declare it there")
      }
    }
  }

  #forms(forms: unknown, path: string, depth: number): void {
    if (!Array.isArray(forms) || forms.length === 0) {
      return this.add(path, "must be a list of schemas")
    }
    for (const [index, form] of forms.entries()) {
      this.node(form, memberPath(path, index), depth)
      if (this.isTooLarge) return
    }
  }

  #reference(name: unknown, path: string): void {
    if (typeof name === "string" && this.#names.has(name)) return
    this.add(path, "must be the name of another schema of multiplayer.schemas")
  }
}

const isNumber = (value: unknown): value is number =>
  typeof value === "number" && Number.isFinite(value)

const isTooLong = (schema: unknown): boolean =>
  new TextEncoder().encode(JSON.stringify(schema)).length > schemaLimits.bytesMax

const issuesOfSchema = (
  schema: unknown,
  path: string,
  names: ReadonlySet<string>
): ReadonlyArray<Issue> => {
  if (isTooLong(schema)) {
    return [
      { path, message: `must be at most ${schemaLimits.bytesMax / 1024} KiB: split it by $ref` }
    ]
  }
  const check = new SchemaCheck(names)
  check.node(schema, path, 1)
  if (check.isTooLarge) {
    check.add(path, `must have at most ${schemaLimits.nodesMax} parts: split it by $ref`)
  }
  return check.issues
}

/** The parts of a schema, without those of the schemas that it refers to. */
const childrenOf = ({ items, oneOf = [], properties = {} }: DataSchema) => [
  ...Object.values(properties).map((schema) => ({ schema, levels: 1 })),
  ...(items === undefined ? [] : [{ schema: items, levels: 1 }]),
  ...oneOf.map((schema) => ({ schema, levels: 0 }))
]

/** Finds a circle of references, and the levels of each schema with those that it refers to. */
class References {
  readonly #schemas: DataSchemas
  readonly #levels = new Map<string, number>()
  readonly #open: Array<string> = []
  circle: ReadonlyArray<string> | undefined

  constructor(schemas: DataSchemas) {
    this.#schemas = schemas
  }

  levelsOf(name: string): number {
    const known = this.#levels.get(name)
    if (known !== undefined) return known
    if (this.#open.includes(name)) {
      this.circle ??= [...this.#open.slice(this.#open.indexOf(name)), name]
      return 0
    }
    this.#open.push(name)
    const levels = this.#levelsOfNode(schemaNamed(this.#schemas, name) ?? {})
    this.#open.pop()
    this.#levels.set(name, levels)
    return levels
  }

  #levelsOfNode(schema: DataSchema): number {
    if (schema.$ref !== undefined) return this.levelsOf(schema.$ref)
    const below = childrenOf(schema).map((child) => child.levels + this.#levelsOfNode(child.schema))
    return Math.max(1, ...below)
  }
}

const referenceIssues = (schemas: DataSchemas, path: string): ReadonlyArray<Issue> => {
  const references = new References(schemas)
  for (const name of Object.keys(schemas)) {
    const levels = references.levelsOf(name)
    const { circle } = references
    if (circle !== undefined) {
      const message = `refers to itself, ${circle.join(" -> ")}: end the circle`
      return [{ path: memberPath(path, circle[0] ?? name), message }]
    }
    if (levels > schemaLimits.depthMax) {
      const message = `has ${levels} levels with its references: at most ${schemaLimits.depthMax}`
      return [{ path: memberPath(path, name), message }]
    }
  }
  return []
}

const formIssues = (
  schema: DataSchema,
  path: string,
  schemas: DataSchemas
): ReadonlyArray<Issue> => {
  const { items, oneOf, properties = {} } = schema
  const inner = [
    ...Object.entries(properties).map(
      ([name, part]) => [memberPath(`${path}.properties`, name), part] as const
    ),
    ...(items === undefined ? [] : [[`${path}.items`, items] as const]),
    ...(oneOf ?? []).map((part, index) => [`${path}.oneOf[${index}]`, part] as const)
  ]
  const message = "needs a required property with another const in each of its forms"
  const isApart = oneOf === undefined || formsOf(oneOf, schemas) !== undefined
  return [
    ...(isApart ? [] : [{ path: `${path}.oneOf`, message }]),
    ...inner.flatMap(([at, part]) => formIssues(part, at, schemas))
  ]
}

const isSchemas = (value: Members, issues: ReadonlyArray<Issue>): value is DataSchemas =>
  issues.length === 0 && isObject(value)

/** Returns the issues of the schemas at `path` of a document. */
export const schemaIssues = (value: unknown, path: string): ReadonlyArray<Issue> => {
  if (!isObject(value)) return []
  const names = Object.keys(value)
  if (names.length > schemaLimits.schemasMax) {
    return [{ path, message: `must have at most ${schemaLimits.schemasMax} schemas` }]
  }
  const unnamed = names.filter((name) => !schemaNameForm.test(name))
  if (unnamed.length > 0) {
    const message = "must be lowercase snake_case and start with a letter, like player_move"
    return unnamed.map((name) => ({ path: memberPath(path, name), message }))
  }
  const known = new Set(names)
  const issues = Object.entries(value).flatMap(([name, schema]) =>
    issuesOfSchema(schema, memberPath(path, name), known)
  )
  if (!isSchemas(value, issues)) return issues
  const circles = referenceIssues(value, path)
  if (circles.length > 0) return circles
  return Object.entries(value).flatMap(([name, schema]) =>
    formIssues(schema, memberPath(path, name), value)
  )
}
