/** Rule about calls in the process: who may make a known caller, which stands for a secret key. */
import { Visitor } from "oxc-parser"
import { knownCallerMakers, knownCallerProvider } from "./house.ts"
import { problem, type Problem, type Source } from "./source.ts"

const message = `only ${knownCallerMakers.join(" and ")} make a known caller`

/** Objects with a door, and provisions of the reference, outside of the files that may have them. */
export const knownCallers = (source: Source): ReadonlyArray<Problem> => {
  const { path } = source
  if (!path.startsWith("src/server/") || knownCallerMakers.includes(path)) return []
  const problems: Array<Problem> = []
  new Visitor({
    Property: ({ key, start }) => {
      if (key.type === "Identifier" && key.name === "door") {
        problems.push(problem(source, start, message))
      }
    },
    CallExpression: ({ arguments: given, callee, start }) => {
      const provides =
        callee.type === "MemberExpression" &&
        callee.property.type === "Identifier" &&
        callee.property.name.startsWith("provide") &&
        given.some((it) => it.type === "Identifier" && it.name === "KnownCaller")
      if (provides && path !== knownCallerProvider) problems.push(problem(source, start, message))
    }
  }).visit(source.program)
  return problems
}
