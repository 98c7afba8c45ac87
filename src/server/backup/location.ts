/**
 * Location of the data of a backup or restore: the database and the data directory of the settings.
 */
import { existsSync } from "node:fs"
import { join } from "node:path"
import * as PgConnection from "@effect/sql-pg/PgConnection"
import { Config, Effect, Option, Redacted, Schema } from "effect"
import { enterServiceSchema } from "#sql/backup"
import { sharedFolder } from "../platform/settings/blobs.ts"
import { embeddedPostgres } from "../platform/postgres/embedded.ts"

/** Error of a command that does nothing; the message has the reason and the remedy. */
export class BackupError extends Schema.TaggedError<BackupError>()("BackupError", {
  message: Schema.String
}) {}

export const refuse = (message: string) => Effect.fail(new BackupError({ message }))

const variable = (name: string) =>
  Effect.map(Effect.orDie(Config.option(Config.String(name))), (value) =>
    Option.filter(value, (text) => text !== "")
  )

/** The settings that decide where the data is. */
export const readLocation = Effect.gen(function* () {
  const databaseUrl = Option.map(yield* variable("DATABASE_URL"), (url) => Redacted.make(url))
  const dataDir = Option.getOrElse(yield* variable("SVC_DATA_DIR"), () => ".svc")
  const masterKey = Option.map(yield* variable("SVC_MASTER_KEY"), (key) => Redacted.make(key))
  const blobsUrl = yield* variable("SVC_BLOBS_URL")
  const hasBucket = Option.exists(blobsUrl, (url) => url !== sharedFolder)
  return { databaseUrl, dataDir, masterKey, hasBucket, blobs: join(dataDir, "blobs") }
})
export type DataLocation = Effect.Success<typeof readLocation>

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
  Effect.tap(PgConnection.make({ url, applicationName: "svc backup" }), enterServiceSchema)
