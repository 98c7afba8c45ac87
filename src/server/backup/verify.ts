/**
 * Verifies a backup: restores its tables into a scratch database, counts their rows, and reads its files.
 * The scratch database is a Postgres in a temporary folder, or a schema of a given database, which is dropped
 * at the end.
 */
import { mkdtemp, chmod, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Option, Redacted } from "effect"
import { SecureRandom } from "effect/crypto"
import { countRows, type Session, withScratchSchema } from "#sql/backup"
import { embeddedPostgres } from "../platform/postgres/embedded.ts"
import { checkFiles } from "./files.ts"
import { checkBlobs, readManifest } from "./load.ts"
import { databaseFolder, dataFolder, type Manifest } from "./manifest.ts"
import { BackupError, openSession, refuse } from "./location.ts"
import { failedTo, type Progress } from "./progress.ts"
import { checkRelease, restoreTables } from "./tables.ts"

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

const compareCounts = Effect.fnUntraced(function* (session: Session, { tables }: Manifest) {
  for (const table of tables) {
    const rows = yield* countRows(session, table)
    if (rows === table.rows) continue
    return yield* refuse(
      `The restored table ${table.name} has ${rows} rows instead of ${table.rows}: the backup is damaged.`
    )
  }
})

const checkDataFiles = Effect.fnUntraced(function* (data: string, manifest: Manifest) {
  const blobs = yield* failedTo(`read ${data}`, () => checkFiles(join(data, "blobs")))
  yield* checkBlobs(data, blobs, manifest)
  for (const { environmentId } of manifest.functions) {
    const folder = join(data, "functions", environmentId)
    yield* failedTo(`read ${folder}`, () => checkFiles(folder))
  }
})

/** Verifies the backup of a folder and returns its manifest. */
export const verify = Effect.fn("verify")(
  function* (folder: string, database: Option.Option<Redacted.Redacted>, show: Progress) {
    const manifest = yield* readManifest(folder)
    yield* checkRelease(manifest)
    const url = Option.isSome(database) ? database.value : (yield* scratchServer).url
    const schema = `svc_verify_${(yield* (yield* SecureRandom.SecureRandom).uuidV4()).replaceAll("-", "")}`
    const scratch = inSchema(url, schema)
    const session = yield* openSession(scratch)
    yield* withScratchSchema(
      session,
      schema,
      Effect.andThen(
        restoreTables({ session, url: scratch }, join(folder, databaseFolder), manifest, show),
        compareCounts(session, manifest)
      )
    )
    yield* checkDataFiles(join(folder, dataFolder), manifest)
    return manifest
  },
  Effect.provide(SecureRandom.layerWebCrypto),
  Effect.scoped
)
