/**
 * Rules about prose: no word of a private language, no citation that leads nowhere. They hold for code,
 * comments, names of tests and documents.
 */
import { dirname, join } from "node:path/posix"
import { bannedWordings, foreignCitations, fragmentStarts, topLevel } from "./house.ts"
import { problem, type Problem, type TextFile } from "./source.ts"

/** Every place of a text that a pattern matches. */
const matchesOf = (text: string, pattern: RegExp): ReadonlyArray<RegExpExecArray> =>
  Array.from(text.matchAll(new RegExp(pattern.source, `g${pattern.flags}`)))

/** The same pattern, whose blanks also match the end of a line, in a comment too. */
const acrossLines = ({ flags, source }: RegExp): RegExp =>
  new RegExp(source.replaceAll(" ", String.raw`(?: |\s*\n[\s*/]*)`), flags)

/** The same lines, with the words of each name apart: `roomCode` as `room Code`. */
const withNamesApart = ({ path, text }: TextFile): TextFile => ({
  path,
  text: text.replace(/(?<=[a-z0-9])(?=[A-Z])/g, " ").replaceAll("_", " ")
})

/** No banned wording, whatever it stands in: prose, or a name in camel or snake case. */
export const wordings = (file: TextFile): ReadonlyArray<Problem> => {
  const apart = withNamesApart(file)
  return bannedWordings.flatMap(({ instead, pattern }) =>
    matchesOf(apart.text, acrossLines(pattern)).map(({ 0: found, index }) =>
      problem(apart, index, `do not write "${found.replace(/\s[\s*/]*/g, " ")}": ${instead}`)
    )
  )
}

const fragment = new RegExp(
  `\\bit(?:\\.\\w+(?:\\([^()]*\\))?)*\\(\\s*["'\`]((?:${fragmentStarts.join("|")}) [^"'\`]*)`
)

/** Names of tests read alone, without the name of their group. */
export const titles = (file: TextFile): ReadonlyArray<Problem> =>
  file.path.endsWith(".test.ts")
    ? matchesOf(file.text, fragment).map(({ 1: title = "", index }) =>
        problem(file, index, `start the name of this test with a subject or a verb: ${title}`)
      )
    : []

/**
 * A path in backticks: of a file in any folder, of a document at the top, or from a folder at the top.
 * (`test/docs/links.test.ts` checks the links of documents.)
 */
const pathForms = [
  /`((?:\.{1,2}\/)?(?:[\w.@-]+\/)+[\w.-]+\.(?:ts|js|md|json|yaml|conf|sql))`/,
  /`([\w-]+\.md)`/,
  new RegExp(`\`((?:${topLevel.join("|")}|\\.ci)/[\\w./-]*[\\w-])/?\``)
]

/** Files that an installation, a running service or a benchmark makes. */
const made = /^(?:\.svc|dist|node_modules|results\/tmp)\//

/** Folders that a path may start from, beside the root and the folder of the file that names it. */
const bases = ["src/server", "src", "test", "test/support", "docs"]

/**
 * No citation that a reader of the repository cannot follow: of a document that is not in it, or of a
 * file that does not exist. `paths` are those of all files.
 */
export const citations = (file: TextFile, paths: ReadonlySet<string>): ReadonlyArray<Problem> => {
  const foreign = foreignCitations.flatMap((pattern) =>
    matchesOf(file.text, pattern).map(({ 0: found, index }) =>
      problem(file, index, `"${found}" is not in this repository: say the fact, or cite docs/`)
    )
  )
  const dangling = pathForms.flatMap((form) =>
    matchesOf(file.text, form).flatMap(({ 1: cited = "", index }) => {
      const from = ["", dirname(file.path), ...bases]
      const exists = from.some((base) => {
        const path = join(base, cited).replace(/\/$/, "")
        return paths.has(path) || Array.from(paths).some((it) => it.startsWith(`${path}/`))
      })
      return exists || made.test(cited) ? [] : [problem(file, index, `${cited} does not exist`)]
    })
  )
  return [...foreign, ...dangling]
}
