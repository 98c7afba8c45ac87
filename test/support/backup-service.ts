/** Services of one database each, and backups of them, in the process of the test. */
import { mkdtempSync, rmSync } from "node:fs"
import { mkdir, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { NodeServices } from "@effect/platform-node"
import { PgConnection } from "@effect/sql-pg"
import { Effect, Option, Redacted, type Scope, Stream } from "effect"
import { inject } from "vitest"
import { beginSnapshot, endSnapshot, listTables, readRows } from "#sql/backup"
import { dump } from "#server/backup/dump"
import { load } from "#server/backup/load"
import type { DataLocation } from "#server/backup/location"
import { makeProgress } from "#server/backup/progress"
import { verify } from "#server/backup/verify"
import { cloneDatabase } from "#testing/database"

const server = Redacted.make(inject("postgres"))
export const progress = makeProgress(process.stderr)

export const temporaryFolder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "backup content-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

/** A database of the service without rows, and a data directory. */
export const makeService = Effect.gen(function* () {
  const url = yield* cloneDatabase(server)
  const parent = yield* temporaryFolder
  const dataDir = join(parent, "data")
  yield* Effect.promise(() => mkdir(dataDir))
  const location: DataLocation = {
    databaseUrl: Option.some(url),
    dataDir,
    masterKey: Option.none(),
    olderMasterKeys: [],
    hasBucket: false,
    blobs: join(dataDir, "blobs")
  }
  /** Runs statements in a session of their own: a restore refuses a database that is in use. */
  const inSession = <A, E>(work: (session: PgConnection.PgConnection) => Effect.Effect<A, E>) =>
    Effect.scoped(
      Effect.flatMap(PgConnection.make({ url, maxMessageSize: 2 ** 30 }), (session) =>
        // The server removes a session a moment after the client has left.
        Effect.ensuring(work(session), Effect.ignore(session.query("select 1")))
      )
    )
  const sql = (statement: string, parameters: ReadonlyArray<unknown> = []) =>
    inSession((session) => session.query(statement, parameters))
  return { folder: join(parent, "saved"), inSession, location, sql }
})

type Service = Effect.Success<typeof makeService>

/** A player, by the texts of its columns. */
export const addPlayer = ({ sql }: Service, id: string, name: string, createdAt = "2026-01-01") =>
  sql(
    `insert into players (id, environment_id, display_name, is_guest, created_at)
     values ($1, 'env_1', $2, true, $3::text::timestamptz)`,
    [id, name, createdAt]
  )

/** A service with an environment and a player. */
export const makeUsedService = Effect.gen(function* () {
  const service = yield* makeService
  yield* service.sql("insert into projects values ('prj_1', 'Game', 'game', '2026-01-01')")
  yield* service.sql(
    "insert into environments values ('env_1', 'prj_1', 'development', '2026-01-01')"
  )
  yield* addPlayer(service, "ply_1", "Ada")
  return service
})

export const save = ({ folder, location }: Service) => dump(location, folder, progress)

export const verified = (folder: string) => verify(folder, Option.some(server), progress)

/** The reason of a command that must fail. */
export const refusalOf = <A, R>(command: Effect.Effect<A, { readonly message: string }, R>) =>
  Effect.map(Effect.flip(command), ({ message }) => message)

/** All rows of a service, of each table in order. */
export const contentOf = ({ inSession }: Service) =>
  inSession(
    Effect.fnUntraced(function* (session) {
      yield* beginSnapshot(session)
      const content: Record<string, ReadonlyArray<string>> = {}
      for (const table of yield* listTables(session)) {
        const rows = yield* Stream.runCollect(readRows(session, table))
        content[table.name] = rows.toSorted()
      }
      yield* endSnapshot(session)
      return content
    })
  )

/** Restores a backup into a service without rows, and returns that. */
export const restore = Effect.fnUntraced(function* (
  folder: string,
  settings?: Partial<DataLocation>
) {
  const service = yield* makeService
  yield* load({ ...service.location, ...settings }, folder, progress)
  return service
})

export const run = <A, E>(test: Effect.Effect<A, E, NodeServices.NodeServices | Scope.Scope>) =>
  test.pipe(Effect.scoped, Effect.provide(NodeServices.layer))

export const write = (path: string, content: string) =>
  Effect.promise(async () => {
    await mkdir(join(path, ".."), { recursive: true })
    await writeFile(path, content)
  })
