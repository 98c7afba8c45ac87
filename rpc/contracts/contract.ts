/** The contract of a mode: what its messages, its states and its metadata look like. */
import { jsonPath } from "../config-document/paths.ts"
import { isOpenText } from "./open-text.ts"
import { type DataSchemas, schemaNamed } from "./schema.ts"
import {
  below,
  type Check,
  type Checks,
  compileSchemas,
  missing,
  type ObjectParts,
  type Problem,
  undeclared
} from "./validate.ts"

/** The field `contract` of a mode: names of schemas. */
export interface ModeContract {
  readonly messages: Readonly<Record<string, string>>
  readonly state?: string
  readonly playerState?: string
  readonly metadata?: string
  /** Whether messages of other types are refused. */
  readonly strict: boolean
}

/** A value that breaks the contract: its path in the frame, and what is wrong there. */
export interface Violation {
  readonly path: string
  readonly problem: string
}

/** A state that changes by its top-level keys. */
export interface StateContract {
  /** Checks a state after a patch. Keys that the patch does not name have been checked before. */
  readonly violation: (
    merged: ReadonlyMap<string, { readonly value: unknown }>,
    changed: Iterable<string>
  ) => Violation | undefined
}

/** A compiled contract. */
export interface Contract {
  /** Checks a message. One without data is one of null. */
  readonly messageViolation: (type: string, data: unknown) => Violation | undefined
  /** Whether messages of this type carry text that players choose freely. */
  readonly isOpen: (type: string) => boolean
  readonly state: StateContract | undefined
  readonly playerState: StateContract | undefined
  readonly metadataViolation: (metadata: unknown) => Violation | undefined
}

const pathMaxCharacters = 256

const violation = (root: string, { path, problem }: Problem): Violation => {
  const text = jsonPath([root, ...path])
  const isLong = text.length > pathMaxCharacters
  return { path: isLong ? `${text.slice(0, pathMaxCharacters)}...` : text, problem }
}

type State = ReadonlyMap<string, { readonly value: unknown }>

const membersProblem = (
  { closed, members, required }: ObjectParts,
  state: State,
  changed: Iterable<string>
): Problem | undefined => {
  for (const name of required) if (!state.has(name)) return missing(name)
  for (const name of changed) {
    const entry = state.get(name)
    if (entry === undefined) continue
    const member = members.get(name)
    if (member === undefined) {
      if (closed) return undeclared(name)
      continue
    }
    const found = member(entry.value)
    if (found !== undefined) return below(name, found)
  }
  return undefined
}

const wholeProblem = (check: Check, state: State): Problem | undefined =>
  check(Object.fromEntries(Array.from(state, ([name, { value }]) => [name, value])))

const stateContract = (
  root: string,
  name: string | undefined,
  checks: Checks
): StateContract | undefined => {
  const check = name === undefined ? undefined : checks.of(name)
  if (name === undefined || check === undefined) return undefined
  const parts = checks.partsOf(name)
  return {
    violation: (merged, changed) => {
      const problem =
        parts === undefined ? wholeProblem(check, merged) : membersProblem(parts, merged, changed)
      return problem === undefined ? undefined : violation(root, problem)
    }
  }
}

/** Compiles the contract of a mode. */
export const compileContract = (
  { messages, metadata, playerState, state, strict }: ModeContract,
  schemas: DataSchemas
): Contract => {
  const checks = compileSchemas(schemas)
  const types = new Map(Object.entries(messages))
  const open = new Map<string, boolean>()
  const metadataCheck = metadata === undefined ? undefined : checks.of(metadata)
  const isOpen = (type: string): boolean => {
    const name = types.get(type)
    const schema = name === undefined ? undefined : schemaNamed(schemas, name)
    return schema === undefined || isOpenText(schema, schemas)
  }
  return {
    messageViolation: (type, data) => {
      const name = types.get(type)
      if (name === undefined) {
        if (!strict) return undefined
        return { path: "type", problem: "is not declared in the contract of this mode" }
      }
      const problem = checks.of(name)?.(data ?? null)
      return problem === undefined ? undefined : violation("data", problem)
    },
    isOpen: (type) => {
      // Undeclared types are chosen by players: nothing of them is kept.
      if (!types.has(type)) return true
      const known = open.get(type) ?? isOpen(type)
      open.set(type, known)
      return known
    },
    state: stateContract("state", state, checks),
    playerState: stateContract("state", playerState, checks),
    metadataViolation: (given) => {
      const problem = metadataCheck?.(given)
      return problem === undefined ? undefined : violation("metadata", problem)
    }
  }
}
