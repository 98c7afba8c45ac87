/** Readers of a raw config document, whose fields may have any type, and issues of its lists. */
import { Predicate } from "effect"
import type { Issue } from "../errors/codes.ts"

export type Members = Readonly<Record<string, unknown>>

export const members = (value: unknown): Members =>
  Predicate.isObject(value) && !Array.isArray(value) ? value : {}

export const entries = (value: unknown): ReadonlyArray<unknown> =>
  Array.isArray(value) ? value : []

export const issueIf = (applies: boolean, path: string, message: string): ReadonlyArray<Issue> =>
  applies ? [{ path, message }] : []

export const lengthIssues = (value: unknown, path: string, max: number): ReadonlyArray<Issue> =>
  issueIf(entries(value).length > max, path, `must have at most ${max} entries`)

export const duplicateKeys = (list: unknown, path: string): ReadonlyArray<Issue> => {
  const first = new Map<string, number>()
  return entries(list).flatMap((entry, index) => {
    const { key } = members(entry)
    if (typeof key !== "string") return []
    const earlier = first.get(key)
    if (earlier === undefined) first.set(key, index)
    return earlier === undefined
      ? []
      : [
          {
            path: `${path}[${index}].key`,
            message: `"${key}" is already the key of ${path}[${earlier}]: use another key`
          }
        ]
  })
}
