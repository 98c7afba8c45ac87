/**
 * Pins the files of an environment at one moment. A read transaction pins a database against later
 * writes. Hard links pin blobs against removal. Only data that changed since the last
 * snapshot is pinned.
 */
import { closeSync, linkSync, mkdirSync, openSync, readdirSync, readSync, statSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { functionSnapshots } from "#rpc/functions/runtime-limits"
import { whilePaused } from "./pause.ts"

/** Directories of the stored data of an environment. They exclude the cache. */
const storages = ["d1", "kv", "r2", "do"] as const

/** Versions of databases. An equal version means that a database is unchanged. */
export type FileVersions = ReadonlyMap<string, string>

interface Listed {
  readonly databases: ReadonlyArray<string>
  readonly blobs: ReadonlyArray<string>
}

/** Database at the moment of pinning. */
export interface PinnedDatabase {
  readonly path: string
  readonly database: DatabaseSync
}

/** Data of an environment at one moment. */
export interface PinnedFiles {
  /** Versions of all databases but the changed ones beyond `databasesPinned`. */
  readonly versions: FileVersions
  readonly blobs: ReadonlySet<string>
  /** Changed databases. The copy step closes each. */
  readonly changed: ReadonlyArray<PinnedDatabase>
  /** Number of changed databases beyond `databasesPinned`. They need another run. */
  readonly left: number
}

/** Data directory, and the directory for links to its blobs. */
export interface PinFolders {
  readonly data: string
  readonly links: string
}

/**
 * Path of a blob. Blobs of KV and files have their own directory; a durable object may have any name.
 */
const blobForm = /^(?:kv|r2)\/[^/]+\/blobs\//

const list = (data: string): Listed => {
  const databases: Array<string> = []
  const blobs: Array<string> = []
  for (const storage of storages) {
    const root = join(data, storage)
    if (statSync(root, { throwIfNoEntry: false }) === undefined) continue
    for (const entry of readdirSync(root, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue
      const path = `${entry.parentPath.slice(data.length + 1)}/${entry.name}`
      if (blobForm.test(path)) blobs.push(path)
      else if (path.endsWith(".sqlite")) databases.push(path)
    }
  }
  return { databases, blobs }
}

/** Bytes of both copies of the header with which the index of a write-ahead log begins. */
const indexHeaderBytes = 96

const codeOf = (error: unknown): unknown =>
  error instanceof Error && "code" in error ? error.code : undefined

/** Returns the header of the index, in hexadecimal; empty without an index. */
const indexHeader = (file: string): string => {
  const header = Buffer.alloc(indexHeaderBytes)
  try {
    const descriptor = openSync(file, "r")
    try {
      readSync(descriptor, header, 0, indexHeaderBytes, 0)
    } finally {
      closeSync(descriptor)
    }
  } catch (error) {
    // A process that is not paused may close the database at any moment.
    if (codeOf(error) === "ENOENT") return ""
    throw error
  }
  return header.toString("hex")
}

/**
 * Returns the version of a database. A process may be paused after a commit is in the log and before the index
 * shows it. The commit then changes the header of the index later, and neither size nor time of the log.
 */
const versionOf = (file: string): string => {
  const [database, log] = [file, `${file}-wal`].map((path) =>
    statSync(path, { bigint: true, throwIfNoEntry: false })
  )
  const index = log === undefined || log.size === 0n ? "" : indexHeader(`${file}-shm`)
  return [database, log]
    .map((stat) => (stat === undefined ? "" : `${stat.ino} ${stat.size} ${stat.mtimeNs}`))
    .concat(index)
    .join(" ")
}

/** Returns the current versions of all databases. */
export const versionsOf = (data: string): FileVersions =>
  new Map(list(data).databases.map((path) => [path, versionOf(join(data, path))]))

const pin = (file: string): DatabaseSync => {
  const database = new DatabaseSync(file, { readOnly: true })
  try {
    database.exec("begin")
    // Only a read begins the transaction.
    database.prepare("select 1 from sqlite_master limit 1").get()
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

const link = ({ data, links }: PinFolders, blobs: Iterable<string>): void => {
  for (const path of blobs) {
    mkdirSync(join(links, path, ".."), { recursive: true })
    try {
      linkSync(join(data, path), join(links, path))
    } catch (error) {
      const code = codeOf(error)
      // It is linked already, or the process has removed it before.
      if (code !== "EEXIST" && code !== "ENOENT") throw error
    }
  }
}

/** Whether a database differs from the versions or no longer exists. Does not pause the process. */
export const isChanged = (data: string, versions: FileVersions): boolean => {
  const now = versionsOf(data)
  return (
    now.size !== versions.size || [...now].some(([path, version]) => versions.get(path) !== version)
  )
}

const changedPaths = (before: FileVersions, now: FileVersions): ReadonlyArray<string> =>
  // Databases, KV and files before durable objects, of which there may be many.
  [...now.keys()]
    .filter((path) => before.get(path) !== now.get(path))
    .toSorted((a, b) => Number(a.startsWith("do/")) - Number(b.startsWith("do/")))

/** Data that needs no pinning. */
export interface Known {
  /** Versions of databases that the last snapshot has, or that an earlier run copied. */
  readonly versions: FileVersions
  /** Durable objects that an earlier run copied. Each is consistent by itself. */
  readonly copied: ReadonlySet<string>
  /** Whether the store has a blob. Blobs never change. */
  readonly hasBlob: (path: string) => boolean
}

/** Pins the changed files while the process is paused. */
export const pinFiles = (
  folders: PinFolders,
  pid: number | undefined,
  known: Known
): PinnedFiles => {
  const unknown = (blobs: Iterable<string>) => [...blobs].filter((path) => !known.hasBlob(path))
  // Most links are made before the pause.
  link(folders, unknown(list(folders.data).blobs))
  const changed: Array<PinnedDatabase> = []
  try {
    return whilePaused(pid, () => {
      const { blobs, databases } = list(folders.data)
      const versionNow = (path: string): string => {
        const isWhole = known.copied.has(path) && path.startsWith("do/")
        return (
          (isWhole ? known.versions.get(path) : undefined) ?? versionOf(join(folders.data, path))
        )
      }
      const versions = new Map(databases.map((path) => [path, versionNow(path)]))
      const paths = changedPaths(known.versions, versions)
      for (const path of paths.slice(0, functionSnapshots.databasesPinned)) {
        changed.push({ path, database: pin(join(folders.data, path)) })
      }
      link(folders, unknown(blobs))
      const left = paths.slice(functionSnapshots.databasesPinned)
      for (const path of left) versions.delete(path)
      return { versions, blobs: new Set(blobs), changed, left: left.length }
    })
  } catch (error) {
    for (const { database } of changed) database.close()
    throw error
  }
}
