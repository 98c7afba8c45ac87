/** Prints JSON schemas as TypeScript types. Every object is read-only, and unions are never closed. */

type Json = Readonly<Record<string, unknown>>

const isJson = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const list = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])

const primitives: Readonly<Record<string, string>> = {
  string: "string",
  number: "number",
  integer: "number",
  boolean: "boolean",
  null: "null",
  array: "ReadonlyArray<unknown>",
  object: "JsonObject"
}

/** A struct without fields, which JSON Schema describes as any object or array. */
const isEmptyStruct = (members: ReadonlyArray<unknown>): boolean =>
  JSON.stringify(members) === '[{"type":"object"},{"type":"array"}]'

const widthMax = 80

const propertyName = (name: string): string =>
  /^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name)

const indent = (text: string): string => text.replaceAll("\n", "\n  ")

/** Returns the members of a union once each, on one line or one line each. */
const union = (members: ReadonlyArray<string>): string => {
  const distinct = Array.from(new Set(members))
  if (distinct.includes("unknown") || distinct.length === 0) return "unknown"
  const line = distinct.join(" | ")
  return line.length <= widthMax && !line.includes("\n")
    ? line
    : distinct.map((member) => `\n  | ${indent(member)}`).join("")
}

const comment = (text: unknown): string =>
  typeof text === "string" && text !== "" && text.length <= widthMax && !text.includes("*/")
    ? `/** ${text.replaceAll(/\s+/g, " ")} */\n`
    : ""

/** Prints types and collects the named ones that they need. */
export class TypePrinter {
  readonly #schemas = new Map<string, unknown>()
  readonly #names = new Map<string, string>()
  readonly #printed = new Map<string, string>()

  /** Adds schemas that others reference by name. */
  define(schemas: unknown): void {
    if (!isJson(schemas)) return
    for (const [name, schema] of Object.entries(schemas)) this.#schemas.set(name, schema)
  }

  /** Prints a schema under this name. Equal schemas then print as the name. */
  name(name: string, schema: unknown): void {
    const text = this.#inline(schema)
    this.#print(name, schema, text)
    this.#names.set(text, name)
  }

  /** The type of a schema. */
  type(schema: unknown): string {
    const text = this.#inline(schema)
    return this.#names.get(text) ?? text
  }

  /** The declarations of all named types so far, by name. */
  declarations(): ReadonlyMap<string, string> {
    return this.#printed
  }

  #print(name: string, schema: unknown, text: string): void {
    const described = comment(isJson(schema) ? schema["description"] : undefined)
    this.#printed.set(name, `${described}${declare(name, text)}`)
  }

  #reference(reference: string): string {
    const name = reference.slice(reference.lastIndexOf("/") + 1)
    if (!this.#printed.has(name)) {
      // A recursive schema finds its own name.
      this.#printed.set(name, "")
      const schema = this.#schemas.get(name)
      this.#print(name, schema, this.#inline(schema))
    }
    return name
  }

  #inline(schema: unknown): string {
    if (!isJson(schema)) return "unknown"
    const { allOf, anyOf, const: constant, enum: choices, oneOf, type } = schema
    if (typeof schema["$ref"] === "string") return this.#reference(schema["$ref"])
    if (constant !== undefined) return JSON.stringify(constant)
    if (Array.isArray(choices)) return union(choices.map((choice) => JSON.stringify(choice)))
    const either = [...list(anyOf), ...list(oneOf)]
    if (isEmptyStruct(either)) return "JsonObject"
    if (either.length > 0) return union(either.map((member) => this.type(member)))
    if (Array.isArray(type)) return union(type.map((one) => this.#inline({ ...schema, type: one })))
    if (type === undefined && Array.isArray(allOf)) {
      return allOf.map((member) => this.type(member)).join(" & ")
    }
    if (type === "array") return this.#array(schema)
    if (type === "object") return this.#object(schema)
    return typeof type === "string" ? (primitives[type] ?? "unknown") : "unknown"
  }

  #array({ items, prefixItems }: Json): string {
    if (Array.isArray(prefixItems)) {
      return `readonly [${prefixItems.map((item) => this.type(item)).join(", ")}]`
    }
    return `ReadonlyArray<${this.type(items)}>`
  }

  #object({ additionalProperties, properties, required }: Json): string {
    if (!isJson(properties) || Object.keys(properties).length === 0) {
      const values = this.type(additionalProperties)
      return values === "unknown" ? "JsonObject" : `Readonly<Record<string, ${values}>>`
    }
    const members = Object.entries(properties).map(([name, member]) => {
      const optional = list(required).includes(name) ? "" : "?"
      const text = this.type(member)
      const described = comment(isJson(member) ? member["description"] : undefined)
      return `${described}readonly ${propertyName(name)}${optional}:${spaced(text)}`
    })
    return `{\n  ${members.map(indent).join("\n  ")}\n}`
  }
}

/** A union of several lines starts on its own line. */
export const spaced = (text: string): string => (text.startsWith("\n") ? text : ` ${text}`)

/** Declares an object as an interface, and any other type as an alias. */
export const declare = (name: string, text: string): string =>
  text.startsWith("{") && !text.includes("\n}\n")
    ? `export interface ${name} ${text}\n`
    : `export type ${name} =${spaced(text)}\n`
