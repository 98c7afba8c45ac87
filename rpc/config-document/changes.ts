/** Computes the JSON paths at which two config documents differ. */
import { Predicate } from "effect"
import { memberPath } from "./paths.ts"

type Members = ReadonlyMap<string | number, unknown>

const membersOf = (value: unknown): Members => {
  if (Array.isArray(value)) return new Map<number, unknown>(value.entries())
  return new Map(Predicate.isObject(value) ? Object.entries(value) : [])
}

const kindOf = (value: unknown) =>
  Array.isArray(value) ? "list" : Predicate.isObject(value) ? "object" : "value"

const compare = (path: string, before: unknown, after: unknown): ReadonlyArray<string> => {
  if (Object.is(before, after)) return []
  const present = [before, after].filter((value) => value !== undefined)
  const [kind, ...others] = new Set(present.map(kindOf))
  if (kind === "value" || others.length > 0) return [path]
  const left = membersOf(before)
  const right = membersOf(after)
  const keys = Array.from(new Set([...left.keys(), ...right.keys()]))
  if (keys.length === 0) return present.length === 1 ? [path] : []
  return keys.flatMap((key) => {
    const at = memberPath(path, key)
    const addedOrRemoved = left.has(key) !== right.has(key)
    return kind === "list" && addedOrRemoved ? [at] : compare(at, left.get(key), right.get(key))
  })
}

/**
 * Returns the paths at which two documents differ, such as `features.saves` and `stats[2]`. An added
 * or removed section is listed field by field, an added or removed list entry as a whole.
 */
export const changedPaths = (before: unknown, after: unknown): ReadonlyArray<string> =>
  compare("", before, after)
