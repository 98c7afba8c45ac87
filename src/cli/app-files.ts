/** The files of an app on disk: which are deployed, and their hashes. */
import { createHash } from "node:crypto"
import { createReadStream } from "node:fs"
import { readdir, readFile, stat } from "node:fs/promises"
import { join } from "node:path"
import { pipeline } from "node:stream/promises"
import { Effect } from "effect"
import ignore from "ignore"
import { hosting } from "#rpc/hosting/limits"
import { pathIssue } from "#rpc/hosting/paths"
import { usageFailure } from "./failures.ts"

/** A file to deploy. */
export interface AppFile {
  readonly path: string
  readonly sha256: string
  readonly size: number
  /** The path on disk. */
  readonly source: string
}

const ignoreFile = ".svcignore"

/** Files that are never deployed, whatever `.svcignore` says. */
const always = [ignoreFile, ".git", "node_modules", ".env", ".env.*", ".DS_Store", "Thumbs.db"]

const hashOf = async (file: string): Promise<string> => {
  const hash = createHash("sha256")
  await pipeline(createReadStream(file), hash)
  return hash.digest("hex")
}

const readIgnored = (folder: string) =>
  readFile(join(folder, ignoreFile), "utf8").catch((cause: NodeJS.ErrnoException) => {
    if (cause.code === "ENOENT") return ""
    throw cause
  })

/**
 * Lists the files below a folder. It does not follow links, since they may lead out of the folder.
 */
const listFiles = async (folder: string): Promise<ReadonlyArray<string>> => {
  const filter = ignore()
    .add(await readIgnored(folder))
    .add(always)
  const found: Array<string> = []
  const visit = async (below: string): Promise<void> => {
    for (const entry of await readdir(join(folder, below), { withFileTypes: true })) {
      const path = `${below}${entry.name}`.normalize("NFC")
      if (entry.isDirectory() && !filter.ignores(`${path}/`)) await visit(`${below}${entry.name}/`)
      if (entry.isFile() && !filter.ignores(path)) found.push(`${below}${entry.name}`)
    }
  }
  await visit("")
  return found.toSorted()
}

const describe = async (folder: string, name: string): Promise<AppFile> => {
  const source = join(folder, name)
  const { size } = await stat(source)
  return { path: name.normalize("NFC"), sha256: await hashOf(source), size, source }
}

const issueOf = ({ path, size }: AppFile): string | undefined => {
  const issue = pathIssue(path)
  if (issue !== undefined) return `${path}: ${issue}`
  return size > hosting.blobMaxBytes ? `${path}: Expected at most 50 MB` : undefined
}

/** Names that differ only in case are one file on some machines; the service refuses them. */
const caseIssues = (files: ReadonlyArray<AppFile>): ReadonlyArray<string> => {
  const seen = new Map<string, string>()
  return files.flatMap(({ path }) => {
    const folded = path.toLowerCase()
    const first = seen.get(folded)
    seen.set(folded, first ?? path)
    return first === undefined ? [] : [`${path}: ${first} has the same name, apart from case`]
  })
}

const hashesAtOnce = 8

/** Reads the files of an app; fails if one of them cannot be deployed. */
export const readAppFiles = Effect.fnUntraced(function* (folder: string) {
  const unreadable = (cause: unknown) =>
    usageFailure(
      `Failed to read ${folder}: ${cause instanceof Error ? cause.message : String(cause)}`,
      "Build your app first, or name the folder: svc deploy <folder>"
    )
  const names = yield* Effect.tryPromise({ try: () => listFiles(folder), catch: unreadable })
  if (names.length === 0) return yield* usageFailure(`${folder} has no files to deploy.`)
  if (names.length > hosting.filesMax) {
    return yield* usageFailure(
      `${folder} has ${names.length} files; a deployment has at most ${hosting.filesMax}.`,
      `Name folders to leave out in ${folder}/${ignoreFile}`
    )
  }
  const files = yield* Effect.forEach(
    names,
    (name) => Effect.tryPromise({ try: () => describe(folder, name), catch: unreadable }),
    { concurrency: hashesAtOnce }
  )
  const issues = [...files.flatMap((file) => issueOf(file) ?? []), ...caseIssues(files)]
  if (issues.length === 0) return files
  return yield* usageFailure(
    `${folder} has files that cannot be deployed.`,
    ...issues,
    `Leave files out with ${folder}/${ignoreFile}`
  )
})
