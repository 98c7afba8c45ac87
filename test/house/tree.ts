/**
 * The files of the repository, as they lie on disk.
 *
 * Not read through git: the rules also hold for an unpacked archive.
 */
import { readdirSync, readFileSync } from "node:fs"
import { join, relative, sep } from "node:path"
import type { TextFile } from "./source.ts"

const root = join(import.meta.dirname, "../..")

/** What is installed, generated or kept by a running service. */
const skipped = ["node_modules", ".git", ".svc", "dist", "coverage", "tmp", "package-lock.json"]

const pathsIn = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder, { withFileTypes: true })
    .filter((entry) => !skipped.includes(entry.name))
    .flatMap((entry) => {
      const path = join(folder, entry.name)
      return entry.isDirectory() ? pathsIn(path) : entry.isFile() ? [path] : []
    })

/** Every file with text; a NUL byte marks a binary one. */
export const readTree = (): ReadonlyArray<TextFile> =>
  pathsIn(root)
    .map((path) => ({
      path: relative(root, path).split(sep).join("/"),
      text: readFileSync(path, "utf8")
    }))
    .filter(({ text }) => !text.includes("\0"))
