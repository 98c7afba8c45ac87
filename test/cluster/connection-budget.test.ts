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
  it("fits the connections of eight runners with default settings into a default Postgres", () => {
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

/** The URL of a new role, which ends with the scope. Roles belong to the server that all test files use. */
const newRole = Effect.fnUntraced(function* (url: Redacted.Redacted) {
  const sql = yield* SqlClient.SqlClient
  const address = new URL(Redacted.value(url))
  const name = `role_of_${address.pathname.slice(1)}`
  yield* Effect.acquireRelease(sql`create role ${sql(name)} login password 'secret'`, () =>
    Effect.orDie(sql`drop role ${sql(name)}`)
  )
  address.username = name
  address.password = "secret"
  return { name: sql(name), url: Redacted.make(address.href) }
})

layer(SharedDatabase.layer)("the limit of connections", (it) => {
  it.effect(
    "takes the lowest of the server's, the database's and the role's limit of connections",
    () =>
      Effect.gen(function* () {
        const url = yield* SharedDatabase
        yield* Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          const [server] = yield* sql<{ connections: number }>`
          select setting::int - 3 as connections from pg_settings where name = 'max_connections'`
          assert.strictEqual(yield* connectionLimit(sql), server?.connections)
          const name = sql(new URL(Redacted.value(url)).pathname.slice(1))
          yield* sql`alter database ${name} connection limit 7`
          assert.strictEqual(yield* connectionLimit(sql), 7)
          const role = yield* newRole(url)
          yield* Effect.gen(function* () {
            const own = yield* SqlClient.SqlClient
            assert.strictEqual(yield* connectionLimit(own), 7)
            yield* sql`alter role ${role.name} connection limit 5`
            assert.strictEqual(yield* connectionLimit(own), 5)
            yield* sql`alter role ${role.name} connection limit 9`
            assert.strictEqual(yield* connectionLimit(own), 7)
          }).pipe(Effect.provide(poolLayer({ url: role.url, connections: 1 })))
        }).pipe(Effect.scoped, Effect.provide(poolLayer({ url, connections: 1 })))
      })
  )
})
