/**
 * Checksums of a backup, in the format of `sha256sum`. The backup writes them last: a folder without them is
 * no whole backup. They name each file, so a check finds a file that was changed, lost or added.
 */
import { createHash } from "node:crypto"
import { createReadStream } from "node:fs"
import { open, readFile, rename } from "node:fs/promises"
import { join } from "node:path"
import { pipeline } from "node:stream/promises"
import { Effect } from "effect"
import { filesBelow } from "./files.ts"
import { refuse } from "./location.ts"
import { sumsFile } from "./manifest.ts"
import { failedTo, type Progress } from "./progress.ts"

/** A message names this many files at most. */
const namedFiles = 3

const hashOf = async (file: string): Promise<string> => {
  const hash = createHash("sha256")
  await pipeline(createReadStream(file), hash)
  return hash.digest("hex")
}

/** A name with a line break or a backslash is escaped, and its line begins with a backslash. */
const lineOf = (hash: string, name: string): string => {
  const escaped = name.replaceAll("\\", "\\\\").replaceAll("\n", "\\n").replaceAll("\r", "\\r")
  return `${escaped === name ? "" : "\\"}${hash}  ${escaped}\n`
}

const unescape = (name: string): string =>
  name.replaceAll(/\\([\\nr])/g, (_, sign) => ({ n: "\n", r: "\r" })[String(sign)] ?? "\\")

const lineForm = /^(\\?)([0-9a-f]{64}) {2}(.+)$/

/** The hash of each file; undefined if a line has another form. */
const parseSums = (text: string): ReadonlyMap<string, string> | undefined => {
  const sums = new Map<string, string>()
  if (!text.endsWith("\n")) return undefined
  for (const line of text.slice(0, -1).split("\n")) {
    const [, escaped, hash, name] = lineForm.exec(line) ?? []
    if (hash === undefined || name === undefined) return undefined
    sums.set(escaped === "" ? name : unescape(name), hash)
  }
  return sums
}

/** Writes text to a file that appears with all of it. */
const writeWhole = async (file: string, text: string): Promise<void> => {
  const handle = await open(`${file}.new`, "w", 0o600)
  try {
    await handle.writeFile(text)
    await handle.sync()
  } finally {
    await handle.close()
  }
  await rename(`${file}.new`, file)
}

/** Writes the checksums of all files of a backup, which makes it whole. */
export const writeSums = Effect.fnUntraced(function* (folder: string, show: Progress) {
  const lines: Array<string> = []
  yield* failedTo(`write the checksums of ${folder}`, async () => {
    for (const name of await filesBelow(folder)) {
      lines.push(lineOf(await hashOf(join(folder, name)), name))
      show.now(lines.length)
    }
    await writeWhole(join(folder, sumsFile), lines.join(""))
  })
})

const some = (names: ReadonlyArray<string>): string => {
  const rest = names.length - namedFiles
  return `${names.slice(0, namedFiles).join(", ")}${rest > 0 ? ` and ${rest} more` : ""}`
}

/** Fails unless a backup holds exactly the files of its checksums, each with its bytes. */
export const checkSums = Effect.fnUntraced(function* (folder: string, show: Progress) {
  const file = join(folder, sumsFile)
  const sums = parseSums(yield* failedTo(`read ${file}`, () => readFile(file, "utf8")))
  if (sums === undefined) return yield* refuse(`${file} is damaged: use another backup.`)
  const { changed, found } = yield* failedTo(`read ${folder}`, async () => {
    const names = (await filesBelow(folder)).filter((name) => name !== sumsFile)
    const differing: Array<string> = []
    for (const [index, name] of names.entries()) {
      if (sums.get(name) !== (await hashOf(join(folder, name)))) differing.push(name)
      show.now(index + 1)
    }
    return { changed: differing, found: new Set(names) }
  })
  const lost = sums
    .keys()
    .filter((name) => !found.has(name))
    .toArray()
  if (lost.length > 0) {
    return yield* refuse(`${folder} is damaged, and lacks ${some(lost)}. Use another backup.`)
  }
  if (changed.length === 0) return
  return yield* refuse(
    `${folder} is damaged: ${some(changed)} differ from ${sumsFile}. Use another backup.`
  )
})
