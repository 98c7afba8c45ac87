/**
 * Compiles schemas to checks. The work of a check is bounded by the size of the data: every part is read
 * once, at most eight levels deep. A keyword that this release does not know is ignored: the push that
 * stored it has checked it.
 */
import {
  acceptsAll,
  type DataSchema,
  type DataSchemas,
  formsOf,
  resolved,
  type Scalar,
  schemaNamed,
  typesOf,
  valuesOf
} from "./schema.ts"

/** Why a value does not fit, and where in it. */
export interface Problem {
  readonly path: ReadonlyArray<string | number>
  readonly problem: string
}

export type Check = (value: unknown) => Problem | undefined

type Members = Readonly<Record<string, unknown>>

/** The parts of an object's check, for states that change by their top-level keys. */
export interface ObjectParts {
  readonly members: ReadonlyMap<string, Check>
  readonly required: ReadonlyArray<string>
  readonly closed: boolean
}

const fail = (problem: string): Problem => ({ path: [], problem })

export const below = (key: string | number, { path, problem }: Problem): Problem => ({
  path: [key, ...path],
  problem
})

export const missing = (name: string): Problem => below(name, fail("is required"))
export const undeclared = (name: string): Problem =>
  below(name, fail("is not declared: leave it out"))

const shownMax = 8

/** Values as they stand in a problem. */
const shown = (values: Iterable<Scalar>): string => {
  const all = Array.from(values, (value) => JSON.stringify(value))
  const more = all.length > shownMax ? ", ..." : ""
  return `must be ${all.length === 1 ? "" : "one of "}${all.slice(0, shownMax).join(", ")}${more}`
}

const nouns = {
  object: "an object",
  array: "a list",
  string: "a string",
  number: "a number",
  integer: "an integer",
  boolean: "true or false",
  null: "null"
} as const

const range = (min: number | undefined, max: number | undefined, unit: string): string => {
  if (min === undefined) return `must be at most ${max}${unit}`
  return max === undefined ? `must be at least ${min}${unit}` : `must be ${min} to ${max}${unit}`
}

/** Makes the check of a bounded quantity of `T`; undefined without bounds. */
const bounded = <T>(
  min: number | undefined,
  max: number | undefined,
  unit: string,
  measure: (value: T) => number
): ((value: T) => Problem | undefined) | undefined => {
  if (min === undefined && max === undefined) return undefined
  const [least, most] = [min ?? Number.NEGATIVE_INFINITY, max ?? Number.POSITIVE_INFINITY]
  const problem = fail(range(min, max, unit))
  return (value) => {
    const measured = measure(value)
    return measured >= least && measured <= most ? undefined : problem
  }
}

/** Characters of a text, as JSON Schema counts them: a pair of surrogates is one. */
const characters = (text: string): number => {
  let count = text.length
  for (let at = 0; at < text.length; at++) {
    const code = text.codePointAt(at)
    if (code === undefined || code <= 0xffff) continue
    count -= 1
    at += 1
  }
  return count
}

const checkString = ({ maxLength, minLength }: DataSchema) =>
  bounded<string>(minLength, maxLength, " characters long", characters)

const notInteger = fail("must be an integer")

const checkNumber = ({ maximum, minimum }: DataSchema, onlyIntegers: boolean) => {
  const inRange = bounded<number>(minimum, maximum, "", (value) => value)
  if (!onlyIntegers) return inRange
  return (value: number) => (Number.isInteger(value) ? inRange?.(value) : notInteger)
}

const checkArray = ({ items, maxItems, minItems }: DataSchema, compile: Compile) => {
  const sized = bounded<ReadonlyArray<unknown>>(
    minItems,
    maxItems,
    " entries long",
    (it) => it.length
  )
  const entry = items === undefined ? undefined : compile(items)
  if (entry === undefined) return sized
  return (value: ReadonlyArray<unknown>) => {
    const problem = sized?.(value)
    if (problem !== undefined) return problem
    for (let at = 0; at < value.length; at++) {
      const found = entry(value[at])
      if (found !== undefined) return below(at, found)
    }
    return undefined
  }
}

const partsOf = (schema: DataSchema, compile: Compile): ObjectParts => ({
  members: new Map(
    Object.entries(schema.properties ?? {}).map(([name, member]) => [
      name,
      compile(member) ?? (() => undefined)
    ])
  ),
  required: schema.required ?? [],
  closed: schema.additionalProperties === false
})

const checkObject = ({ closed, members, required }: ObjectParts) => {
  if (!closed && members.size === 0 && required.length === 0) return undefined
  return (value: Members) => {
    for (const name of required) if (!Object.hasOwn(value, name)) return missing(name)
    for (const name of Object.keys(value)) {
      const member = members.get(name)
      if (member === undefined) {
        if (closed) return undeclared(name)
        continue
      }
      const found = member(value[name])
      if (found !== undefined) return below(name, found)
    }
    return undefined
  }
}

type Part<T> = ((value: T) => Problem | undefined) | undefined
type Compile = (schema: DataSchema) => Check | undefined

const nothing = () => undefined

/** Makes the check of a value by its type. */
const byType = (schema: DataSchema, compile: Compile): Check => {
  const types = typesOf(schema) ?? []
  const wrong = fail(`must be ${types.map((type) => nouns[type]).join(" or ")}`)
  const refuse = () => wrong
  const part = <T>(applies: boolean, make: () => Part<T>): ((value: T) => Problem | undefined) =>
    applies ? (make() ?? nothing) : refuse
  const isNumber = types.includes("number")
  const onNumber = part(isNumber || types.includes("integer"), () => checkNumber(schema, !isNumber))
  const onString = part(types.includes("string"), () => checkString(schema))
  const onArray = part(types.includes("array"), () => checkArray(schema, compile))
  const onObject = part(types.includes("object"), () => checkObject(partsOf(schema, compile)))
  const onBoolean = types.includes("boolean") ? nothing : refuse
  const onNull = types.includes("null") ? nothing : refuse
  return (value) => {
    if (typeof value === "number") return onNumber(value)
    if (typeof value === "string") return onString(value)
    if (typeof value === "boolean") return onBoolean()
    if (value === null) return onNull()
    return Array.isArray(value) ? onArray(value) : isMembers(value) ? onObject(value) : wrong
  }
}

const isMembers = (value: unknown): value is Members =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const checkValues = (values: ReadonlyArray<Scalar>): Check => {
  const set = new Set<unknown>(values)
  const wrong = fail(shown(values))
  return (value) => (set.has(value) ? undefined : wrong)
}

const checkForms = (
  schema: ReadonlyArray<DataSchema>,
  schemas: DataSchemas,
  compile: Compile
): Check | undefined => {
  const forms = formsOf(schema, schemas)
  if (forms === undefined) return undefined
  const { tag } = forms
  const byTag = new Map<unknown, Check>()
  for (const [value, form] of forms.byTag) byTag.set(value, compile(form) ?? nothing)
  const notObject = fail("must be an object")
  const unknownForm = below(tag, fail(shown(forms.byTag.keys())))
  return (value) => {
    if (!isMembers(value)) return notObject
    if (!Object.hasOwn(value, tag)) return missing(tag)
    const check = byTag.get(value[tag])
    return check === undefined ? unknownForm : check(value)
  }
}

const both = (first: Check | undefined, second: Check | undefined): Check | undefined => {
  if (first === undefined || second === undefined) return first ?? second
  return (value) => first(value) ?? second(value)
}

/** The checks of the schemas of one config; each is compiled when it is first needed. */
export interface Checks {
  /** Returns the check of a schema; undefined if there is none of this name, or if it accepts everything. */
  readonly of: (name: string) => Check | undefined
  /** Returns the parts of a schema that is one object with members; undefined for every other. */
  readonly partsOf: (name: string) => ObjectParts | undefined
}

/** Compiles schemas that a push has checked. */
export const compileSchemas = (schemas: DataSchemas): Checks => {
  const known = new Map<string, Check | undefined>()
  const named = (name: string): Check | undefined => {
    const schema = schemaNamed(schemas, name)
    if (!known.has(name)) {
      // A schema that refers to itself accepts everything below: a push refuses it.
      known.set(name, undefined)
      known.set(name, schema === undefined ? undefined : compile(schema))
    }
    return known.get(name)
  }
  const compile: Compile = (schema) => {
    if (schema.$ref !== undefined) return named(schema.$ref)
    if (schema.oneOf !== undefined) return checkForms(schema.oneOf, schemas, compile)
    if (acceptsAll(schema)) return undefined
    const values = valuesOf(schema)
    return both(
      schema.type === undefined ? undefined : byType(schema, compile),
      values === undefined ? undefined : checkValues(values)
    )
  }
  return {
    of: named,
    partsOf: (name) => {
      const schema = schemaNamed(schemas, name)
      if (schema === undefined) return undefined
      const content = resolved(schema, schemas)
      const isObject = content.type === "object" && valuesOf(content) === undefined
      return isObject ? partsOf(content, compile) : undefined
    }
  }
}
