/** Reads a backup back, into an empty service only. */
import { createReadStream } from "node:fs"
import { chmod, copyFile, readFile } from "node:fs/promises"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { pipeline } from "node:stream"
import { createGunzip } from "node:zlib"
import { Effect, Option, Redacted, Schema, Stream } from "effect"
import {
  appliedMigration,
  isUsed,
  listTables,
  otherSessions,
  replaceContent,
  type Session,
  type TableShape,
  writeRows
} from "#sql/backup"
import { migrateTo, newestMigration, poolLayer } from "#sql/database"
import { makeRestoredFolder } from "../features/functions/host/directories.ts"
import { makeDataDirectory } from "../platform/postgres/data-directory.ts"
import { copyFolder, giveTo } from "./files.ts"
import {
  databaseFolder,
  dataFolder,
  keptFiles,
  keyFile,
  keyIdOf,
  Manifest,
  manifestFile
} from "./manifest.ts"
import { BackupError, databaseOf, openSession, type DataLocation, refuse } from "./location.ts"
import { failedTo, type Progress } from "./progress.ts"

const ManifestText = Schema.fromJsonString(Manifest)

const readManifest = Effect.fnUntraced(function* (folder: string) {
  const file = join(folder, manifestFile)
  const text = yield* Effect.mapError(
    Effect.tryPromise(() => readFile(file, "utf8")),
    () => new BackupError({ message: `${folder} is no whole backup: it has no ${manifestFile}.` })
  )
  return yield* Effect.mapError(
    Schema.decodeEffect(ManifestText)(text),
    () => new BackupError({ message: `${file} is not a manifest that this release understands.` })
  )
})

/** Whether the file holds another key than the backup's. */
const keyIn = (file: string) =>
  Effect.map(Effect.option(Effect.tryPromise(() => readFile(file, "utf8"))), Option.map(keyIdOf))

const checkKey = Effect.fnUntraced(function* (
  { dataDir, masterKey }: DataLocation,
  manifest: Manifest
) {
  const wanted = manifest.masterKey
  if (wanted === undefined) return
  if (Option.isSome(masterKey)) {
    if (keyIdOf(Redacted.value(masterKey.value)) === wanted.id) return
    return yield* refuse("SVC_MASTER_KEY is another key than the one of the backup.")
  }
  if (!wanted.included) {
    return yield* refuse(
      "The backup does not hold its master key: set SVC_MASTER_KEY to the key that the service had."
    )
  }
  const present = yield* keyIn(join(dataDir, keyFile))
  if (Option.isNone(present) || present.value === wanted.id) return
  return yield* refuse(`${dataDir} belongs to another service: choose another SVC_DATA_DIR.`)
})

/** One statement holds rows up to this size, and one more. */
const batchCharacters = 2_000_000
const batchRows = 1000

const linesOf = (file: string) =>
  Stream.suspend(() => {
    const input = createGunzip()
    // The reader of the lines gets the error, which ends both.
    pipeline(createReadStream(file), input, () => undefined)
    const lines = createInterface({ input, crlfDelay: Infinity })
    return Stream.fromAsyncIterable(
      lines,
      (cause) => new BackupError({ message: `Failed to read ${file}: ${String(cause)}` })
    )
  })

const loadTable = Effect.fnUntraced(function* (
  session: Session,
  table: Manifest["tables"][number],
  file: string
) {
  let batch: Array<string> = []
  let characters = 0
  let rows = 0
  const flush = Effect.suspend(() => {
    const text = `[${batch.join(",")}]`
    batch = []
    characters = 0
    return Effect.map(writeRows(session, table, text), (written) => {
      rows += written
    })
  })
  yield* Stream.runForEach(linesOf(file), (line) => {
    batch.push(line)
    characters += line.length
    return characters > batchCharacters || batch.length >= batchRows ? flush : Effect.void
  })
  if (batch.length > 0) yield* flush
  if (rows !== table.rows) {
    return yield* refuse(`${file} holds ${rows} rows instead of ${table.rows}: it is damaged.`)
  }
})

const shapeText = (tables: ReadonlyArray<TableShape>): string =>
  JSON.stringify(tables.map(({ columns, name }) => ({ name, columns })))

const loadDatabase = Effect.fnUntraced(function* (
  location: DataLocation,
  folder: string,
  manifest: Manifest,
  show: Progress
) {
  const url = yield* databaseOf(location)
  const session = yield* openSession(url)
  const others = yield* otherSessions(session)
  if (others > 0) return yield* refuse("The database is in use: stop every runner first.")
  const known = yield* newestMigration
  const applied = yield* appliedMigration(session)
  if (manifest.migration > known) {
    return yield* refuse(
      `The backup is of release ${manifest.version}: restore it with that release.`
    )
  }
  if (applied > 0 && (yield* isUsed(session))) {
    return yield* refuse(
      "The database has projects or developers. A restore needs an empty service: name another database."
    )
  }
  yield* show("migrating")
  yield* Effect.orDie(
    Effect.provide(migrateTo(manifest.migration), poolLayer({ url, connections: 1 }))
  )
  const present = yield* listTables(session)
  if (shapeText(present) !== shapeText(manifest.tables)) {
    return yield* refuse(
      "The tables of the database are not those of the backup: name a database without tables."
    )
  }
  const { length } = manifest.tables
  const write = Effect.forEach(
    manifest.tables,
    (table, index) =>
      Effect.andThen(
        show(`table ${table.name} (${index + 1} of ${length})`),
        loadTable(session, table, join(folder, `${table.name}.jsonl.gz`))
      ),
    { discard: true }
  )
  yield* replaceContent(session, manifest.tables, manifest.sequences, write)
}, Effect.scoped)

const loadFunctions = Effect.fnUntraced(function* (
  location: DataLocation,
  folder: string,
  { functions }: Manifest
) {
  if (functions.length === 0) return
  const { hasOwnUsers, root } = yield* Effect.promise(() => makeRestoredFolder(location.dataDir))
  for (const { environmentId, owner } of functions) {
    const target = join(root, environmentId)
    yield* failedTo(`write ${target}`, async () => {
      await copyFolder(join(folder, "functions", environmentId), target)
      if (hasOwnUsers) await giveTo(target, owner)
    })
  }
})

const loadFiles = Effect.fnUntraced(function* (
  location: DataLocation,
  folder: string,
  manifest: Manifest,
  show: Progress
) {
  const { blobs, dataDir } = location
  yield* failedTo(`write ${blobs}`, () => copyFolder(join(folder, "blobs"), blobs, show.now))
  yield* loadFunctions(location, folder, manifest)
  const isKeyNeeded = manifest.masterKey?.included === true && Option.isNone(location.masterKey)
  for (const name of isKeyNeeded ? [...keptFiles, keyFile] : keptFiles) {
    const copied = Effect.tryPromise(async () => {
      await copyFile(join(folder, name), join(dataDir, name))
      await chmod(join(dataDir, name), 0o600)
    })
    yield* name === keyFile
      ? Effect.mapError(copied, () => new BackupError({ message: `Failed to write ${name}.` }))
      : Effect.ignore(copied)
  }
})

/** Restores a backup and returns its manifest. */
export const load = Effect.fn("load")(function* (
  location: DataLocation,
  folder: string,
  show: Progress
) {
  const manifest = yield* readManifest(folder)
  yield* checkKey(location, manifest)
  yield* Effect.orDie(makeDataDirectory(location.dataDir))
  yield* loadDatabase(location, join(folder, databaseFolder), manifest, show)
  yield* loadFiles(location, join(folder, dataFolder), manifest, show)
  return manifest
})
