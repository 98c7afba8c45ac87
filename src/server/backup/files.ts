/** Copies of the data directory: files of apps, and the data of functions. */
import { createReadStream } from "node:fs"
import { chown, copyFile, lstat, mkdir, readdir } from "node:fs/promises"
import { join } from "node:path"
import { Writable } from "node:stream"
import { pipeline } from "node:stream/promises"
import { backup, DatabaseSync } from "node:sqlite"

const privateDirectory = 0o700

const isMissing = (error: unknown): boolean =>
  error instanceof Error && "code" in error && error.code === "ENOENT"

/** The entries of a directory; none if it does not exist. */
export const entriesOf = (directory: string) =>
  readdir(directory, { withFileTypes: true }).catch((error: unknown) => {
    if (isMissing(error)) return []
    throw error
  })

/** A database that is in use is copied by SQLite, as of one moment. */
const copySqlite = async (from: string, to: string): Promise<void> => {
  const database = new DatabaseSync(from, { readOnly: true })
  try {
    await backup(database, to)
  } finally {
    database.close()
  }
}

const besideSqlite = /\.sqlite-(?:wal|shm|journal)$/

/**
 * Copies the files of a folder and its subfolders; returns how many. A file that is removed meanwhile is
 * left out.
 */
export const copyFolder = async (
  from: string,
  to: string,
  onFile: (count: number) => void = () => undefined
): Promise<number> => {
  let count = 0
  const visit = async (source: string, target: string): Promise<void> => {
    const entries = await entriesOf(source)
    if (entries.length > 0) await mkdir(target, { recursive: true, mode: privateDirectory })
    for (const entry of entries) {
      const [file, copy] = [join(source, entry.name), join(target, entry.name)]
      if (entry.isDirectory()) await visit(file, copy)
      if (!entry.isFile() || besideSqlite.test(entry.name)) continue
      const copied = entry.name.endsWith(".sqlite") ? copySqlite(file, copy) : copyFile(file, copy)
      await copied.catch((error: unknown) => {
        if (!isMissing(error)) throw error
      })
      onFile((count += 1))
    }
  }
  await visit(from, to)
  return count
}

/** Reads all files of a folder, and asks SQLite whether each database is whole; returns how many. */
export const checkFiles = async (folder: string): Promise<number> => {
  let count = 0
  for (const entry of await entriesOf(folder)) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) count += await checkFiles(path)
    if (!entry.isFile()) continue
    count += 1
    if (entry.name.endsWith(".sqlite")) checkSqlite(path)
    else
      await pipeline(createReadStream(path), new Writable({ write: (_chunk, _, done) => done() }))
  }
  return count
}

const checkSqlite = (path: string): void => {
  const database = new DatabaseSync(path, { readOnly: true })
  try {
    const [row] = database.prepare("pragma quick_check(1)").all()
    if (row?.["quick_check"] !== "ok") throw new Error(`${path} is damaged`)
  } finally {
    database.close()
  }
}

/** The owner of a file or a folder. */
export const ownerOf = async (path: string): Promise<number> => (await lstat(path)).uid

/** Changes the owner of a folder and all in it. */
export const giveTo = async (folder: string, owner: number): Promise<void> => {
  await chown(folder, owner, owner)
  for (const entry of await entriesOf(folder)) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) await giveTo(path, owner)
    else await chown(path, owner, owner)
  }
}
