/**
 * Changes of contracts that break players: data that fitted before, and does not any more. Without such a
 * change, everything that the old contract accepts the new one accepts, too.
 */
import type { ModeContract } from "./contract.ts"
import { isOpenText } from "./open-text.ts"
import {
  acceptsAll,
  type DataSchema,
  type DataSchemas,
  formsOf,
  resolved,
  type Scalar,
  schemaNamed,
  type TypeName,
  typesOf,
  valuesOf
} from "./schema.ts"
import { type Check, compileSchemas } from "./validate.ts"
import { memberPath } from "../config-document/paths.ts"

/** A breaking change, and where it stands in the config. */
export interface BreakingChange {
  readonly path: string
  readonly change: string
}

/** Schemas with their checks, before or after the change. */
interface Side {
  readonly schemas: DataSchemas
  readonly check: (schema: DataSchema) => Check
}

/** The values of a schema that has only some; undefined for all others. */
const finiteValues = (schema: DataSchema): ReadonlyArray<Scalar> | undefined => {
  const values = valuesOf(schema)
  if (values !== undefined) return values
  const types = typesOf(schema)
  if (types === undefined || !types.every((type) => type === "boolean" || type === "null")) {
    return undefined
  }
  return types.flatMap((type) => (type === "boolean" ? [true, false] : [null]))
}

const numbers: ReadonlyArray<TypeName> = ["number", "integer"]

/** Bounds, what they say, and the types that have them. */
const bounds = [
  ["minimum", "is at least", numbers],
  ["minLength", "has a length of at least", ["string"]],
  ["minItems", "has a length of at least", ["array"]],
  ["maximum", "is at most", numbers],
  ["maxLength", "has a length of at most", ["string"]],
  ["maxItems", "has a length of at most", ["array"]]
] as const

/** Compares one pair of schemas. */
class Comparison {
  readonly changes: Array<{ readonly at: string; readonly change: string }> = []
  readonly #before: Side
  readonly #after: Side
  /** Pairs that were compared: schemas refer to each other more than once. */
  readonly #compared = new Map<DataSchema, Set<DataSchema>>()

  constructor(before: Side, after: Side) {
    this.#before = before
    this.#after = after
  }

  compare(old: DataSchema, next: DataSchema, at: string): void {
    const before = resolved(old, this.#before.schemas)
    const after = resolved(next, this.#after.schemas)
    const compared = this.#compared.get(before) ?? new Set()
    if (compared.has(after)) return
    this.#compared.set(before, compared.add(after))
    if (acceptsAll(after)) return
    if (acceptsAll(before)) return this.#add(at, "was free, and is checked now")
    if (before.oneOf !== undefined) return this.#compareForms(before.oneOf, after, at)
    if (after.oneOf !== undefined) return this.#compareToForms(before, after.oneOf, at)
    const values = finiteValues(before)
    if (values !== undefined) return this.#compareValues(before, values, after, at)
    if (valuesOf(after) !== undefined) return this.#add(at, "is one of a list of values now")
    this.#compareTypes(before, after, at)
  }

  #add(at: string, change: string): void {
    this.changes.push({ at, change })
  }

  #compareForms(forms: ReadonlyArray<DataSchema>, after: DataSchema, at: string): void {
    for (const form of forms) this.compare(form, after, at)
  }

  /** Compares one form of before, or a plain object, with the form of now that has its tag. */
  #compareToForms(before: DataSchema, oneOf: ReadonlyArray<DataSchema>, at: string): void {
    const forms = formsOf(oneOf, this.#after.schemas)
    if (forms === undefined) return
    const { byTag, tag } = forms
    const isObject = before.type === "object" && before.required?.includes(tag) === true
    const property = schemaNamed(before.properties ?? {}, tag)
    const values =
      isObject && property !== undefined
        ? finiteValues(resolved(property, this.#before.schemas))
        : undefined
    if (values === undefined) return this.#add(at, "has several forms now")
    for (const value of values) {
      const form = byTag.get(value)
      if (form === undefined) this.#add(memberPath(at, tag), `refuses ${JSON.stringify(value)} now`)
      else this.#compareObjects(before, form, at, tag)
    }
  }

  #compareValues(
    before: DataSchema,
    values: ReadonlyArray<Scalar>,
    after: DataSchema,
    at: string
  ): void {
    const check = this.#after.check(after)
    const fits = this.#before.check(before)
    for (const value of values) {
      if (fits(value) === undefined && check(value) !== undefined) {
        this.#add(at, `refuses ${JSON.stringify(value)} now`)
      }
    }
  }

  #compareTypes(before: DataSchema, after: DataSchema, at: string): void {
    const known: ReadonlyArray<TypeName> = typesOf(after) ?? []
    const types = typesOf(before) ?? []
    for (const type of types) {
      const fits = known.includes(type) || (type === "integer" && known.includes("number"))
      if (!fits) this.#add(at, `refuses the type "${type}" now`)
    }
    for (const [keyword, says, of] of bounds) {
      const applies = of.some((type) => types.includes(type))
      if (applies) this.#compareBound(before, after, keyword, says, at)
    }
    if (types.includes("array") && known.includes("array") && after.items !== undefined) {
      this.compare(before.items ?? {}, after.items, `${at}[]`)
    }
    if (types.includes("object") && known.includes("object")) {
      this.#compareObjects(before, after, at)
    }
  }

  #compareBound(
    before: DataSchema,
    after: DataSchema,
    keyword: (typeof bounds)[number][0],
    says: string,
    at: string
  ): void {
    const [was, is] = [before[keyword], after[keyword]]
    if (is === undefined) return
    const isLeast = keyword.startsWith("min")
    // A length is never negative: this bound refuses nothing.
    if (isLeast && keyword !== "minimum" && is === 0) return
    if (was !== undefined && (isLeast ? is <= was : is >= was)) return
    this.#add(at, `${says} ${is} now${was === undefined ? "" : `, was ${was}`}`)
  }

  /** Compares two objects; `tag` is a property that both have compared already. */
  #compareObjects(before: DataSchema, after: DataSchema, at: string, tag?: string): void {
    const was = before.properties ?? {}
    const is = after.properties ?? {}
    for (const name of after.required ?? []) {
      if (before.required?.includes(name) !== true)
        this.#add(memberPath(at, name), "is required now")
    }
    const isClosed = after.additionalProperties === false
    const wasClosed = before.additionalProperties === false
    if (isClosed && !wasClosed) this.#add(at, "refuses members that are not declared now")
    for (const [name, member] of Object.entries(was)) {
      const path = memberPath(at, name)
      const now = schemaNamed(is, name)
      if (now !== undefined && name !== tag) this.compare(member, now, path)
      if (now === undefined && isClosed) this.#add(path, "is not declared any more")
    }
    if (wasClosed) return
    for (const [name, member] of Object.entries(is)) {
      if (schemaNamed(was, name) === undefined) this.compare({}, member, memberPath(at, name))
    }
  }
}

/** A contract with the schemas of its config. */
export interface ContractSide {
  readonly contract: ModeContract | undefined
  readonly schemas: DataSchemas
}

const sideOf = (schemas: DataSchemas): Side => ({
  schemas,
  check: (schema) => compileSchemas({ ...schemas, "": schema }).of("") ?? (() => undefined)
})

const changesOf = (
  before: ContractSide,
  after: ContractSide,
  names: readonly [string | undefined, string | undefined],
  path: string,
  root: string
): ReadonlyArray<BreakingChange> => {
  const [was, is] = names
  if (is === undefined) return []
  const comparison = new Comparison(sideOf(before.schemas), sideOf(after.schemas))
  const old = was === undefined ? undefined : schemaNamed(before.schemas, was)
  comparison.compare(old ?? {}, schemaNamed(after.schemas, is) ?? {}, root)
  return comparison.changes.map(({ at, change }) => ({ path, change: `${at} ${change}` }))
}

/** The change of a message type whose text becomes that of players who may not chat. */
const textChange = (
  before: ContractSide,
  after: ContractSide,
  [was, is]: readonly [string, string],
  path: string
): ReadonlyArray<BreakingChange> => {
  const isOpen = (name: string, { schemas }: ContractSide) =>
    isOpenText(schemaNamed(schemas, name) ?? {}, schemas)
  if (isOpen(was, before) || !isOpen(is, after)) return []
  const change = "data can hold free text now: players who may not chat neither send nor receive it"
  return [{ path, change }]
}

/** Returns the breaking changes of one mode's contract, which stands at `path`. */
export const breakingChanges = (
  before: ContractSide,
  after: ContractSide,
  path: string
): ReadonlyArray<BreakingChange> => {
  const [was, is] = [before.contract, after.contract]
  if (is === undefined) return []
  if (was === undefined) return [{ path, change: "the mode has a contract now" }]
  const messagePath = (type: string) => memberPath(`${path}.messages`, type)
  const types = Array.from(new Set([...Object.keys(was.messages), ...Object.keys(is.messages)]))
  const messages = types.flatMap((type) => {
    const at = messagePath(type)
    const names = [nameOf(was, type), nameOf(is, type)] as const
    if (names[1] === undefined) {
      return is.strict ? [{ path: at, change: "messages of this type are refused now" }] : []
    }
    // A type that was refused before breaks nobody.
    if (names[0] === undefined && was.strict) return []
    return [
      ...changesOf(before, after, names, at, "data"),
      ...(names[0] === undefined ? [] : textChange(before, after, [names[0], names[1]], at))
    ]
  })
  const strict = is.strict && !was.strict
  const parts = (["state", "playerState", "metadata"] as const).flatMap((part) =>
    changesOf(before, after, [was[part], is[part]], `${path}.${part}`, part)
  )
  return [
    ...messages,
    ...(strict ? [{ path: `${path}.strict`, change: "undeclared types are refused now" }] : []),
    ...parts
  ]
}

const nameOf = ({ messages }: ModeContract, type: string): string | undefined =>
  Object.hasOwn(messages, type) ? messages[type] : undefined
