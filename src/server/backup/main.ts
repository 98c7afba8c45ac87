/**
 * Backup and restore of the service. `node src/server/backup/main.ts save <folder>` runs beside the
 * running service, `verify <folder>` checks a backup, `restore <folder>` fills an empty service. `svc backup`
 * and `svc restore` start it.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Console, DateTime, Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import type { SqlError } from "effect/sql/SqlError"
import { causeOf, isLocked } from "#sql/database"
import { failCommand } from "../start-error.ts"
import { dump } from "./dump.ts"
import { load } from "./load.ts"
import { verify } from "./verify.ts"
import type { Manifest } from "./manifest.ts"
import { readLocation } from "./location.ts"
import { makeProgress } from "./progress.ts"

const json = Flag.Boolean("json").pipe(
  Flag.withDescription("Print the result as one JSON value"),
  Flag.withDefault(false)
)

const rowsOf = ({ tables }: Manifest): number => tables.reduce((sum, { rows }) => sum + rows, 0)

const report = (
  action: string,
  folder: string,
  manifest: Manifest,
  { asJson, missing }: { readonly asJson: boolean; readonly missing?: number }
) => {
  const { blobs = 0, createdAt, functions, masterKey, version } = manifest
  const rows = rowsOf(manifest)
  const keyIncluded = masterKey?.included === true
  if (asJson) {
    const counts = { tables: manifest.tables.length, rows, blobs, functions: functions.length }
    const result = { folder, createdAt, version, ...counts, keyIncluded }
    return Console.log(JSON.stringify(missing === undefined ? result : { ...result, missing }))
  }
  return Console.log(
    `${action}: ${rows} rows of ${manifest.tables.length} tables, ${blobs} files of apps, functions of ` +
      `${functions.length} environments, ${keyIncluded ? "with" : "without"} the master key.`
  )
}

const keyNote = ({ masterKey }: Manifest, folder: string): string =>
  masterKey?.included === true
    ? `${folder} holds the master key: who reads it can read all secrets.`
    : "Keep SVC_MASTER_KEY in another place: a restore needs it."

/** What the database names and the data directory lacks is no reason to have no backup. */
const missingNote = (missing: number): string =>
  `${missing} files of apps are missing in the data directory. Deployments that name them upload them again.`

/** Explains what the database refused, and what that means. */
const failedDatabase = (remedy: string) => (error: SqlError) =>
  failCommand(
    isLocked(error)
      ? `Another session has locked a table for a minute. End it and try again. ${remedy}`
      : `The database failed: ${causeOf(error)}. ${remedy}`
  )

const progress = makeProgress(process.stderr)

const defaultFolder = Effect.map(
  DateTime.now,
  (now) => `svc-backup-${DateTime.formatIso(now).slice(0, 19).replaceAll(":", "-")}`
)

const save = Command.make(
  "save",
  { folder: Argument.String("folder").pipe(Argument.optional), json },
  Effect.fn(
    function* (options) {
      const folder = Option.isSome(options.folder) ? options.folder.value : yield* defaultFolder
      const location = yield* readLocation
      const { manifest, missing, others } = yield* Effect.ensuring(
        dump(location, folder, progress),
        progress.clear
      )
      yield* report(`Saved to ${folder}`, folder, manifest, { asJson: options.json, missing })
      if (options.json) return
      if (missing > 0) yield* Console.log(missingNote(missing))
      if (others.length > 0)
        yield* Console.log(`Without tables of other programs: ${others.join(", ")}.`)
      yield* Console.log(keyNote(manifest, folder))
    },
    Effect.catchTag(
      "SqlError",
      failedDatabase("Nothing was saved: check DATABASE_URL and its role.")
    )
  )
).pipe(Command.withDescription("Save database, files of apps, functions and keys to a folder"))

const restore = Command.make(
  "restore",
  { folder: Argument.String("folder"), json },
  Effect.fn(
    function* ({ folder, json: asJson }) {
      const location = yield* readLocation
      const manifest = yield* Effect.ensuring(load(location, folder, progress), progress.clear)
      yield* report(`Restored ${folder} of ${manifest.createdAt}`, folder, manifest, { asJson })
    },
    Effect.catchTag(
      "SqlError",
      failedDatabase("No row was restored: check DATABASE_URL and its role, and restore again.")
    )
  )
).pipe(Command.withDescription("Restore such a folder into an empty service"))

const verifyCommand = Command.make(
  "verify",
  {
    folder: Argument.String("folder"),
    database: Flag.Redacted("database").pipe(
      Flag.withDescription("Restore into a schema of this database, which is dropped at the end"),
      Flag.optional
    ),
    json
  },
  Effect.fn(
    function* ({ database, folder, json: asJson }) {
      const manifest = yield* Effect.ensuring(verify(folder, database, progress), progress.clear)
      yield* report(`Verified ${folder} of ${manifest.createdAt}`, folder, manifest, { asJson })
    },
    Effect.catchTag(
      "SqlError",
      failedDatabase(
        "The backup was not verified. The scratch database needs as much space as the tables: set TMPDIR, " +
          "or name one with --database."
      )
    )
  )
).pipe(Command.withDescription("Restore such a folder into a scratch database, and compare"))

const program = Command.make("backup").pipe(
  Command.withDescription("Backs up and restores the service of DATABASE_URL and SVC_DATA_DIR"),
  Command.withSubcommands([save, restore, verifyCommand])
)

Command.run(program, { version: "1" }).pipe(
  Effect.catchTag("BackupError", ({ message }) => failCommand(message)),
  Effect.scoped,
  Effect.provide(NodeServices.layer),
  NodeRuntime.runMain
)
