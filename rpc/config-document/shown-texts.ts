/**
 * Texts of the config that people read: each shows at least one character, and has no control characters
 * and no bidirectional controls. The post text of share links may have several lines. The fields' own
 * schema refuses empty texts and lone surrogates.
 */
import { Predicate } from "effect"
import type { Issue } from "../errors/codes.ts"
import { lineIssue, linesIssue } from "../text.ts"

/** The members of an object or the entries of a list, with their paths below `path`. */
const children = (value: unknown, path: string): ReadonlyArray<readonly [string, unknown]> => {
  if (Array.isArray(value))
    return value.map((entry, index) => [`${path}[${index}]`, entry] as const)
  if (!Predicate.isObject(value)) return []
  const parent = path === "" ? "" : `${path}.`
  return Object.entries(value).map(([name, member]) => [`${parent}${name}`, member] as const)
}

/** Paths of texts; `*` stands for an entry of a list. */
const texts = [
  { steps: ["stats", "*", "title"], issueOf: lineIssue },
  { steps: ["multiplayer", "modes", "*", "title"], issueOf: lineIssue },
  { steps: ["share", "images", "title"], issueOf: lineIssue },
  { steps: ["share", "tags", "title"], issueOf: lineIssue },
  { steps: ["share", "tags", "description"], issueOf: lineIssue },
  { steps: ["share", "tags", "imageAlt"], issueOf: lineIssue },
  { steps: ["share", "links", "text"], issueOf: linesIssue }
] as const

/** The values at a path, with their own paths. */
const valuesAt = (
  value: unknown,
  path: string,
  [step, ...rest]: ReadonlyArray<string>
): ReadonlyArray<readonly [string, unknown]> =>
  step === undefined
    ? [[path, value]]
    : children(value, path)
        .filter(([name]) =>
          step === "*" ? name.endsWith("]") : name === step || name === `${path}.${step}`
        )
        .flatMap(([name, member]) => valuesAt(member, name, rest))

/** Returns the issues of all texts of a raw document, in one or several languages. */
export const shownTextIssues = (document: unknown): ReadonlyArray<Issue> =>
  texts.flatMap(({ issueOf, steps }) =>
    valuesAt(document, "", steps)
      .flatMap(([path, value]) =>
        typeof value === "string" ? [[path, value] as const] : children(value, path)
      )
      .flatMap(([path, text]) => {
        if (typeof text !== "string" || text === "" || !text.isWellFormed()) return []
        const issue = issueOf(text)
        return issue === undefined
          ? []
          : [{ path, message: issue.replace("Expected", "must have") }]
      })
  )
