/** What a push changed: the JSON paths at which two config documents differ (decisions 3.5.1). */
import { Predicate } from "effect"
import { memberPath } from "./paths.ts"

const entriesOf = (value: unknown): ReadonlyArray<readonly [string | number, unknown]> => {
  if (Array.isArray(value)) return Array.from(value, (item: unknown, index) => [index, item])
  return Predicate.isObject(value) ? Object.entries(value) : []
}

const kindOf = (value: unknown) =>
  Array.isArray(value) ? "list" : Predicate.isObject(value) ? "object" : "value"

const compare = (path: string, before: unknown, after: unknown): ReadonlyArray<string> => {
  if (Object.is(before, after)) return []
  const whole = before === undefined || after === undefined
  // A whole entry of a list came or went: its fields say nothing more.
  if (whole && path.endsWith("]")) return [path]
  if (!whole && kindOf(before) !== kindOf(after)) return [path]
  const left = new Map(entriesOf(before))
  const right = new Map(entriesOf(after))
  if (left.size === 0 && right.size === 0) {
    return kindOf(before) !== "value" && kindOf(before) === kindOf(after) ? [] : [path]
  }
  return Array.from(new Set([...left.keys(), ...right.keys()])).flatMap((key) =>
    compare(memberPath(path, key), left.get(key), right.get(key))
  )
}

/**
 * The paths that differ, leaves first come from `before`: `features.saves`, `stats[2]`. A section
 * that came or went counts by its fields, an entry of a list as a whole.
 */
export const changedPaths = (before: unknown, after: unknown): ReadonlyArray<string> =>
  compare("", before, after)
