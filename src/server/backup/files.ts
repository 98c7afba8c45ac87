/** Copies of the data directory: files of apps, and the data of functions. */
import { chown, copyFile, lstat, mkdir, readdir } from "node:fs/promises"
import { join } from "node:path"
import { backup, DatabaseSync } from "node:sqlite"
import { pathToFileURL } from "node:url"

const privateDirectory = 0o700

const isMissing = (error: unknown): boolean =>
  error instanceof Error && "code" in error && error.code === "ENOENT"

/** The entries of a directory; none if it does not exist. */
export const entriesOf = (directory: string) =>
  readdir(directory, { withFileTypes: true }).catch((error: unknown) => {
    if (isMissing(error)) return []
    throw error
  })

/** The files below a folder, as paths from there in order of their names. */
export const filesBelow = async (folder: string, below = ""): Promise<ReadonlyArray<string>> => {
  const found: Array<string> = []
  for (const entry of await readdir(join(folder, below), { withFileTypes: true })) {
    const path = below === "" ? entry.name : `${below}/${entry.name}`
    if (entry.isDirectory()) found.push(...(await filesBelow(folder, path)))
    else found.push(path)
  }
  return found.toSorted()
}

/** More pages than a database has. */
const allPages = 2 ** 31 - 1

/**
 * A database that is in use is copied by SQLite, as of one moment. All pages go in one step: between two
 * steps a write would make it begin again, and a database that is always written would never be copied.
 */
const copySqlite = async (from: string, to: string): Promise<void> => {
  const database = new DatabaseSync(from, { readOnly: true })
  try {
    await backup(database, to, { rate: allPages })
  } finally {
    database.close()
  }
}

const besideSqlite = /\.sqlite-(?:wal|shm|journal)$/

interface CopyOptions {
  /** Whether services write to the files meanwhile. */
  readonly isLive?: boolean
  readonly onFile?: (count: number) => void
}

/**
 * Copies the files of a folder and its subfolders; returns how many. A file that is removed meanwhile is
 * left out.
 */
export const copyFolder = async (
  from: string,
  to: string,
  { isLive = false, onFile = () => undefined }: CopyOptions = {}
): Promise<number> => {
  let count = 0
  const visit = async (source: string, target: string): Promise<void> => {
    const entries = await entriesOf(source)
    if (entries.length > 0) await mkdir(target, { recursive: true, mode: privateDirectory })
    for (const entry of entries) {
      const [file, copy] = [join(source, entry.name), join(target, entry.name)]
      if (entry.isDirectory()) await visit(file, copy)
      if (!entry.isFile() || besideSqlite.test(entry.name)) continue
      const isOpen = isLive && entry.name.endsWith(".sqlite")
      const copied = isOpen ? copySqlite(file, copy) : copyFile(file, copy)
      await copied.then(
        () => onFile((count += 1)),
        (error: unknown) => {
          if (!isMissing(error)) throw error
        }
      )
    }
  }
  await visit(from, to)
  return count
}

/** Asks SQLite whether each database of a folder is whole. */
export const checkDatabases = async (folder: string): Promise<void> => {
  for (const name of await filesBelow(folder)) {
    if (name.endsWith(".sqlite")) checkSqlite(join(folder, name))
  }
}

const checkSqlite = (path: string): void => {
  const file = pathToFileURL(path)
  // Reading it would make files beside it, which are none of the backup.
  file.searchParams.set("immutable", "1")
  const database = new DatabaseSync(file, { readOnly: true })
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
