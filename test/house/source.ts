/**
 * A TypeScript source as the house rules see it: text, syntax tree, imports and line numbers.
 *
 * Paths are relative to the root of the repository and use `/`.
 */
import { dirname, join } from "node:path/posix"
import { parseSync, Visitor, type ParseResult } from "oxc-parser"
import { parts } from "./house.ts"

/** Any file with text. */
export interface TextFile {
  readonly path: string
  readonly text: string
}

/** One import, re-export or `import()` of a literal specifier; types count like values. */
export interface Import {
  readonly specifier: string
  readonly offset: number
  /** The file it names, or `undefined` when it names a package. */
  readonly target: string | undefined
}

/** A parsed TypeScript file. */
export interface Source extends TextFile, Pick<ParseResult, "program" | "comments"> {
  readonly imports: ReadonlyArray<Import>
}

/** A broken rule. */
export interface Problem {
  readonly path: string
  readonly line: number
  readonly message: string
}

/** The 1-based line of an offset. */
export const lineOf = (file: TextFile, offset: number): number =>
  file.text.slice(0, offset).split("\n").length

export const problem = (file: TextFile, offset: number, message: string): Problem => ({
  path: file.path,
  line: lineOf(file, offset),
  message
})

/** `#server/app` names `src/server/app.ts`, as the `imports` of package.json have it. */
const rootOf = (path: string): string =>
  parts.some((part) => path.startsWith(`${part}/`)) ? `src/${path}` : path

/** `#room/word` and relative specifiers name files of the repository, all others packages. */
const resolve = (path: string, specifier: string): string | undefined => {
  if (specifier.startsWith("#")) return `${rootOf(specifier.slice(1))}.ts`
  if (specifier.startsWith(".")) return join(dirname(path), specifier)
  return undefined
}

/** Parses one file. Syntax errors throw: nothing can be said about such a file. */
export const parse = ({ path, text }: TextFile): Source => {
  const { program, comments, errors } = parseSync(path, text)
  const [error] = errors
  if (error !== undefined) throw new Error(`${path}: ${error.message}`)
  const imports: Array<Import> = []
  const add = (source: { readonly value: string; readonly start: number } | null) => {
    if (source === null) return
    const target = resolve(path, source.value)
    imports.push({ specifier: source.value, offset: source.start, target })
  }
  new Visitor({
    ImportDeclaration: (node) => add(node.source),
    ExportNamedDeclaration: (node) => add(node.source),
    ExportAllDeclaration: (node) => add(node.source),
    TSImportType: (node) => add(node.source),
    ImportExpression: ({ source }) => {
      if (source.type === "Literal" && typeof source.value === "string") {
        add({ value: source.value, start: source.start })
      }
    }
  }).visit(program)
  return { path, text, program, comments, imports }
}
