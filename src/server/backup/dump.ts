/** Writes a backup: the database as of one moment, then the data directory. */
import { createWriteStream } from "node:fs"
import { chmod, copyFile, mkdir, readFile, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { pipeline } from "node:stream/promises"
import { createGzip } from "node:zlib"
import { DateTime, Effect, Option, Redacted, Stream } from "effect"
import manifestOfRelease from "../../../package.json" with { type: "json" }
import {
  appliedMigration,
  beginSnapshot,
  listSequences,
  listTables,
  readRows,
  type Session,
  tablesAt,
  type TableShape
} from "#sql/backup"
import { functionFolders } from "../features/functions/host/directories.ts"
import { copyFolder, entriesOf, ownerOf } from "./files.ts"
import {
  databaseFolder,
  dataFolder,
  keptFiles,
  keyFile,
  keyIdOf,
  type Manifest,
  manifestFile,
  manifestFormat
} from "./manifest.ts"
import { checkPresent, databaseOf, openSession, type DataLocation, refuse } from "./location.ts"
import { failedTo, type Progress } from "./progress.ts"

/** Rows as lines of JSON. */
const writeTable = Effect.fnUntraced(function* (session: Session, table: TableShape, file: string) {
  let rows = 0
  const lines = readRows(session, table).pipe(
    Stream.map((row) => {
      rows += 1
      return `${JSON.stringify(row)}\n`
    })
  )
  const iterable = yield* Stream.toAsyncIterableEffect(lines)
  yield* failedTo(`write ${file}`, () =>
    pipeline(iterable, createGzip(), createWriteStream(file, { mode: 0o600 }))
  )
  return rows
})

/** Refuses a database that lacks tables of its migration: it is another one, or its role sees another schema. */
const checkTables = (migration: number, shapes: ReadonlyArray<TableShape>) => {
  const found = new Set(shapes.map(({ name }) => name))
  const missing = tablesAt(migration).filter((name) => !found.has(name))
  if (missing.length === 0) return Effect.void
  return refuse(
    `The database is at migration ${migration} and lacks ${missing.length} tables of it (${missing.join(", ")}). ` +
      "Name the database of the service in DATABASE_URL, and a role that sees its schema."
  )
}

const dumpDatabase = Effect.fnUntraced(function* (
  location: DataLocation,
  folder: string,
  show: Progress
) {
  const session = yield* openSession(yield* databaseOf(location))
  yield* beginSnapshot(session)
  const migration = yield* appliedMigration(session)
  if (migration === 0)
    return yield* refuse("The database has no tables: there is nothing to back up.")
  const shapes = yield* listTables(session)
  yield* checkTables(migration, shapes)
  const tables = yield* Effect.forEach(shapes, (shape, index) =>
    Effect.gen(function* () {
      yield* show(`table ${shape.name} (${index + 1} of ${shapes.length})`)
      const rows = yield* writeTable(session, shape, join(folder, `${shape.name}.jsonl.gz`))
      return { ...shape, rows }
    })
  )
  // Sequences belong to no snapshot: read after the rows, they are beyond them.
  const sequences = yield* listSequences(session)
  yield* session.query("commit", [], false)
  return { migration, tables, sequences }
}, Effect.scoped)

/** The master key: in the settings, which keep it, or in the data directory, from where it is copied. */
const dumpKey = Effect.fnUntraced(function* ({ dataDir, masterKey }: DataLocation, folder: string) {
  if (Option.isSome(masterKey)) {
    return { masterKey: { id: keyIdOf(Redacted.value(masterKey.value)), included: false } }
  }
  const file = join(dataDir, keyFile)
  const key = yield* Effect.option(Effect.tryPromise(() => readFile(file, "utf8")))
  if (Option.isNone(key)) return {}
  yield* failedTo(`copy ${file}`, () =>
    writeFile(join(folder, keyFile), key.value, { mode: 0o600 })
  )
  return { masterKey: { id: keyIdOf(key.value), included: true } }
})

const dumpKept = Effect.fnUntraced(function* ({ dataDir }: DataLocation, folder: string) {
  for (const name of keptFiles) {
    const copy = join(folder, name)
    const copied = Effect.tryPromise(async () => {
      await copyFile(join(dataDir, name), copy)
      await chmod(copy, 0o600)
    })
    // A service with developers of its own has none.
    yield* Effect.ignore(copied)
  }
})

const dumpFunctions = Effect.fnUntraced(function* (
  location: DataLocation,
  folder: string,
  show: Progress
) {
  const found: Array<Manifest["functions"][number]> = []
  for (const root of functionFolders(location.dataDir)) {
    const entries = yield* failedTo(`read ${root}`, () => entriesOf(root))
    for (const { name } of entries.filter((entry) => entry.isDirectory())) {
      yield* show(`functions of ${name}`)
      const from = join(root, name)
      const owner = yield* failedTo(`read ${from}`, () => ownerOf(from))
      yield* failedTo(`copy ${from}`, () => copyFolder(from, join(folder, "functions", name)))
      found.push({ environmentId: name, owner })
    }
  }
  return found
})

const dumpBlobs = Effect.fnUntraced(function* (
  location: DataLocation,
  folder: string,
  show: Progress
) {
  if (location.hasBucket) return {}
  const blobs = yield* failedTo(`copy ${location.blobs}`, () =>
    copyFolder(location.blobs, join(folder, "blobs"), show.now)
  )
  return { blobs }
})

/** Creates the folder; an existing one must be empty. */
const makeFolder = Effect.fnUntraced(function* (folder: string) {
  const present = yield* failedTo(`read ${folder}`, () => entriesOf(folder))
  if (present.length > 0) return yield* refuse(`${folder} is not empty: choose another folder.`)
  for (const part of [databaseFolder, dataFolder]) {
    const path = join(folder, part)
    yield* failedTo(`create ${path}`, () => mkdir(path, { recursive: true, mode: 0o700 }))
  }
})

/** Writes a backup into a folder and returns its manifest. */
export const dump = Effect.fn("dump")(function* (
  location: DataLocation,
  folder: string,
  show: Progress
) {
  const createdAt = DateTime.formatIso(yield* DateTime.now)
  yield* checkPresent(location)
  yield* makeFolder(folder)
  const data = join(folder, dataFolder)
  const database = yield* dumpDatabase(location, join(folder, databaseFolder), show)
  const key = yield* dumpKey(location, data)
  yield* dumpKept(location, data)
  const manifest: Manifest = {
    format: manifestFormat,
    version: manifestOfRelease.version,
    createdAt,
    ...database,
    ...key,
    functions: yield* dumpFunctions(location, data, show),
    ...(yield* dumpBlobs(location, data, show))
  }
  const file = join(folder, manifestFile)
  const text = `${JSON.stringify(manifest, null, 2)}\n`
  yield* failedTo(`write ${file}`, () => writeFile(file, text, { mode: 0o600 }))
  return manifest
})
