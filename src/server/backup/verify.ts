/**
 * Verifies a backup: compares its files with their checksums, restores its tables into a scratch database,
 * and compares their rows with the digests of those that were saved.
 * The scratch database is a Postgres in a temporary folder, or a schema of a given database, which is dropped
 * at the end.
 */
import { existsSync } from "node:fs"
import { mkdtemp, chmod, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Option, Redacted, Stream } from "effect"
import { SecureRandom } from "effect/crypto"
import {
  beginSnapshot,
  endSnapshot,
  readRows,
  scratchSchema,
  type Session,
  withScratchSchema
} from "#sql/backup"
import { embeddedPostgres } from "../platform/postgres/embedded.ts"
import { checkDatabases } from "./files.ts"
import { checkWhole } from "./load.ts"
import { databaseFolder, dataFolder, type Manifest } from "./manifest.ts"
import { BackupError, openSession, refuse } from "./location.ts"
import { failedTo, type Progress } from "./progress.ts"
import { RowDigest } from "./row-digest.ts"
import { restoreTables } from "./tables.ts"

const temporaryFolder = Effect.acquireRelease(
  Effect.promise(async () => {
    const folder = await mkdtemp(join(tmpdir(), "svc-verify-"))
    // Under root, Postgres runs as another user.
    await chmod(folder, 0o755)
    return folder
  }),
  (folder) => Effect.promise(() => rm(folder, { recursive: true, force: true }))
)

const scratchServer = Effect.flatMap(temporaryFolder, (dataDir) =>
  Effect.mapError(
    embeddedPostgres({ dataDir, isTemporary: true }),
    ({ message }) =>
      new BackupError({
        message:
          `${message}\nOr name a database to verify in, of a role that may create schemas: ` +
          "--database postgres://..."
      })
  )
)

/** The URL of a database whose unqualified names are in this schema. */
const inSchema = (url: Redacted.Redacted, schema: string): Redacted.Redacted => {
  const address = new URL(Redacted.value(url))
  const options = address.searchParams.get("options")
  const path = `-c search_path=${schema}`
  address.searchParams.set("options", options === null ? path : `${options} ${path}`)
  return Redacted.make(address.href)
}

/** Compares the restored rows with those that were saved. */
const compareRows = Effect.fnUntraced(function* (
  session: Session,
  { tables }: Manifest,
  show: Progress
) {
  yield* beginSnapshot(session)
  for (const table of tables) {
    yield* show(`comparing ${table.name}`)
    const digest = new RowDigest()
    yield* Stream.runForEach(readRows(session, table), (row) => Effect.sync(() => digest.add(row)))
    if (digest.rows !== table.rows) {
      return yield* refuse(
        `The restored table ${table.name} has ${digest.rows} rows instead of ${table.rows}: the backup is damaged.`
      )
    }
    if (table.digest !== undefined && digest.value !== table.digest) {
      return yield* refuse(
        `The rows of the restored table ${table.name} differ from those that were saved. Report this as a fault.`
      )
    }
  }
  yield* endSnapshot(session)
})

const checkFunctions = Effect.fnUntraced(function* (data: string, { functions }: Manifest) {
  for (const { environmentId } of functions) {
    const folder = join(data, "functions", environmentId)
    if (existsSync(folder)) yield* failedTo(`read ${folder}`, () => checkDatabases(folder))
  }
})

/** Verifies the backup of a folder and returns its manifest. */
export const verify = Effect.fn("verify")(
  function* (folder: string, database: Option.Option<Redacted.Redacted>, show: Progress) {
    const manifest = yield* checkWhole(folder, show)
    yield* checkFunctions(join(folder, dataFolder), manifest)
    const url = Option.isSome(database) ? database.value : (yield* scratchServer).url
    const schema = scratchSchema(yield* (yield* SecureRandom.SecureRandom).uuidV4())
    const scratch = inSchema(url, schema)
    const session = yield* openSession(scratch)
    const target = { session, url: scratch, check: Effect.void }
    yield* withScratchSchema(
      session,
      schema,
      Effect.andThen(
        restoreTables(target, join(folder, databaseFolder), manifest, show),
        compareRows(session, manifest, show)
      )
    )
    return manifest
  },
  Effect.provide(SecureRandom.layerWebCrypto),
  Effect.scoped
)
