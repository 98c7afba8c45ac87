/** The tables that a backup expects are those that the migrations make. */
import { assert, layer } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { TestDatabase } from "#testing/app"
import { newestMigration, migrateTo, poolLayer } from "#sql/database"
import { listTables, tablesAt } from "#sql/backup"
import { PgConnection } from "@effect/sql-pg"
import { DatabaseLive } from "../support/service.ts"

const inSchema = (url: Redacted.Redacted, schema: string): Redacted.Redacted => {
  const address = new URL(Redacted.value(url))
  address.searchParams.set("options", `-c search_path=${schema}`)
  return Redacted.make(address.href)
}

layer(DatabaseLive)("tables of a backup", (it) => {
  it.effect("expects in a backup exactly the tables that each migration leaves", () =>
    Effect.gen(function* () {
      const { url } = yield* TestDatabase
      const stepwise = inSchema(Redacted.make(url), "stepwise")
      const session = yield* PgConnection.make({ url: stepwise })
      yield* session.query("create schema stepwise")
      const newest = yield* newestMigration
      for (let migration = 1; migration <= newest; migration += 1) {
        yield* Effect.provide(migrateTo(migration), poolLayer({ url: stepwise, connections: 1 }))
        const found = (yield* listTables(session)).map(({ name }) => name)
        assert.deepStrictEqual(found.toSorted(), tablesAt(migration), `migration ${migration}`)
      }
    }).pipe(Effect.scoped)
  )
})
