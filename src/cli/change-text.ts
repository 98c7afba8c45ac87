/** Text of the changes of a push: each path with what is in force now. */
import { Predicate, type Schema } from "effect"
import { memberPath } from "#rpc/config-document/paths"

/** Longer values are shown as `set`. */
const valueMaxCharacters = 60

/** The value at a path of `changedPaths`; undefined if the document has none. */
const valueAt = (value: unknown, path: string, at = ""): unknown => {
  if (at === path) return value
  const members: ReadonlyArray<readonly [PropertyKey, unknown]> = Array.isArray(value)
    ? Array.from(value.entries())
    : Predicate.isObject(value)
      ? Object.entries(value)
      : []
  for (const [key, member] of members) {
    const inner = memberPath(at, key)
    const rest = path.startsWith(inner) ? path.slice(inner.length) : undefined
    if (rest !== undefined && /^(?:$|[.[])/.test(rest)) return valueAt(member, path, inner)
  }
  return undefined
}

/** Returns `features.saves off`, `resetTimeZone = "UTC"`, `stats[0] set` or `stats[1] removed`. */
export const changeText = (document: Schema.Json, path: string): string => {
  const value = valueAt(document, path)
  if (path.startsWith("features.")) return `${path} ${value === true ? "on" : "off"}`
  if (value === undefined) return `${path} removed`
  const text = JSON.stringify(value)
  const isShort = !Predicate.isObject(value) && text.length <= valueMaxCharacters
  return isShort && !Array.isArray(value) ? `${path} = ${text}` : `${path} set`
}
