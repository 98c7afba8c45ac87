/**
 * Location of the data of a backup or restore: the database and the data directory of the settings.
 */
import { existsSync } from "node:fs"
import { readFile } from "node:fs/promises"
import { join } from "node:path"
import * as PgConnection from "@effect/sql-pg/PgConnection"
import { Effect, Option, Redacted, Schema } from "effect"
import { enterServiceSchema, rowMaxBytes } from "#sql/backup"
import { database } from "../platform/settings/data.ts"
import { bucket, sharedFolder } from "../platform/settings/hosting.ts"
import { type Setting, textOf } from "../platform/settings/table.ts"
import { embeddedPostgres } from "../platform/postgres/embedded.ts"
import { keyFile, keyIdOf } from "./manifest.ts"

/** Error of a command that does nothing; the message has the reason and the remedy. */
export class BackupError extends Schema.TaggedError<BackupError>()("BackupError", {
  message: Schema.String
}) {}

export const refuse = (message: string) => Effect.fail(new BackupError({ message }))

/** The settings that decide where the data is. */
export const readLocation = Effect.gen(function* () {
  const secretOf = (setting: Setting) =>
    Effect.map(textOf(setting), (text) =>
      text === undefined ? Option.none() : Option.some(Redacted.make(text))
    )
  const databaseUrl = yield* secretOf(database.databaseUrl)
  const masterKey = yield* secretOf(database.masterKey)
  const older = (yield* textOf(database.olderMasterKeys)) ?? ""
  const olderMasterKeys = older
    .split(",")
    .filter((key) => key.trim() !== "")
    .map((key) => Redacted.make(key))
  const dataDir = (yield* textOf(database.dataDir)) ?? ""
  const blobsUrl = yield* textOf(bucket.url)
  const hasBucket = blobsUrl !== undefined && blobsUrl !== sharedFolder
  const blobs = join(dataDir, "blobs")
  return { databaseUrl, dataDir, masterKey, olderMasterKeys, hasBucket, blobs }
}).pipe(Effect.orDie)
export type DataLocation = Effect.Success<typeof readLocation>

/** The text of a file; none if it does not exist. */
export const readIfAny = (file: string) =>
  Effect.tryPromise({
    try: () =>
      readFile(file, "utf8").then(Option.some, (error: unknown) => {
        if (error instanceof Error && "code" in error && error.code === "ENOENT") {
          return Option.none<string>()
        }
        throw error
      }),
    catch: (cause) => new BackupError({ message: `Failed to read ${file}: ${String(cause)}` })
  })

/** The master keys at hand: of the settings, or else that of the data directory, which has a text. */
export const keysAtHand = Effect.fnUntraced(function* (location: DataLocation) {
  const { dataDir, masterKey, olderMasterKeys } = location
  const older = olderMasterKeys.map((key) => keyIdOf(Redacted.value(key)))
  if (Option.isSome(masterKey)) {
    return {
      ids: [keyIdOf(Redacted.value(masterKey.value)), ...older],
      text: Option.none<string>()
    }
  }
  const text = yield* readIfAny(join(dataDir, keyFile))
  return {
    ids: Option.match(text, { onNone: () => [], onSome: (key) => [keyIdOf(key), ...older] }),
    text
  }
})

/** The URL of the database; starts the embedded Postgres, or finds it running. */
export const databaseOf = ({ databaseUrl, dataDir }: DataLocation) =>
  Option.isSome(databaseUrl)
    ? Effect.succeed(databaseUrl.value)
    : embeddedPostgres({ dataDir }).pipe(
        Effect.map(({ url }) => url),
        Effect.catchTag("EmbeddedPostgresError", ({ message }) => refuse(message))
      )

/** Refuses a data directory without a database: a command beside the service must not make an empty one. */
export const checkPresent = Effect.fnUntraced(function* ({ databaseUrl, dataDir }: DataLocation) {
  if (Option.isSome(databaseUrl) || existsSync(join(dataDir, "postgres"))) return
  return yield* refuse(
    `${dataDir} has no database. Name the data directory in SVC_DATA_DIR, or the database in DATABASE_URL.`
  )
})

/** A session in the schema of the service's tables. */
export const openSession = (url: Redacted.Redacted) =>
  Effect.tap(
    PgConnection.make({ url, applicationName: "svc backup", maxMessageSize: rowMaxBytes }),
    enterServiceSchema
  )
