/** Reads a backup back, into an empty service only. */
import { chmod, copyFile, readFile } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Option, Redacted, Schema } from "effect"
import { appliedMigration, isUsed, otherSessions, ownsTables } from "#sql/backup"
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
import { checkRelease, restoreTables } from "./tables.ts"

const ManifestText = Schema.fromJsonString(Manifest)

/** Reads the manifest of a backup. */
export const readManifest = Effect.fnUntraced(function* (folder: string) {
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
  yield* checkRelease(manifest)
  if (!(yield* ownsTables(session))) {
    return yield* refuse(
      "The user of DATABASE_URL does not own the tables: restore as their owner, then run deploy/roles.sql."
    )
  }
  const applied = yield* appliedMigration(session)
  if (applied > 0 && (yield* isUsed(session))) {
    return yield* refuse(
      "The database has projects or developers. A restore needs an empty service: name another database."
    )
  }
  yield* restoreTables({ session, url }, folder, manifest, show)
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

/** Fails when the folder holds another number of files of apps than the manifest. */
export const checkBlobs = (folder: string, count: number, { blobs = 0 }: Manifest) =>
  count === blobs
    ? Effect.void
    : refuse(`${join(folder, "blobs")} holds ${count} files instead of ${blobs}: it is damaged.`)

const loadFiles = Effect.fnUntraced(function* (
  location: DataLocation,
  folder: string,
  manifest: Manifest,
  show: Progress
) {
  const { blobs, dataDir } = location
  const count = yield* failedTo(`write ${blobs}`, () =>
    copyFolder(join(folder, "blobs"), blobs, show.now)
  )
  yield* checkBlobs(folder, count, manifest)
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
