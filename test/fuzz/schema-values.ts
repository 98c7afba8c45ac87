/** Random values of a JSON Schema: valid, or with one invalid part. */
import { Schema } from "effect"
import type { Chance } from "../simulation/random.ts"
import { hostileValue } from "./hostile-values.ts"
import { type Json, RawJson, JsonObject } from "./json.ts"

/** The part of JSON Schema that the API and frame definitions use. */
export interface JsonSchema {
  readonly type?: string
  readonly enum?: ReadonlyArray<string | number | boolean | null>
  readonly anyOf?: ReadonlyArray<JsonSchema>
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: ReadonlyArray<string>
  readonly patternProperties?: Readonly<Record<string, JsonSchema>>
  readonly additionalProperties?: boolean | JsonSchema
  readonly items?: JsonSchema
  readonly minLength?: number
  readonly maxLength?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly maxItems?: number
  readonly maxProperties?: number
}

const NestedSchema = Schema.suspend((): Schema.Codec<JsonSchema> => JsonSchema)

export const JsonSchema: Schema.Codec<JsonSchema> = Schema.Struct({
  type: Schema.optionalKey(Schema.String),
  enum: Schema.optionalKey(
    Schema.Array(Schema.Union([Schema.String, Schema.Finite, Schema.Boolean, Schema.Null]))
  ),
  anyOf: Schema.optionalKey(Schema.Array(NestedSchema)),
  properties: Schema.optionalKey(Schema.Record(Schema.String, NestedSchema)),
  required: Schema.optionalKey(Schema.Array(Schema.String)),
  patternProperties: Schema.optionalKey(Schema.Record(Schema.String, NestedSchema)),
  additionalProperties: Schema.optionalKey(Schema.Union([Schema.Boolean, NestedSchema])),
  items: Schema.optionalKey(NestedSchema),
  minLength: Schema.optionalKey(Schema.Finite),
  maxLength: Schema.optionalKey(Schema.Finite),
  minimum: Schema.optionalKey(Schema.Finite),
  maximum: Schema.optionalKey(Schema.Finite),
  maxItems: Schema.optionalKey(Schema.Finite),
  maxProperties: Schema.optionalKey(Schema.Finite)
})

/** Suggests a plausible text for a member of this name: an existing id, an email, a mode. */
export type Suggest = (name: string) => string | undefined

/** A position in a value. */
interface Site {
  readonly shape: JsonSchema
  readonly name: string
  readonly put: (json: Json) => void
  /** The object that holds it. */
  readonly within?: JsonObject
}

/** The schema of a member that the definitions leave open. */
const nullOrAny: JsonSchema = { anyOf: [{ type: "null" }, {}, {}] }

const words = ["a", "Ada", "slot-1", "duel", "score", "hello", "x1"] as const

/** Generates one value and records its positions, so that one of them can be corrupted. */
class Generator {
  readonly sites: Array<Site> = []
  readonly #chance: Chance
  readonly #suggest: Suggest

  constructor(chance: Chance, suggest: Suggest) {
    this.#chance = chance
    this.#suggest = suggest
  }

  grow(site: Site, depth = 0): void {
    this.sites.push(site)
    const { put, shape } = site
    if (shape.enum !== undefined) return put(this.#chance.pick(shape.enum) ?? null)
    if (shape.anyOf !== undefined) {
      return this.grow({ ...site, shape: this.#chance.pick(shape.anyOf) ?? {} }, depth)
    }
    switch (shape.type) {
      case "string":
        return put(this.#text(site))
      case "integer":
      case "number":
        return put(this.#number(shape))
      case "boolean":
        return put(this.#chance.happens(0.5))
      case "null":
        return put(null)
      case "array":
        return this.#list(site, depth)
      case "object":
        return this.#object(site, depth)
      default:
        return put(this.#anything(depth))
    }
  }

  #text({ name, shape: { maxLength = 64, minLength = 0 } }: Site): string {
    const found = this.#suggest(name) ?? this.#chance.pick(words) ?? ""
    return found.padEnd(minLength, "x").slice(0, maxLength)
  }

  #number({ maximum = 1e6, minimum = -1000, type }: JsonSchema): number {
    const die = this.#chance.fraction()
    if (die < 0.1) return minimum
    if (die < 0.2) return maximum
    const whole = this.#chance.integer(minimum, Math.min(maximum, minimum + 100))
    return type === "integer" || die < 0.7 ? whole : Math.min(maximum, whole + 0.5)
  }

  #list({ name, put, shape: { items = {}, maxItems = 8 } }: Site, depth: number): void {
    const list: Array<Json> = Array.from(
      { length: this.#chance.integer(0, Math.min(maxItems, 3)) },
      () => null
    )
    put(list)
    list.forEach((_, i) => {
      this.grow({ name, shape: items, put: (json) => void (list[i] = json) }, depth + 1)
    })
  }

  #object({ put, shape }: Site, depth: number): void {
    const made = new JsonObject()
    put(made)
    const { additionalProperties, patternProperties, properties = {}, required = [] } = shape
    const others = Object.values(patternProperties ?? {})
    if (typeof additionalProperties === "object") others.push(additionalProperties)
    if (shape.properties === undefined && others.length === 0) {
      for (const name of ["a", "b", "c"]) {
        if (this.#chance.happens(0.5)) this.#member(made, name, nullOrAny, depth)
      }
    }
    for (const [name, inner] of Object.entries(properties)) {
      if (!required.includes(name) && this.#chance.happens(depth === 0 ? 0.5 : 0.7)) continue
      this.#member(made, name, inner, depth)
    }
    for (const inner of others) {
      for (let left = this.#chance.integer(1, 3); left > 0; left--) {
        const name = patternProperties === undefined ? this.#suggest("name in") : "en"
        this.#member(made, name ?? "score", inner, depth)
      }
    }
  }

  #member(within: JsonObject, name: string, shape: JsonSchema, depth: number): void {
    const entry: [string, Json] = [name, null]
    within.entries.push(entry)
    this.grow({ name, shape, within, put: (json) => void (entry[1] = json) }, depth + 1)
  }

  /** A value for a position without a schema. */
  #anything(depth: number): Json {
    const die = this.#chance.fraction()
    if (depth > 4 || die < 0.5) return this.#chance.pick(words) ?? ""
    if (die < 0.7) return this.#chance.integer(-5, 5)
    if (die < 0.85) return [this.#anything(depth + 1), null]
    const made = new JsonObject()
    made.entries.push(["x", this.#anything(depth + 1)], ["y", true])
    return made
  }
}

/** A value one step beyond a bound of the schema. */
const outOfBounds = (shape: JsonSchema): Json | undefined => {
  if (shape.maxLength !== undefined) return "x".repeat(shape.maxLength + 1)
  if (shape.maximum !== undefined) return shape.maximum + 1
  if (shape.minimum !== undefined) return shape.minimum - 1
  if (shape.maxItems !== undefined) return Array.from({ length: shape.maxItems + 1 }, () => "x")
  if (shape.maxProperties === undefined) return undefined
  const made = new JsonObject()
  for (let i = 0; i <= shape.maxProperties; i++) made.entries.push([`k${i}`, 1])
  return made
}

/** Makes one position invalid. */
const corrupt = (chance: Chance, { name, put, shape, within }: Site): void => {
  const die = chance.fraction()
  if (within !== undefined && die < 0.3) {
    const index = within.entries.findIndex(([own]) => own === name)
    if (die < 0.12) within.entries.splice(index, 1)
    else if (die < 0.18) within.entries.push([name, hostileValue(chance)])
    else if (die < 0.24) within.entries.push(["extra", hostileValue(chance)])
    else within.entries.push(["__proto__", new RawJson('{"isAdmin":true}')])
    return
  }
  if (die < 0.5) return put(outOfBounds(shape) ?? hostileValue(chance))
  put(hostileValue(chance))
}

/** A random value of the schema; with `wrong`, one position is invalid. */
export const generateValue = (
  chance: Chance,
  shape: JsonSchema,
  suggest: Suggest,
  wrong: boolean
): Json => {
  let root: Json = null
  const growth = new Generator(chance, suggest)
  growth.grow({ name: "", shape, put: (json) => void (root = json) })
  const site = wrong ? chance.pick(growth.sites) : undefined
  if (site !== undefined) corrupt(chance, site)
  return root
}
