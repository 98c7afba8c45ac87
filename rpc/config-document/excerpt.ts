/**
 * Excerpt of a config document that bounds the work of its validation: the size limit alone allows ninety
 * thousand problems. A document from which an excerpt drops entries of a list is invalid in any case.
 */
import { Predicate } from "effect"
import { configLimits } from "./limits.ts"

/** Entries of a list in the excerpt, one more than any list may have: it is still too long. */
const entriesMax = Math.max(configLimits.statsMax, configLimits.integrityRulesMax) + 1

/** Returns the document with the first entries of each list. */
export const withShortLists = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.slice(0, entriesMax).map(withShortLists)
  if (!Predicate.isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, withShortLists(member)])
  )
}

/**
 * Returns an invalid document with all members of the `known` names, and the first `othersMax` of all
 * others. The service then lists its problems quickly.
 */
export const withFewOthers = (
  value: unknown,
  known: ReadonlySet<string>,
  othersMax: number
): unknown => {
  let others = 0
  const copy = (part: unknown): unknown => {
    if (Array.isArray(part)) return part.map(copy)
    if (!Predicate.isObject(part)) return part
    const kept = Object.entries(part).filter(
      ([name]) => known.has(name) || (others += 1) <= othersMax
    )
    return Object.fromEntries(kept.map(([name, member]) => [name, copy(member)]))
  }
  return copy(value)
}
