/**
 * Rule about what emits errors: a request, socket, server, stream or process has an error listener from the
 * function that makes it. Without one Node ends the process at the first error, and a listener that another
 * function adds later comes too late for a client that has gone meanwhile.
 */
import { matchesGlob } from "node:path/posix"
import { Visitor } from "oxc-parser"
import { emitterExceptions, emitterModules } from "./house.ts"
import { problem, type Problem, type Source } from "./source.ts"

interface Range {
  readonly start: number
  readonly end: number
}

/** What makes an emitter in a file, by its local name. */
const makersOf = ({ program }: Source): ReadonlyMap<string, string> => {
  const makers = new Map<string, string>()
  new Visitor({
    ImportDeclaration: ({ importKind, source, specifiers }) => {
      const names = emitterModules[source.value]
      if (names === undefined || importKind === "type") return
      for (const specifier of specifiers) {
        if (specifier.type !== "ImportSpecifier" || specifier.importKind === "type") continue
        const { imported, local } = specifier
        if (imported.type === "Identifier" && names.includes(imported.name)) {
          makers.set(local.name, imported.name)
        }
      }
    }
  }).visit(program)
  return makers
}

const contains = (outer: Range, inner: Range): boolean =>
  outer.start <= inner.start && inner.end <= outer.end

/** Parts of a file that the rule looks at. */
interface Parts {
  readonly made: Array<Range & { readonly maker: string }>
  readonly functions: Array<Range>
  /** Calls that listen to all their arguments: `pipeline`, `finished`. */
  readonly pipelines: Array<Range>
  /** Calls `object.on("error", ...)`, with the range of the object. */
  readonly listeners: Array<Range>
  /** Names that values get. */
  readonly names: Array<{ readonly name: Range; readonly value: Range }>
}

const pipelineNames = new Set(["pipeline", "finished"])

const partsOf = (source: Source): Parts => {
  const makers = makersOf(source)
  const parts: Parts = { made: [], functions: [], pipelines: [], listeners: [], names: [] }
  const addMade = (
    node: Range,
    callee: { readonly type: string; readonly name?: unknown }
  ): void => {
    const maker = callee.type === "Identifier" ? makers.get(String(callee.name)) : undefined
    if (maker !== undefined) parts.made.push({ start: node.start, end: node.end, maker })
  }
  const addFunction = (node: Range): void => void parts.functions.push(node)
  new Visitor({
    FunctionDeclaration: addFunction,
    FunctionExpression: addFunction,
    ArrowFunctionExpression: addFunction,
    NewExpression: (node) => addMade(node, node.callee),
    CallExpression: (node) => {
      const { arguments: given, callee } = node
      addMade(node, callee)
      if (callee.type === "Identifier" && pipelineNames.has(callee.name)) parts.pipelines.push(node)
      if (callee.type !== "MemberExpression" || callee.property.type !== "Identifier") return
      const [event] = given
      const isError = event?.type === "Literal" && event.value === "error"
      if (callee.property.name === "on" && isError) parts.listeners.push(callee.object)
    },
    VariableDeclarator: ({ id, init }) => {
      if (init !== null) parts.names.push({ name: id, value: init })
    },
    AssignmentExpression: ({ left, right }) => {
      parts.names.push({ name: left, value: right })
    }
  }).visit(source.program)
  return parts
}

/** Whether a text has a name that is not a part of a longer one. */
const hasName = (text: string, name: string): boolean => {
  const escaped = name.replaceAll(/[$.]/g, String.raw`\$&`)
  return new RegExp(`(?<![\\w$.#])${escaped}(?![\\w$])`).test(text)
}

/** Refuses what emits errors without a listener in the same function. */
export const emitters = (source: Source): ReadonlyArray<Problem> => {
  const isExempt = emitterExceptions.some(({ path }) => matchesGlob(source.path, path))
  if (!source.path.startsWith("src/") || isExempt) return []
  const { functions, listeners, made, names, pipelines } = partsOf(source)
  const textOf = ({ end, start }: Range): string => source.text.slice(start, end)
  const size = ({ end, start }: Range): number => end - start
  const smallest = (ranges: ReadonlyArray<Range>): Range =>
    ranges.toSorted((a, b) => size(a) - size(b))[0] ?? { start: 0, end: source.text.length }
  const hasListener = (one: Range): boolean => {
    const around = smallest(functions.filter((other) => contains(other, one)))
    const heard = listeners.filter((listener) => contains(around, listener))
    const piped = pipelines.filter((pipeline) => contains(around, pipeline))
    if ([...heard, ...piped].some((range) => contains(range, one))) return true
    const named = names.filter(({ value }) => contains(value, one) && contains(around, value))
    if (named.length === 0) return false
    const name = textOf(named.toSorted((a, b) => size(a.value) - size(b.value))[0]?.name ?? one)
    const plain = name.replace(/\s*:[^]*$/, "")
    const begins = new RegExp(`^${plain.replaceAll(/[$.]/g, String.raw`\$&`)}(?![\\w$])`)
    return (
      heard.some((listener) => begins.test(textOf(listener))) ||
      piped.some((pipeline) => hasName(textOf(pipeline), plain))
    )
  }
  return made
    .filter((one) => !hasListener(one))
    .map(({ maker, start }) =>
      problem(source, start, `${maker} without .on("error", ...) in the function that calls it`)
    )
}
