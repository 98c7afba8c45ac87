/** Reads a backup back, into an empty service only. */
import { existsSync } from "node:fs"
import { chmod, copyFile, readFile, rm } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Option, Redacted, Schema } from "effect"
import {
  appliedMigration,
  isUsed,
  listTables,
  otherSessions,
  ownsTables,
  type Session
} from "#sql/backup"
import { makeRestoredFolder } from "../features/functions/host/directories.ts"
import { makeDataDirectory } from "../platform/postgres/data-directory.ts"
import { copyFolder, filesBelow, giveTo } from "./files.ts"
import {
  databaseFolder,
  dataFolder,
  keptFiles,
  keyFile,
  keyIdOf,
  Manifest,
  manifestFile,
  sumsFile
} from "./manifest.ts"
import {
  BackupError,
  databaseOf,
  type DataLocation,
  openSession,
  readIfAny,
  refuse
} from "./location.ts"
import { failedTo, type Progress } from "./progress.ts"
import { checkSums } from "./sums.ts"
import { checkRelease, restoreTables } from "./tables.ts"

const ManifestText = Schema.fromJsonString(Manifest)

/** Reads the manifest of a backup. */
const readManifest = Effect.fnUntraced(function* (folder: string) {
  const file = join(folder, manifestFile)
  const text = yield* Effect.mapError(
    Effect.tryPromise(() => readFile(file, "utf8")),
    () => new BackupError({ message: `${folder} is no whole backup: it has no ${manifestFile}.` })
  )
  return yield* Effect.mapError(
    Schema.decodeEffect(ManifestText)(text),
    () =>
      new BackupError({
        message: `${file} is damaged, or of a newer release: use another backup, or that release.`
      })
  )
})

/** Compares the number of files of apps: the first format has no checksums. */
const checkBlobs = Effect.fnUntraced(function* (data: string, { blobs = 0 }: Manifest) {
  const folder = join(data, "blobs")
  const files = existsSync(folder)
    ? yield* failedTo(`read ${folder}`, () => filesBelow(folder))
    : []
  if (files.length === blobs) return
  return yield* refuse(
    `${folder} holds ${files.length} files instead of ${blobs}: it is damaged. Use another backup.`
  )
})

/** Returns the manifest of a backup that is whole, and that this release can read. */
export const checkWhole = Effect.fnUntraced(function* (folder: string, show: Progress) {
  const manifest = yield* readManifest(folder)
  if (existsSync(join(folder, sumsFile))) {
    yield* checkSums(folder, show)
  } else if (manifest.format === 1) {
    yield* checkBlobs(join(folder, dataFolder), manifest)
  } else {
    return yield* refuse(`${folder} is no whole backup: it has no ${sumsFile}.`)
  }
  yield* checkRelease(manifest)
  return manifest
})

const checkGivenKey = (key: Redacted.Redacted, { olderMasterKeys }: DataLocation, id: string) =>
  [key, ...olderMasterKeys].some((each) => keyIdOf(Redacted.value(each)) === id)
    ? Effect.void
    : refuse(
        "SVC_MASTER_KEY is another key than the one of the backup: set the key that the service had then. " +
          "If it was replaced since, name that one in SVC_OLDER_MASTER_KEYS."
      )

/** Whether the key of the backup has to be written to the data directory. */
const checkKey = Effect.fnUntraced(function* (
  location: DataLocation,
  folder: string,
  { masterKey: wanted }: Manifest
) {
  if (wanted === undefined) return false
  const { dataDir, masterKey } = location
  if (Option.isSome(masterKey)) {
    yield* checkGivenKey(masterKey.value, location, wanted.id)
    return false
  }
  if (!wanted.included) {
    return yield* refuse(
      "The backup does not hold its master key: set SVC_MASTER_KEY to the key that the service had."
    )
  }
  const isKey = (key: string) => keyIdOf(key) === wanted.id
  if (!Option.exists(yield* readIfAny(join(folder, dataFolder, keyFile)), isKey)) {
    return yield* refuse(
      `${folder} lacks its master key: use another backup, or set SVC_MASTER_KEY.`
    )
  }
  const present = yield* readIfAny(join(dataDir, keyFile))
  if (Option.isNone(present) || isKey(present.value)) return true
  return yield* refuse(`${dataDir} belongs to another service: choose another SVC_DATA_DIR.`)
})

/** A restored service looks for its files in the bucket. */
const checkPlace = ({ dataDir, hasBucket }: DataLocation, { blobs = 0 }: Manifest) =>
  hasBucket && blobs > 0
    ? refuse(
        `The backup holds ${blobs} files of apps, and SVC_BLOBS_URL names a bucket. Restore without it, and ` +
          `then copy the files below ${join(dataDir, "blobs")} into the bucket.`
      )
    : Effect.void

const checkUnused = (session: Session) =>
  Effect.flatMap(isUsed(session), (used) =>
    used
      ? refuse(
          "The database has projects or developers. A restore needs an empty service: name another database."
        )
      : Effect.void
  )

/** Refuses a database that is in use, or has data. */
const checkDatabase = Effect.fnUntraced(function* (session: Session) {
  const others = yield* otherSessions(session)
  if (others.length > 0) {
    return yield* refuse(
      `The database is in use by ${others.join(", ")}. Close these sessions, and stop every runner first.`
    )
  }
  if (!(yield* ownsTables(session))) {
    return yield* refuse(
      "The user of DATABASE_URL does not own the tables: restore as their owner, then run deploy/roles.sql."
    )
  }
  if ((yield* appliedMigration(session)) > 0) return yield* checkUnused(session)
  const [foreign] = yield* listTables(session)
  if (foreign === undefined) return
  return yield* refuse(
    `The database has tables of another program, such as ${foreign.name}: name an empty database.`
  )
})

const loadFunctions = Effect.fnUntraced(function* (
  location: DataLocation,
  folder: string,
  { functions }: Manifest
) {
  if (functions.length === 0) return
  const { hasOwnUsers, root } = yield* failedTo(`write ${location.dataDir}`, () =>
    makeRestoredFolder(location.dataDir)
  )
  for (const { environmentId, owner } of functions) {
    const target = join(root, environmentId)
    yield* failedTo(`write ${target}`, async () => {
      // Nothing of a restore that failed stays.
      await rm(target, { recursive: true, force: true })
      await copyFolder(join(folder, "functions", environmentId), target)
      if (hasOwnUsers && existsSync(target)) await giveTo(target, owner)
    })
  }
})

const loadFiles = Effect.fnUntraced(function* (
  location: DataLocation,
  folder: string,
  manifest: Manifest,
  { isKeyNeeded, show }: { readonly isKeyNeeded: boolean; readonly show: Progress }
) {
  const { blobs, dataDir } = location
  yield* failedTo(`write ${blobs}`, () =>
    copyFolder(join(folder, "blobs"), blobs, { onFile: show.now })
  )
  yield* loadFunctions(location, folder, manifest)
  for (const name of isKeyNeeded ? [...keptFiles, keyFile] : keptFiles) {
    const [file, copy] = [join(folder, name), join(dataDir, name)]
    if (!existsSync(file)) continue
    yield* failedTo(`write ${copy}`, async () => {
      await copyFile(file, copy)
      await chmod(copy, 0o600)
    })
  }
})

/**
 * Restores a backup and returns its manifest. The rows come last, in one transaction: as long as they are
 * not there, the restore can be run again.
 */
export const load = Effect.fn("load")(function* (
  location: DataLocation,
  folder: string,
  show: Progress
) {
  const manifest = yield* checkWhole(folder, show)
  const isKeyNeeded = yield* checkKey(location, folder, manifest)
  yield* checkPlace(location, manifest)
  yield* Effect.catchTag(makeDataDirectory(location.dataDir), "PlatformError", ({ message }) =>
    refuse(`Failed to create ${location.dataDir}: ${message}`)
  )
  const url = yield* databaseOf(location)
  const session = yield* openSession(url)
  yield* checkDatabase(session)
  yield* loadFiles(location, join(folder, dataFolder), manifest, { isKeyNeeded, show })
  const target = { session, url, check: checkUnused(session) }
  yield* restoreTables(target, join(folder, databaseFolder), manifest, show)
  return manifest
}, Effect.scoped)
