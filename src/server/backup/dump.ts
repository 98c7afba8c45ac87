/** Writes a backup: the database as of one moment, then the data directory. */
import { createWriteStream, existsSync } from "node:fs"
import { access, chmod, copyFile, mkdir, rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { pipeline } from "node:stream/promises"
import { createGzip } from "node:zlib"
import { DateTime, Effect, Option, Stream } from "effect"
import { isSqlError } from "effect/sql/SqlError"
import manifestOfRelease from "../../../package.json" with { type: "json" }
import {
  appliedMigration,
  beginSnapshot,
  endSnapshot,
  listMasterKeys,
  listSequences,
  listTables,
  readBlobKeys,
  readRows,
  type Session,
  tablesAt,
  type TableShape
} from "#sql/backup"
import { newestMigration } from "#sql/database"
import { functionFolders, snapshotsFolder } from "../features/functions/host/directories.ts"
import { copyFolder, entriesOf, ownerOf } from "./files.ts"
import {
  databaseFolder,
  dataFolder,
  keptFiles,
  keyFile,
  type Manifest,
  manifestFile,
  manifestFormat,
  sumsFile
} from "./manifest.ts"
import {
  checkPresent,
  databaseOf,
  type DataLocation,
  keysAtHand,
  openSession,
  refuse
} from "./location.ts"
import { failedTo, failureTo, type Progress } from "./progress.ts"
import { RowDigest } from "./row-digest.ts"
import { writeSums } from "./sums.ts"

/** Rows as lines of JSON. */
const writeTable = Effect.fnUntraced(function* (session: Session, table: TableShape, file: string) {
  const digest = new RowDigest()
  const lines = readRows(session, table).pipe(
    Stream.map((row) => {
      digest.add(row)
      return `${JSON.stringify(row)}\n`
    })
  )
  const iterable = yield* Stream.toAsyncIterableEffect(lines)
  yield* Effect.tryPromise({
    try: () => pipeline(iterable, createGzip(), createWriteStream(file, { mode: 0o600 })),
    catch: (cause) => (isSqlError(cause) ? cause : failureTo(`write ${file}`, cause))
  })
  return { rows: digest.rows, digest: digest.value }
})

/**
 * The tables of the service. Refuses a database that lacks some of its migration: it is another one, or its
 * role sees another schema.
 */
const findTables = Effect.fnUntraced(function* (session: Session) {
  const migration = yield* appliedMigration(session)
  if (migration === 0)
    return yield* refuse("The database has no tables: there is nothing to back up.")
  if (migration > (yield* newestMigration)) {
    return yield* refuse(
      `The database is at migration ${migration}, of a newer release: save it with that release.`
    )
  }
  const expected = tablesAt(migration)
  const present = yield* listTables(session)
  const shapes = present.filter(({ name }) => expected.includes(name))
  const others = present.map(({ name }) => name).filter((name) => !expected.includes(name))
  const missing = expected.filter((name) => !shapes.some((shape) => shape.name === name))
  if (missing.length === 0) return { migration, shapes, others }
  return yield* refuse(
    `The database is at migration ${migration} and lacks ${missing.length} tables of it (${missing.join(", ")}). ` +
      "Name the database of the service in DATABASE_URL, and a role that sees its schema."
  )
})

/** The master key of the backup: that of the database, which must be at hand if any key is. */
const masterKeyOf = Effect.fnUntraced(function* (session: Session, location: DataLocation) {
  const { ids, text } = yield* keysAtHand(location)
  const used = yield* listMasterKeys(session)
  if (ids.length > 0 && used.length > 0 && !used.some((id) => ids.includes(id))) {
    const name = Option.isSome(text) ? join(location.dataDir, keyFile) : "SVC_MASTER_KEY"
    return yield* refuse(
      `${name} is another key than the one that encrypts the secrets of the database. Name the key, the ` +
        "database and the data directory of the same service."
    )
  }
  const id = ids.find((each) => used.length === 0 || used.includes(each)) ?? used[0]
  return id === undefined ? {} : { masterKey: { id, included: Option.isSome(text) } }
})

const dumpDatabase = Effect.fnUntraced(function* (
  location: DataLocation,
  folder: string,
  show: Progress
) {
  const session = yield* openSession(yield* databaseOf(location))
  yield* beginSnapshot(session)
  const { migration, others, shapes } = yield* findTables(session)
  const key = yield* masterKeyOf(session, location)
  const tables = yield* Effect.forEach(shapes, (shape, index) =>
    Effect.gen(function* () {
      yield* show(`table ${shape.name} (${index + 1} of ${shapes.length})`)
      const file = join(folder, `${shape.name}.jsonl.gz`)
      return { ...shape, ...(yield* writeTable(session, shape, file)) }
    })
  )
  // Sequences belong to no snapshot: read after the rows, they are beyond them.
  const sequences = yield* listSequences(session)
  const hasBlobs = shapes.some(({ name }) => name === "blobs")
  const blobKeys = hasBlobs ? yield* Stream.runCollect(readBlobKeys(session)) : []
  yield* endSnapshot(session)
  return { content: { migration, tables, sequences, ...key }, blobKeys, others }
}, Effect.scoped)

/** Files of the data directory, among them the master key unless the settings keep it. */
const dumpKept = Effect.fnUntraced(function* (
  { dataDir, masterKey }: DataLocation,
  folder: string
) {
  for (const name of Option.isSome(masterKey) ? keptFiles : [...keptFiles, keyFile]) {
    const [file, copy] = [join(dataDir, name), join(folder, name)]
    // A service with developers of its own has no keys of the demo project.
    if (!existsSync(file)) continue
    yield* failedTo(`copy ${file}`, async () => {
      await copyFile(file, copy)
      await chmod(copy, 0o600)
    })
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
    const ofEnvironments = entries.filter(
      (entry) => entry.isDirectory() && entry.name !== snapshotsFolder
    )
    for (const { name } of ofEnvironments) {
      yield* show(`functions of ${name}`)
      const from = join(root, name)
      const owner = yield* failedTo(`read ${from}`, () => ownerOf(from))
      yield* failedTo(`copy ${from}`, () =>
        copyFolder(from, join(folder, "functions", name), { isLive: true })
      )
      found.push({ environmentId: name, owner })
    }
  }
  return found
})

/** Files that the database names and the folder lacks: uploads bring those back. */
const countMissing = async (folder: string, keys: ReadonlyArray<string>): Promise<number> => {
  let missing = 0
  for (const key of keys) {
    await access(join(folder, key)).catch(() => {
      missing += 1
    })
  }
  return missing
}

const dumpBlobs = Effect.fnUntraced(function* (
  location: DataLocation,
  folder: string,
  keys: ReadonlyArray<string>,
  show: Progress
) {
  if (location.hasBucket) return { counts: {}, missing: 0 }
  const copies = join(folder, "blobs")
  const blobs = yield* failedTo(`copy ${location.blobs}`, () =>
    copyFolder(location.blobs, copies, { onFile: show.now })
  )
  const missing = yield* failedTo(`read ${copies}`, () => countMissing(copies, keys))
  if (keys.length > 0 && missing === keys.length) {
    return yield* refuse(
      `The database names ${missing} files of apps, and ${location.blobs} has none of them. Name the data ` +
        "directory of the service in SVC_DATA_DIR, or its bucket in SVC_BLOBS_URL."
    )
  }
  return { counts: { blobs }, missing }
})

/** Creates the folder; an existing one must be empty. Returns what removes a backup that failed. */
const makeFolder = Effect.fnUntraced(function* (folder: string) {
  const isNew = !existsSync(folder)
  const present = yield* failedTo(`read ${folder}`, () => entriesOf(folder))
  if (present.length > 0) return yield* refuse(`${folder} is not empty: choose another folder.`)
  const parts = [databaseFolder, dataFolder]
  for (const part of parts) {
    const path = join(folder, part)
    yield* failedTo(`create ${path}`, () => mkdir(path, { recursive: true, mode: 0o700 }))
  }
  const made = [...parts, manifestFile, sumsFile, `${sumsFile}.new`]
  const remove = async () => {
    const paths = isNew ? [folder] : made.map((name) => join(folder, name))
    for (const path of paths) await rm(path, { recursive: true, force: true })
  }
  return Effect.ignore(Effect.tryPromise(remove), {
    log: "Warn",
    message: `Failed to remove ${folder}, which is no whole backup`
  })
})

/** Writes all of a backup, its checksums last. */
const write = Effect.fnUntraced(function* (location: DataLocation, folder: string, show: Progress) {
  const createdAt = DateTime.formatIso(yield* DateTime.now)
  const data = join(folder, dataFolder)
  const { blobKeys, content, others } = yield* dumpDatabase(
    location,
    join(folder, databaseFolder),
    show
  )
  yield* dumpKept(location, data)
  const functions = yield* dumpFunctions(location, data, show)
  const { counts, missing } = yield* dumpBlobs(location, data, blobKeys, show)
  const manifest: Manifest = {
    format: manifestFormat,
    version: manifestOfRelease.version,
    createdAt,
    ...content,
    functions,
    ...counts
  }
  const file = join(folder, manifestFile)
  const text = `${JSON.stringify(manifest, null, 2)}\n`
  yield* failedTo(`write ${file}`, () => writeFile(file, text, { mode: 0o600 }))
  yield* writeSums(folder, show)
  return { manifest, missing, others }
})

/**
 * Writes a backup into a folder. Returns its manifest, how many files of apps the database names and the
 * data directory lacks, and the tables of other programs, which are not in it. A backup that fails is
 * removed: it may have filled the disk.
 */
export const dump = Effect.fn("dump")(function* (
  location: DataLocation,
  folder: string,
  show: Progress
) {
  yield* checkPresent(location)
  const remove = yield* makeFolder(folder)
  return yield* Effect.onError(write(location, folder, show), () => remove)
})
