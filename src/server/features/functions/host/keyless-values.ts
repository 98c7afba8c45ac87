/**
 * Values of KV and files to which no key leads. The simulator writes a value to a file of its own, and then
 * its key to a database. If the process ends in between, the file stays.
 */
import { type Dirent, lstatSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"

export interface KeylessValue {
  readonly file: string
  readonly bytes: number
}

/** Entries of a folder; none if it does not exist. Links are no folders here: code may have made them. */
const entriesOf = (folder: string): ReadonlyArray<Dirent> =>
  lstatSync(folder, { throwIfNoEntry: false })?.isDirectory() === true
    ? readdirSync(folder, { withFileTypes: true })
    : []

const foldersIn = (folder: string): ReadonlyArray<string> =>
  entriesOf(folder).flatMap((entry) => (entry.isDirectory() ? [join(folder, entry.name)] : []))

const filesIn = (folder: string): ReadonlyArray<string> =>
  entriesOf(folder).flatMap((entry) => (entry.isFile() ? [join(folder, entry.name)] : []))

/** Databases of keys. The runtime keeps one of alarms beside them. */
const databasesIn = (folder: string): ReadonlyArray<string> =>
  filesIn(folder).filter((file) => file.endsWith(".sqlite") && !file.endsWith("/metadata.sqlite"))

const tablesWithValues = `
  select t.name from sqlite_master t join pragma_table_info(t.name) c
  where t.type = 'table' and c.name = 'blob_id'`

/** Adds the names of all values that a database leads to. False for a database of an unknown form. */
const addValues = (file: string, names: Set<unknown>): boolean => {
  const database = new DatabaseSync(file, { readOnly: true })
  try {
    const tables = database.prepare(tablesWithValues).all()
    for (const { name } of tables) {
      const select = `select blob_id from "${String(name).replaceAll('"', '""')}"`
      for (const row of database.prepare(select).iterate()) names.add(row["blob_id"])
    }
    return tables.length > 0
  } finally {
    database.close()
  }
}

const keylessIn = (kind: string, writtenBefore: number): ReadonlyArray<KeylessValue> => {
  const stores = foldersIn(kind)
  // Files before keys: a value that gets its key meanwhile has one.
  const files = stores.flatMap((store) => filesIn(join(store, "blobs")))
  const databases = stores.flatMap(databasesIn)
  const names = new Set<unknown>()
  // Without all keys, a value that has one could be taken for one that has none.
  if (databases.length === 0 || !databases.every((file) => addValues(file, names))) return []
  return files.flatMap((file) => {
    const found = lstatSync(file, { throwIfNoEntry: false })
    const isKeyless = !names.has(file.slice(file.lastIndexOf("/") + 1))
    return found !== undefined && isKeyless && found.mtimeMs < writtenBefore
      ? [{ file, bytes: found.size }]
      : []
  })
}

/**
 * Returns the values without a key in the data of an environment that were written before a time. One that
 * a process is about to give a key is among them, unless there is no process.
 */
export const keylessValues = (data: string, writtenBefore: number): ReadonlyArray<KeylessValue> =>
  ["kv", "r2"].flatMap((kind) => keylessIn(join(data, kind), writtenBefore))
