/**
 * Test databases: one real Postgres for a whole run, one migrated template, and for each test file
 * a clone of the template. A clone costs milliseconds; the test kit drops it afterwards.
 */
import { statfs } from "node:fs/promises"
import { NodeServices } from "@effect/platform-node"
import { PgConnection } from "@effect/sql-pg"
import { Effect, FileSystem, Redacted } from "effect"
import { SecureRandom } from "effect/crypto"
import { migrate, poolLayer } from "#sql/database"
import { embeddedPostgres } from "#server/platform/postgres/embedded"

const template = "svc_template"

/** The URL of another database on the same server. */
const urlOf = (url: Redacted.Redacted, database: string): Redacted.Redacted => {
  const address = new URL(Redacted.value(url))
  address.pathname = `/${database}`
  return Redacted.make(address.href)
}

/** Runs statements in sequence without a transaction, which `create database` forbids. */
const runStatements = Effect.fnUntraced(function* (
  url: Redacted.Redacted,
  ...statements: ReadonlyArray<string>
) {
  const session = yield* PgConnection.make({ url })
  for (const statement of statements) yield* session.query(statement)
}, Effect.scoped)

const memoryFolder = "/dev/shm"
const memoryMinBytes = 2 * 1024 ** 3

/** The file system in memory where there is one with room: a clone takes a tenth of the CPU time there. */
const folderInMemory = Effect.promise(async () => {
  const stats = await statfs(memoryFolder).catch(() => undefined)
  const isRoomy = stats !== undefined && stats.bavail * stats.bsize >= memoryMinBytes
  return isRoomy ? memoryFolder : undefined
})

/**
 * Starts a Postgres in a temporary directory with a migrated template. It stops with the scope. It
 * skips disk syncs, because it need not survive a crash. A minute after the process was killed, the
 * watcher of the server stops it and removes the directory.
 */
export const testServer = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const directory = yield* folderInMemory
  const dataDir = yield* fs.makeTempDirectoryScoped({ directory, prefix: "svc-test-" })
  yield* fs.chmod(dataDir, 0o755)
  const { url } = yield* embeddedPostgres({ dataDir, isTemporary: true })
  yield* runStatements(
    url,
    "alter system set fsync = off",
    "alter system set synchronous_commit = off",
    "alter system set full_page_writes = off",
    "alter system set max_wal_size = '256MB'",
    "select pg_reload_conf()",
    `create database ${template}`
  )
  yield* Effect.provide(migrate, poolLayer({ url: urlOf(url, template), connections: 2 }))
  return url
}).pipe(Effect.provide(NodeServices.layer))

/** A fresh, migrated database on a {@link testServer}. The scope drops it. */
export const cloneDatabase = Effect.fnUntraced(function* (server: Redacted.Redacted) {
  const random = yield* SecureRandom.SecureRandom
  const name = `svc_${(yield* random.uuidV4()).replaceAll("-", "")}`
  // A copy of the files costs half the CPU time of the default, which logs each page.
  yield* Effect.acquireRelease(
    runStatements(server, `create database ${name} template ${template} strategy file_copy`),
    () => Effect.ignore(runStatements(server, `drop database ${name} with (force)`))
  )
  return urlOf(server, name)
}, Effect.provide(SecureRandom.layerWebCrypto))
