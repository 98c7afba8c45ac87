/**
 * Rules about the language: no hidden clock, randomness or environment, no `any`, no silenced
 * compiler, nothing unfinished, and nothing that holds on one machine only.
 */
import { matchesGlob } from "node:path/posix"
import { Visitor } from "oxc-parser"
import { forbiddenMarks, forbiddenNames } from "./house.ts"
import { problem, type Problem, type Source, type TextFile } from "./source.ts"

type VisitorObject = ConstructorParameters<typeof Visitor>[0]
type Expression = Parameters<NonNullable<VisitorObject["CallExpression"]>>[0]["callee"]

/** `process.env` for the expression `globalThis.process["env"]`; `undefined` for anything else. */
const nameOf = (node: Expression): string | undefined => {
  if (node.type === "Identifier") return node.name
  if (node.type !== "MemberExpression") return undefined
  const object = nameOf(node.object)
  const { property } = node
  const key =
    property.type === "Literal"
      ? property.value
      : property.type === "Identifier" && !node.computed
        ? property.name
        : undefined
  if (object === undefined || typeof key !== "string") return undefined
  return object === "globalThis" ? key : `${object}.${key}`
}

/** Names that would make a test depend on the wall clock, on luck or on the shell. */
export const hiddenInputs = (source: Source): ReadonlyArray<Problem> => {
  const problems: Array<Problem> = []
  const inForce = forbiddenNames.filter(
    ({ allowed, within = ["**"] }) =>
      within.some((glob) => matchesGlob(source.path, glob)) &&
      !allowed.some((glob) => matchesGlob(source.path, glob))
  )
  const check = (offset: number, name: string | undefined) => {
    const found = inForce.find((it) => it.name === name)
    if (found === undefined) return
    problems.push(problem(source, offset, `no ${found.name}: use ${found.instead}`))
  }
  for (const { offset, specifier } of source.imports) check(offset, specifier)
  new Visitor({
    MemberExpression: (node) => check(node.start, nameOf(node)),
    NewExpression: ({ start, callee }) => check(start, nameOf(callee)),
    CallExpression: ({ start, callee }) => {
      if (callee.type === "Identifier") check(start, callee.name)
    }
  }).visit(source.program)
  return problems
}

/** No `any`, and no cast through `unknown` or `never`: both hide what the compiler knows. */
export const types = (source: Source): ReadonlyArray<Problem> => {
  const problems: Array<Problem> = []
  new Visitor({
    TSAnyKeyword: (node) => {
      problems.push(problem(source, node.start, "no any: decode, or say the type"))
    },
    TSAsExpression: ({ start, expression, typeAnnotation }) => {
      const double =
        expression.type === "TSAsExpression" && expression.typeAnnotation.type !== "TSTypeReference"
      if (double || typeAnnotation.type === "TSNeverKeyword")
        problems.push(problem(source, start, "no cast that silences the compiler"))
    }
  }).visit(source.program)
  return problems
}

/** No unfinished work and no switched-off compiler in comments. */
export const marks = (source: Source): ReadonlyArray<Problem> =>
  source.comments.flatMap((comment) =>
    forbiddenMarks.flatMap((mark) => {
      const found = new RegExp(`(?<![\\w-])${mark}(?![\\w-])`).exec(comment.value)
      if (found === null) return []
      // `value` starts after the two characters that open a comment.
      return [problem(source, comment.start + 2 + found.index, `no ${mark}: do it or leave it`)]
    })
  )

/** Absolute paths of somebody's machine; the same folder names inside a URL or a route are none. */
const machinePath = /(?<![\w.])\/(?:work|home|Users)\/|[A-Z]:\\Users\\/g

/** The repository stands alone: it means the same on every machine. */
export const machinePaths = (file: TextFile): ReadonlyArray<Problem> =>
  Array.from(file.text.matchAll(machinePath), ({ 0: path, index }) =>
    problem(file, index, `${path} is a path of one machine`)
  )
