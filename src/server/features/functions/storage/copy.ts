/**
 * Copies the changed data of an environment to a directory of the service, while its process may run. Pinning
 * the files pauses the process for milliseconds only.
 */
import { mkdirSync, rmSync } from "node:fs"
import { dirname, join } from "node:path"
import { backup } from "node:sqlite"
import { setTimeout as delay } from "node:timers/promises"
import { functionSnapshots } from "#rpc/functions/runtime-limits"
import {
  type PinnedFiles,
  pinFiles,
  type PinFolders,
  type Known,
  type FileVersions,
  type PinnedDatabase
} from "./pinned-files.ts"
import { NotPaused } from "./pause.ts"

/** Data directory, and a staging directory on the same file system. */
export interface CopyFolders {
  readonly data: string
  readonly staging: string
}

/** Process that may write meanwhile. `starting` means that it cannot be paused yet. */
export type Writer = () => number | "starting" | undefined

/** Data of an environment, and copies of the files that the last snapshot lacks. */
export interface Copied {
  readonly versions: FileVersions
  readonly blobs: ReadonlySet<string>
  /** Copies by the path of their original. */
  readonly copies: ReadonlyMap<string, string>
}

/** Whether the process cannot be paused now, or its writes block a reader of the database. */
const isBusy = (error: unknown): boolean =>
  error instanceof NotPaused || (error instanceof Error && /database is locked/.test(error.message))

const pinWhenPossible = async (
  folders: PinFolders,
  writer: Writer,
  known: Known
): Promise<PinnedFiles> => {
  for (let tries = 1; ; tries += 1) {
    const pid = writer()
    try {
      if (pid !== "starting") return pinFiles(folders, pid, known)
      throw new NotPaused("the process is starting")
    } catch (error) {
      if (!isBusy(error) || tries >= functionSnapshots.triesMax) throw error
      await delay(functionSnapshots.retryMillis)
    }
  }
}

const copyAll = async (
  changed: ReadonlyArray<PinnedDatabase>,
  to: string
): Promise<ReadonlyMap<string, string>> => {
  const copies = new Map<string, string>()
  try {
    for (const { database, path } of changed) {
      const file = join(to, path)
      mkdirSync(dirname(file), { recursive: true })
      await backup(database, file, { rate: functionSnapshots.pagesPerStep })
      copies.set(path, file)
    }
    return copies
  } finally {
    for (const { database } of changed) database.close()
  }
}

/** Copies the databases that differ from the versions, and links the blobs without a stored copy. */
export const copyChanged = async (
  { data, staging }: CopyFolders,
  writer: Writer,
  { hasBlob, versions }: Omit<Known, "copied">
): Promise<Copied> => {
  rmSync(staging, { recursive: true, force: true })
  const folders = { data, links: join(staging, "blobs") }
  const copies = new Map<string, string>()
  let last: PinnedFiles | undefined
  for (let tries = 0; last === undefined || last.left > 0; tries += 1) {
    const copied = new Set(copies.keys())
    last = await pinWhenPossible(folders, writer, {
      hasBlob,
      copied,
      versions: last?.versions ?? versions
    })
    const files = await copyAll(last.changed, join(staging, `databases${tries}`))
    for (const [path, file] of files) copies.set(path, file)
  }
  for (const path of last.blobs) if (!hasBlob(path)) copies.set(path, join(folders.links, path))
  return { versions: last.versions, blobs: last.blobs, copies }
}
