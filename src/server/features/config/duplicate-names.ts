/**
 * Finds duplicate names in the objects of a JSON text. A parser keeps only the last one, so a config
 * could show its reader one value and apply another. The caller must pass valid JSON.
 */
import { memberPath } from "#rpc/config-document/paths"
import type { Issue } from "#rpc/errors/codes"

/** An object or list around the current position. */
interface Container {
  readonly path: string
  /** Names of the object so far; undefined for a list. */
  readonly names: Set<string> | undefined
  /** Latest name of an object, or index of a list. */
  at: string | number
  expectsName: boolean
}

const message = "is a duplicate: remove one of the two"

/** Braces, brackets, commas, and strings with their escapes. */
const tokens = /[{}[\],]|"(?:[^"\\]|\\.)*"/gs

const open = (path: string, isObject: boolean): Container => ({
  path,
  names: isObject ? new Set() : undefined,
  at: isObject ? "" : 0,
  expectsName: isObject
})

/** Returns an issue for each duplicate name, at most `max`. */
export const duplicateNames = (text: string, max: number): ReadonlyArray<Issue> => {
  const issues: Array<Issue> = []
  const around: Array<Container> = []
  for (const [token] of text.matchAll(tokens)) {
    const inner = around.at(-1)
    if (token === "{" || token === "[") {
      around.push(open(inner === undefined ? "" : memberPath(inner.path, inner.at), token === "{"))
    } else if (token === "}" || token === "]") {
      around.pop()
    } else if (inner === undefined) {
      continue
    } else if (token === ",") {
      inner.expectsName = inner.names !== undefined
      if (typeof inner.at === "number") inner.at += 1
    } else if (inner.names !== undefined && inner.expectsName) {
      const name: unknown = JSON.parse(token)
      inner.at = String(name)
      inner.expectsName = false
      if (inner.names.has(inner.at)) {
        issues.push({ path: memberPath(inner.path, inner.at), message })
        if (issues.length >= max) return issues
      }
      inner.names.add(inner.at)
    }
  }
  return issues
}
