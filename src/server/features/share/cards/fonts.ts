/**
 * Built-in fonts of cards, from packages: Latin, Cyrillic and Greek, the scripts of Noto, and emoji. A
 * font comes in files for ranges of characters; the process reads only the files of the characters on a
 * card.
 */
import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import type { FontDetails } from "@takumi-rs/core"

/**
 * Whether a font lacks a range of characters that it claims. The file and the first character name the
 * range.
 */
type FontFilter = (file: string, first: number) => boolean

interface Family {
  readonly name: string
  readonly module: string
  readonly isMissing?: FontFilter
  /** The name of a file for a range, without `.woff2`. */
  readonly files: (
    range: string
  ) => ReadonlyArray<{ readonly file: string; readonly weight?: number }>
}

const symbolFiles = ["math", "symbols"]
const withoutSymbols: FontFilter = (file) => symbolFiles.includes(file)
const withoutHangul: FontFilter = (_file, first) =>
  /\p{Script=Hangul}/u.test(String.fromCodePoint(first))

const variable = (name: string, script: string, isMissing: FontFilter = () => false): Family => ({
  name,
  isMissing,
  module: `@fontsource-variable/noto-sans-${script}`,
  files: (range) => [{ file: `noto-sans-${script}-${range}-wght-normal` }]
})

const families: ReadonlyArray<Family> = [
  {
    name: "Inter",
    module: "@fontsource/inter",
    files: (range) =>
      [400, 700].map((weight) => ({ file: `inter-${range}-${weight}-normal`, weight }))
  },
  variable("Noto Sans Arabic", "arabic", withoutSymbols),
  variable("Noto Sans Hebrew", "hebrew"),
  variable("Noto Sans Thai", "thai"),
  variable("Noto Sans Devanagari", "devanagari"),
  variable("Noto Sans JP", "jp"),
  variable("Noto Sans SC", "sc", withoutHangul),
  variable("Noto Sans KR", "kr")
]

/** Family names in their order of preference. */
export const familyNames: ReadonlyArray<string> = [...families.map(({ name }) => name), "Twemoji"]

/** Font files for a range of characters. */
interface FontFile {
  readonly id: string
  readonly covers: (codePoint: number) => boolean
  readonly load: () => FontDetails
}

const require = createRequire(import.meta.url)

const folderOf = (module: string): string => dirname(require.resolve(`${module}/package.json`))

/** Parses ranges such as `U+0000-00FF,U+0131` to pairs of first and last character. */
const parseRanges = (ranges: string): ReadonlyArray<readonly [number, number]> =>
  ranges.split(",").map((range) => {
    const [first = "", last = first] = range.trim().replace(/^U\+/i, "").split("-")
    return [Number.parseInt(first, 16), Number.parseInt(last, 16)] as const
  })

const filesOf = ({ files, isMissing, module, name }: Family): ReadonlyArray<FontFile> => {
  const folder = folderOf(module)
  const ranges: Record<string, string> = JSON.parse(
    readFileSync(join(folder, "unicode.json"), "utf8")
  )
  return Object.entries(ranges).flatMap(([key, text]) => {
    const file = key.replace(/^\[(.*)\]$/, "$1")
    const unicodeRange = parseRanges(text).filter(([first]) => isMissing?.(file, first) !== true)
    const covers = (codePoint: number) =>
      unicodeRange.some(([first, last]) => first <= codePoint && codePoint <= last)
    return files(file).map(({ file: id, weight }) => ({
      id,
      covers,
      load: () => ({
        name,
        data: readFileSync(join(folder, "files", `${id}.woff2`)),
        unicodeRange: unicodeRange.map(([first, last]): [number, number] => [first, last]),
        ...(weight === undefined ? {} : { weight })
      })
    }))
  })
}

const emojiForm = /\p{Extended_Pictographic}|\p{Regional_Indicator}|\u20e3/u

const emoji: FontFile = {
  id: "emoji",
  covers: (codePoint) => emojiForm.test(String.fromCodePoint(codePoint)),
  load: () => ({
    name: "Twemoji",
    generic: "emoji",
    data: readFileSync(join(folderOf("twemoji-colr-font"), "twemoji.woff2"))
  })
}

/**
 * Returns the font files that a text needs, in the order of the families. The first family with a
 * character provides it.
 */
export const makeFontsFor = (): ((text: string) => ReadonlyArray<FontFile>) => {
  const byFamily = [[emoji], ...families.map(filesOf)]
  return (text) => {
    const needed = new Set<FontFile>()
    for (const character of text) {
      const codePoint = character.codePointAt(0) ?? 0
      const files = byFamily.find((family) => family.some(({ covers }) => covers(codePoint)))
      for (const file of files ?? []) if (file.covers(codePoint)) needed.add(file)
    }
    return byFamily.flat().filter((file) => needed.has(file))
  }
}
