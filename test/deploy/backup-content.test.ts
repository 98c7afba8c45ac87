/** What a backup holds, and what a verification notices: in one process, on databases of the test server. */
import { mkdtempSync, rmSync } from "node:fs"
import { appendFile, cp, mkdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { NodeServices } from "@effect/platform-node"
import { PgConnection } from "@effect/sql-pg"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Option, Redacted, Stream } from "effect"
import { inject } from "vitest"
import { beginSnapshot, endSnapshot, listTables, readRows } from "#sql/backup"
import { dump } from "#server/backup/dump"
import { load } from "#server/backup/load"
import type { DataLocation } from "#server/backup/location"
import { keyIdOf } from "#server/backup/manifest"
import { makeProgress } from "#server/backup/progress"
import { verify } from "#server/backup/verify"
import { cloneDatabase } from "#testing/database"
import { masterKeyOf } from "../support/master-keys.ts"

const server = Redacted.make(inject("postgres"))
const progress = makeProgress(process.stderr)

const temporaryFolder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "backup content-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

/** A database of the service without rows, and a data directory. */
const makeService = Effect.gen(function* () {
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
const addPlayer = ({ sql }: Service, id: string, name: string, createdAt = "2026-01-01") =>
  sql(
    `insert into players (id, environment_id, display_name, is_guest, created_at)
     values ($1, 'env_1', $2, true, $3::text::timestamptz)`,
    [id, name, createdAt]
  )

/** A service with an environment and a player. */
const makeUsedService = Effect.gen(function* () {
  const service = yield* makeService
  yield* service.sql("insert into projects values ('prj_1', 'Game', 'game', '2026-01-01')")
  yield* service.sql(
    "insert into environments values ('env_1', 'prj_1', 'development', '2026-01-01')"
  )
  yield* addPlayer(service, "ply_1", "Ada")
  return service
})

const save = ({ folder, location }: Service) => dump(location, folder, progress)

const verified = (folder: string) => verify(folder, Option.some(server), progress)

/** The reason of a command that must fail. */
const refusalOf = <A, R>(command: Effect.Effect<A, { readonly message: string }, R>) =>
  Effect.map(Effect.flip(command), ({ message }) => message)

/** All rows of a service, of each table in order. */
const contentOf = ({ inSession }: Service) =>
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
const restore = Effect.fnUntraced(function* (folder: string, settings?: Partial<DataLocation>) {
  const service = yield* makeService
  yield* load({ ...service.location, ...settings }, folder, progress)
  return service
})

const run = <A, E>(
  test: Effect.Effect<A, E, NodeServices.NodeServices | import("effect/Scope").Scope>
) => test.pipe(Effect.scoped, Effect.provide(NodeServices.layer))

const write = (path: string, content: string) =>
  Effect.promise(async () => {
    await mkdir(join(path, ".."), { recursive: true })
    await writeFile(path, content)
  })

describe("the rows of a backup", () => {
  it.live(
    "brings back line separators of Unicode, quotes, infinite times and the bits of numbers",
    () =>
      run(
        Effect.gen(function* () {
          const service = yield* makeUsedService
          const names = [
            "a\u2028b\u2029c\u0085d",
            'tab\t "quoted" (a,b) \\ back\r\nline',
            "",
            " ",
            "NULL",
            "\u{1F3AE}\u202E"
          ]
          const times = [
            "infinity",
            "-infinity",
            "0044-03-15 BC",
            "9999-12-31 23:59:59.999999+14",
            "294276-12-31",
            "epoch"
          ]
          for (const [index, name] of names.entries()) {
            yield* addPlayer(service, `ply_odd${index}`, name, times[index])
          }
          const numbers = [
            "NaN",
            "Infinity",
            "0.30000000000000004",
            "5e-324",
            "1.7976931348623157e308",
            "-0"
          ]
          for (const [index, number] of numbers.entries()) {
            yield* service.sql(
              `insert into stats values ('env_1', $1, 'kills', 'sum', $2::text::float8,
               'infinity', 0, '0001-01-01 BC', 0, '2026-01-01', 0)`,
              [`ply_odd${index}`, number]
            )
          }
          yield* save(service)
          yield* verified(service.folder)
          assert.deepStrictEqual(
            yield* contentOf(yield* restore(service.folder)),
            yield* contentOf(service)
          )
        })
      )
  )

  it.live("brings back a row of 17 MB", () =>
    run(
      Effect.gen(function* () {
        const service = yield* makeUsedService
        yield* service.sql(
          `insert into saves (environment_id, player_id, key, version, data, size, updated_at, fresh, growth)
           values ('env_1', 'ply_1', 'slot', 1, repeat('x', 17000000), 1, now(), true, 0)`
        )
        yield* save(service)
        const { sql } = yield* restore(service.folder)
        const { rows } = yield* sql("select length(data)::int as length from saves")
        assert.deepStrictEqual(rows, [{ length: 17_000_000 }])
      })
    )
  )

  it.live(
    "brings back numbers and dates from a database that writes them shorter and in another order",
    () =>
      run(
        Effect.gen(function* () {
          const service = yield* makeUsedService
          yield* service.sql(
            `insert into stats values ('env_1', 'ply_1', 'kills', 'sum', 0.1::float8 + 0.2,
             '2026-03-04', 0, '2026-03-04', 0, '2026-03-01', 0)`
          )
          const name = new URL(
            Redacted.value(Option.getOrThrow(service.location.databaseUrl))
          ).pathname.slice(1)
          for (const setting of [
            "extra_float_digits = 0",
            "datestyle = 'SQL, DMY'",
            "statement_timeout = '2h'"
          ]) {
            yield* service.sql(`alter database ${name} set ${setting}`)
          }
          yield* save(service)
          assert.deepStrictEqual(
            yield* contentOf(yield* restore(service.folder)),
            yield* contentOf(service)
          )
        })
      )
  )

  it.live("leaves out tables of other programs, and says so", () =>
    run(
      Effect.gen(function* () {
        const service = yield* makeUsedService
        yield* service.sql("create table notes (id serial)")
        yield* service.sql("insert into notes default values")
        const { others } = yield* save(service)
        assert.deepStrictEqual(others, ["notes"])
        yield* restore(service.folder)
      })
    )
  )
})

/** A SQLite database of several hundred pages, which is written in each turn of the event loop. */
const writtenDatabase = (file: string) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const database = new DatabaseSync(file)
      database.exec("pragma journal_mode = wal; pragma synchronous = off")
      database.exec("create table entries (id integer primary key, data text)")
      database.exec(
        `insert into entries (data) select printf('%1000c', 'x')
         from json_each('[' || substr(replace(printf('%3000c', ' '), ' ', ',0'), 2) || ']')`
      )
      const update = database.prepare("update entries set data = data || 'y' where id = 1")
      const state = { isOver: false }
      const write = () => {
        if (state.isOver) return
        update.run()
        setImmediate(write)
      }
      write()
      return { database, state }
    }),
    ({ database, state }) =>
      Effect.sync(() => {
        state.isOver = true
        database.close()
      })
  )

describe("the data of functions in a backup", () => {
  it.live("holds a whole copy of a database that is written all the time", () =>
    run(
      Effect.gen(function* () {
        const service = yield* makeUsedService
        const inside = "functions/env_1/d1/busy.sqlite"
        const file = join(service.location.dataDir, inside)
        yield* write(`${file}.txt`, "")
        yield* writtenDatabase(file)
        yield* save(service)
        yield* verified(service.folder)
        const copy = join(yield* temporaryFolder, "copy.sqlite")
        yield* Effect.promise(() => cp(join(service.folder, "data", inside), copy))
        const database = new DatabaseSync(copy)
        const counted = database.prepare("select count(*) as rows from entries").get()
        database.close()
        assert.deepInclude(counted, { rows: 3000 })
      })
    )
  )
})

describe("a verification", () => {
  /** A backup with files of apps and of functions. */
  const makeBackup = Effect.gen(function* () {
    const service = yield* makeUsedService
    const { dataDir } = service.location
    yield* write(join(dataDir, "master.key"), masterKeyOf(1))
    yield* write(join(dataDir, "blobs/env_1/abc"), "a file of an app")
    yield* write(join(dataDir, "functions/env_1/kv/entry"), "a value")
    yield* save(service)
    return service
  })

  const files = [
    "manifest.json",
    "sha256sums",
    "database/players.jsonl.gz",
    "data/master.key",
    "data/blobs/env_1/abc",
    "data/functions/env_1/kv/entry"
  ]

  const damages: Readonly<Record<string, (path: string) => Promise<void>>> = {
    "one changed bit": async (path) => {
      const bytes = await readFile(path)
      const middle = bytes.length >> 1
      bytes.writeUInt8(bytes.readUInt8(middle) ^ 1, middle)
      await writeFile(path, bytes)
    },
    "its end cut off": async (path) => writeFile(path, (await readFile(path)).subarray(0, -1)),
    "no bytes": (path) => writeFile(path, ""),
    "more bytes": (path) => appendFile(path, "more"),
    "another name": (path) => rename(path, `${path}.old`),
    "another file beside it": (path) => writeFile(`${path}.more`, "")
  }

  it.live("notices each file with a changed bit, cut off, emptied, longer, lost or added", () =>
    run(
      Effect.gen(function* () {
        const { folder } = yield* makeBackup
        yield* verified(folder)
        const damaged = `${folder}-damaged`
        const target = yield* makeService
        for (const file of files) {
          for (const [name, damage] of Object.entries(damages)) {
            yield* Effect.promise(async () => {
              await rm(damaged, { recursive: true, force: true })
              await cp(folder, damaged, { recursive: true })
              await damage(join(damaged, file))
            })
            const reason = yield* refusalOf(verified(damaged))
            assert.match(reason, /is damaged|no whole backup/, `${file} with ${name}`)
            const restored = yield* refusalOf(load(target.location, damaged, progress))
            assert.strictEqual(restored, reason, `${file} with ${name}`)
          }
        }
      })
    )
  )

  it.live(
    "drops the scratch schema of a verification that was killed, and leaves that of a running one",
    () =>
      run(
        Effect.gen(function* () {
          const service = yield* makeBackup
          const url = service.location.databaseUrl
          yield* service.sql("create schema svc_verify_killed")
          yield* service.sql("create schema svc_verify_running")
          const schemas = yield* service.inSession(
            Effect.fnUntraced(function* (session) {
              yield* session.query(
                "select pg_advisory_lock(hashtextextended('svc_verify_running', 0))"
              )
              yield* verify(service.folder, url, progress).pipe(Effect.provide(NodeServices.layer))
              return yield* session.query(
                "select nspname::text as name from pg_namespace where nspname like 'svc_verify%'"
              )
            })
          )
          assert.deepStrictEqual(schemas.rows, [{ name: "svc_verify_running" }])
        })
      )
  )
})

describe("a backup that cannot be whole", () => {
  it.live("leaves nothing behind when it fails", () =>
    run(
      Effect.gen(function* () {
        const service = yield* makeUsedService
        // A folder in the place of a file.
        yield* write(join(service.location.dataDir, "master.key/file"), "")
        yield* refusalOf(save(service))
        const left = yield* Effect.promise(() => stat(service.folder).catch(() => undefined))
        assert.isUndefined(left)
      })
    )
  )

  it.live("refuses another data directory than that of the database", () =>
    run(
      Effect.gen(function* () {
        const service = yield* makeUsedService
        yield* service.sql("insert into blobs values ('env_1', 'abc', 1, now())")
        assert.match(yield* refusalOf(save(service)), /names 1 files of apps, and .* SVC_DATA_DIR/)
      })
    )
  )

  it.live(
    "refuses another master key than that of the database, and names the one it needs without any",
    () =>
      run(
        Effect.gen(function* () {
          const service = yield* makeUsedService
          const id = keyIdOf(masterKeyOf(1))
          yield* service.sql("insert into signing_keys values ('kid', '{}', $1, now())", [
            `${id}.a.b`
          ])
          const given = (number: number) => ({
            ...service.location,
            masterKey: Option.some(Redacted.make(masterKeyOf(number)))
          })
          assert.match(yield* refusalOf(dump(given(2), service.folder, progress)), /is another key/)
          const { manifest } = yield* save(service)
          assert.deepStrictEqual(manifest.masterKey, { id, included: false })
          assert.match(yield* refusalOf(restore(service.folder)), /set SVC_MASTER_KEY/)
          yield* restore(service.folder, { masterKey: given(1).masterKey })
          // The key was replaced since.
          const olderMasterKeys = [Redacted.make(masterKeyOf(1))]
          yield* restore(service.folder, { masterKey: given(2).masterKey, olderMasterKeys })
        })
      )
  )
})

describe("a restore", () => {
  it.live("can be run again when its files could not be written", () =>
    run(
      Effect.gen(function* () {
        const service = yield* makeUsedService
        yield* write(join(service.location.dataDir, "blobs/env_1/abc"), "a file")
        yield* save(service)
        const target = yield* makeService
        yield* write(target.location.blobs, "a file in the place of the folder")
        assert.match(
          yield* refusalOf(load(target.location, service.folder, progress)),
          /Failed to write/
        )
        yield* Effect.promise(() => rm(target.location.blobs))
        yield* load(target.location, service.folder, progress)
        assert.deepStrictEqual(yield* contentOf(target), yield* contentOf(service))
      })
    )
  )

  it.live("leaves the database of another program as it is", () =>
    run(
      Effect.gen(function* () {
        const service = yield* makeUsedService
        yield* save(service)
        const other = yield* makeService
        yield* other.sql("drop schema public cascade")
        yield* other.sql("create schema public")
        yield* other.sql("create table notes (id int)")
        assert.match(
          yield* refusalOf(load(other.location, service.folder, progress)),
          /such as notes/
        )
        const { rows } = yield* other.sql(
          "select relname::text as name from pg_class where relnamespace = 'public'::regnamespace"
        )
        assert.deepStrictEqual(rows, [{ name: "notes" }])
      })
    )
  )

  it.live(
    "says who uses the database, and where files of apps belong that a bucket will hold",
    () =>
      run(
        Effect.gen(function* () {
          const service = yield* makeUsedService
          yield* write(join(service.location.dataDir, "blobs/env_1/abc"), "a file")
          yield* save(service)
          const target = yield* makeService
          const busy = yield* target.inSession(() =>
            refusalOf(load(target.location, service.folder, progress)).pipe(
              Effect.provide(NodeServices.layer)
            )
          )
          assert.match(busy, /in use by \S+\. Close .*stop every runner/)
          const bucket = { ...target.location, hasBucket: true }
          assert.match(
            yield* refusalOf(load(bucket, service.folder, progress)),
            /SVC_BLOBS_URL names a bucket.*into the bucket/
          )
        })
      )
  )
})
