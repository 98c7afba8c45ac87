/** Warning about more connections than Postgres allows. */
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { connectionLimit, poolLayer } from "#sql/database"
import { type Budget, budgetWarning } from "#server/cluster/connection-budget"
import { SharedDatabase } from "../support/http-stack.ts"

const postgresDefault = 97

const budget = (over: Partial<Budget>): Budget => ({
  variable: "DATABASE_URL",
  limit: postgresDefault,
  runners: 1,
  pool: 10,
  besides: 1,
  ...over
})

describe("the connection budget", () => {
  it("fits eight runners with default settings on a default Postgres", () => {
    assert.isUndefined(budgetWarning(budget({ runners: 8 })))
  })

  it("names the limit and the pool that forty runners need", () => {
    const warning = budgetWarning(budget({ runners: 40 })) ?? ""
    assert.include(warning, "40 runners may open 440 connections, 11 each")
    assert.include(warning, "DATABASE_URL allows 97")
    assert.include(warning, "max_connections")
    assert.include(warning, "so that it allows 451")
    assert.include(warning, "SVC_DATABASE_CONNECTIONS of every runner to 1 or less")
  })

  it("proposes no pool where even the smallest does not fit", () => {
    const warning = budgetWarning(budget({ runners: 60 })) ?? ""
    assert.notInclude(warning, "SVC_DATABASE_CONNECTIONS")
    assert.notInclude(
      budgetWarning(budget({ runners: 40, variable: "SVC_LOCK_DATABASE_URL" })) ?? "",
      "SVC_DATABASE_CONNECTIONS"
    )
  })
})

layer(SharedDatabase.layer)("the limit of connections", (it) => {
  it.effect("is the lowest of the server's, the database's and the role's", () =>
    Effect.gen(function* () {
      const url = yield* SharedDatabase
      yield* Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const [server] = yield* sql<{ most: number }>`
          select setting::int - 3 as most from pg_settings where name = 'max_connections'`
        assert.strictEqual(yield* connectionLimit(sql), server?.most)
        const name = sql(new URL(Redacted.value(url)).pathname.slice(1))
        yield* sql`alter database ${name} connection limit 7`
        assert.strictEqual(yield* connectionLimit(sql), 7)
      }).pipe(Effect.provide(poolLayer({ url, connections: 1 })))
    })
  )
})
