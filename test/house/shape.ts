/**
 * Rules about the shape of the house: folders, file names, headers and sizes.
 */
import { Visitor } from "oxc-parser"
import {
  emptyNames,
  featureWords,
  generatedFiles,
  maxFileLines,
  maxFunctionLines,
  maxLineLength,
  rooms,
  storageWords,
  topLevel
} from "./house.ts"
import { lineOf, problem, type Problem, type Source, type TextFile } from "./source.ts"

type Program = Source["program"]
type VisitorObject = ConstructorParameters<typeof Visitor>[0]
type Call = Parameters<NonNullable<VisitorObject["CallExpression"]>>[0]
type Expression = Call["callee"]

/** Refuses folders at the top besides those that `CONTRIBUTING.md` names; those with a leading dot apart. */
export const topFolders = (file: TextFile): ReadonlyArray<Problem> => {
  const [folder, ...rest] = file.path.split("/")
  if (rest.length === 0 || folder === undefined || topLevel.includes(folder)) return []
  return folder === ".ci" ? [] : [problem(file, 0, `no folder at the top is called ${folder}`)]
}

const kebabCase = /^[a-z0-9]+(-[a-z0-9]+)*$/

/** Files and folders of the rooms are named in kebab-case, with a word that says something. */
export const names = (file: TextFile): ReadonlyArray<Problem> => {
  const parts = file.path.split("/")
  const known: ReadonlyArray<string> = rooms
  if (!known.includes(parts[0] ?? "")) return []
  return parts.flatMap((part) => {
    // A migration is numbered: `0001_players.ts`.
    const name = part.replace(/\..*$/, "").replace(/^\d{4}_/, "")
    if (emptyNames.includes(name)) return [problem(file, 0, `${part} says nothing: name it`)]
    if (kebabCase.test(name) || /^README\.md$|^Dockerfile|^\./.test(part)) return []
    return [problem(file, 0, `${part} is not kebab-case`)]
  })
}

/** One word a feature: `sql/<word>.ts`, `src/server/features/<word>/` and `test/features/<word>/`. */
export const words = ({ path, text }: TextFile): ReadonlyArray<Problem> => {
  const feature = /^(?:src\/server|test)\/features\/([^/.]+)/.exec(path)?.[1]
  const stored = /^sql\/([^/.]+)/.exec(path)?.[1]
  const known = stored === undefined ? featureWords : [...featureWords, ...storageWords]
  const word = feature ?? stored
  if (word === undefined || known.includes(word)) return []
  return [problem({ path, text }, 0, `${word} is no word of a feature (see rpc/features.ts)`)]
}

/**
 * A word is a file or a folder, never both: neither `saves.ts` nor `saves.test.ts` stands beside `saves/`.
 * Generated files are exempt: `npm run generate` names them after the standard that they follow.
 */
export const twins = (files: ReadonlyArray<TextFile>): ReadonlyArray<Problem> => {
  const folders = new Set(files.flatMap(({ path }) => foldersOf(path)))
  return files.flatMap((file) => {
    const base = file.path.replace(/(?:\.test)?\.[^./]+$/, "")
    if (base === file.path || !folders.has(base) || generatedFiles.includes(file.path)) return []
    return [problem(file, 0, `${file.path} stands beside the folder ${base}/: use one of them`)]
  })
}

/** Each migration has a number of its own, since a number runs once: the second would be skipped. */
export const migrationNumbers = (files: ReadonlyArray<TextFile>): ReadonlyArray<Problem> => {
  const first = new Map<string, string>()
  return files.flatMap((file) => {
    const [, number, name] = /^sql\/migrations\/(\d+)_(.*)\.ts$/.exec(file.path) ?? []
    if (number === undefined || name === undefined) return []
    const other = first.get(number)
    if (other === undefined) first.set(number, name)
    return other === undefined
      ? []
      : [problem(file, 0, `${number} is the number of ${other}: take the next free one`)]
  })
}

/** The folders that a path is in, from the outermost. */
const foldersOf = (path: string): ReadonlyArray<string> => {
  const parts = path.split("/").slice(0, -1)
  return parts.map((_, index) => parts.slice(0, index + 1).join("/"))
}

/** Every module opens with a doc comment that says what it is. */
export const header = (file: TextFile): ReadonlyArray<Problem> =>
  /^(#!.*\n)?\s*\/\*\*/.test(file.text)
    ? []
    : [problem(file, 0, "open the file with a /** comment that says what it is")]

/** Files and lines stay short. */
export const sizes = (file: TextFile): ReadonlyArray<Problem> => {
  const lines = file.text.replace(/\n$/, "").split("\n")
  const long = lines.flatMap((text, index) =>
    text.length > maxLineLength
      ? [{ path: file.path, line: index + 1, message: `line of ${text.length} characters` }]
      : []
  )
  return lines.length > maxFileLines && !generatedFiles.includes(file.path)
    ? [problem(file, 0, `file of ${lines.length} lines, ${maxFileLines} is the most`), ...long]
    : long
}

/** `describe("…", suite)` and `layer(…)("…", suite)` take a list of tests, not a function body. */
const opensSuite = (callee: Expression): boolean => {
  switch (callee.type) {
    case "Identifier":
      return callee.name === "describe" || callee.name === "layer"
    case "CallExpression":
      return opensSuite(callee.callee)
    case "MemberExpression":
      return (
        opensSuite(callee.object) ||
        (callee.property.type === "Identifier" && callee.property.name === "layer")
      )
    default:
      return false
  }
}

const suitesOf = (program: Program): ReadonlySet<number> => {
  const suites = new Set<number>()
  new Visitor({
    CallExpression: (call) => {
      if (opensSuite(call.callee)) for (const argument of call.arguments) suites.add(argument.start)
    }
  }).visit(program)
  return suites
}

/** Functions fit on a screen. */
export const functionSizes = (source: Source): ReadonlyArray<Problem> => {
  const suites = suitesOf(source.program)
  const problems: Array<Problem> = []
  const measure = ({ start, end }: { readonly start: number; readonly end: number }) => {
    const lines = lineOf(source, end) - lineOf(source, start) + 1
    if (lines <= maxFunctionLines || suites.has(start)) return
    const message = `function of ${lines} lines, ${maxFunctionLines} is the most`
    problems.push(problem(source, start, message))
  }
  new Visitor({
    FunctionDeclaration: measure,
    FunctionExpression: measure,
    ArrowFunctionExpression: measure
  }).visit(source.program)
  return problems
}
