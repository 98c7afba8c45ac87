/** Migrations, each of which runs once however many processes start together, and rows of the pool. */
import { readdirSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { migrate, poolLayer } from "#sql/database"
import { at } from "#testing/players"
import { SharedDatabase } from "../support/http-stack.ts"

const files = readdirSync(new URL("../../sql/migrations", import.meta.url)).toSorted()

describe("migrations", () => {
  it.effect("brings an empty database up to date, run by several processes at once", () =>
    Effect.gen(function* () {
      const url = yield* SharedDatabase
      const processLayer = poolLayer({ url, connections: 2 })
      yield* Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* sql`drop schema public cascade`
        yield* sql`create schema public`
        const runs = Array.from({ length: 4 }, () => Effect.provide(migrate, processLayer))
        yield* Effect.all(runs, { concurrency: "unbounded" })
        const rows = yield* sql`select migration_id, name from migrations order by migration_id`
        const ran = rows.map(
          (row) =>
            `${String(at(row, "migrationId")).padStart(4, "0")}_${String(at(row, "name"))}.ts`
        )
        assert.deepStrictEqual(ran, files)
      }).pipe(Effect.provide(processLayer))
    }).pipe(Effect.provide(SharedDatabase.layer))
  )

  it.effect("reads a row of 17 MB, such as a save of the largest size that a setting allows", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const [row] = yield* sql`select repeat('x', 17000000) as data`
      assert.lengthOf(String(at(row, "data")), 17_000_000)
    }).pipe(
      Effect.provide(
        Layer.unwrap(Effect.map(SharedDatabase, (url) => poolLayer({ url, connections: 1 })))
      ),
      Effect.provide(SharedDatabase.layer)
    )
  )

  it("numbers migrations uniquely", () => {
    const numbers = files.map((file) => file.slice(0, 4))
    assert.lengthOf(new Set(numbers), files.length)
  })
})
