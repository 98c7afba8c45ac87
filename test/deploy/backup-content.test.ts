/** What a backup brings back: rows of any text, size and form, and databases in use. */
import { cp } from "node:fs/promises"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Option, Redacted } from "effect"
import {
  addPlayer,
  contentOf,
  makeUsedService,
  restore,
  run,
  save,
  temporaryFolder,
  verified,
  write
} from "../support/backup-service.ts"

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
