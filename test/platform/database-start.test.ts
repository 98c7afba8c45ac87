/** Start of a database: poolers that share sessions, and a server without a connection left. */
import { assert, describe, it, layer } from "@effect/vitest"
import { PgConnection } from "@effect/sql-pg"
import { Effect, Fiber, Layer, Redacted } from "effect"
import { Migrator, SqlError } from "effect/sql"
import { TestClock } from "effect/testing"
import {
  DatabaseStartError,
  explain,
  retryWhileAway,
  sharesSessions,
  startDatabase
} from "#server/platform/database-start"
import { SharedDatabase } from "../support/http-stack.ts"

type Session = Parameters<typeof sharesSessions>[0]

/** A pooler that lends a server session for a transaction, the last one returned first. */
const pooler = (serverSessions: number) => {
  const free = Array.from({ length: serverSessions }, (_, i) => serverSessions - i)
  return (): Session => {
    let held: number | undefined
    return {
      query: (text) =>
        Effect.sync(() => {
          const pid = held ?? free.pop()
          if (pid === undefined) throw new Error("no session is free")
          held = text === "begin" ? pid : text === "rollback" ? undefined : held
          if (held === undefined) free.push(pid)
          return { command: "", rowCount: 0, oid: null, rows: [{ pid }], fields: [] }
        })
    }
  }
}

describe("work of the start", () => {
  it.effect("repeats a start whose database goes away in the middle of a migration", () =>
    Effect.gen(function* () {
      let runs = 0
      const work = Effect.suspend(() => {
        runs += 1
        if (runs > 2) return Effect.succeed("done")
        const reason = new SqlError.ConnectionError({ cause: new Error("closed") })
        const cause = new SqlError.SqlError({ reason })
        const error = new Migrator.MigrationError({ kind: "Failed", message: "failed", cause })
        return runs === 1 ? Effect.fail(error) : Effect.die(error)
      })
      const done = yield* Effect.forkChild(retryWhileAway("DATABASE_URL", work))
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual(yield* Fiber.join(done), "done")
    })
  )
})

describe("a pooler in transaction mode", () => {
  it.effect("detects a pooler in transaction mode by two clients with one session", () =>
    Effect.gen(function* () {
      const client = pooler(1)
      assert.isTrue(yield* sharesSessions(client(), client()))
    })
  )

  it.effect("detects a pooler in transaction mode by a client whose session changes", () =>
    Effect.gen(function* () {
      const client = pooler(3)
      const first = client()
      const busy = client()
      yield* first.query("select")
      // Another client takes the session that the first one had, and returns it last.
      const second: Session = {
        query: (text, ...rest) =>
          text === "begin"
            ? Effect.andThen(busy.query("begin"), query(text, ...rest))
            : query(text, ...rest)
      }
      const { query } = client()
      assert.isTrue(yield* sharesSessions(first, second))
    })
  )
})

layer(SharedDatabase.layer)("a database", (it) => {
  it.effect("gives each connection a session of its own without a pooler", () =>
    Effect.gen(function* () {
      const url = yield* SharedDatabase
      const sessions = yield* Effect.all([PgConnection.make({ url }), PgConnection.make({ url })])
      assert.isFalse(yield* sharesSessions(...sessions))
    })
  )

  it.effect("names each address that refused, when a name has several", () =>
    Effect.gen(function* () {
      const refused = new AggregateError([
        new Error("connect ECONNREFUSED ::1:9"),
        new Error("connect ECONNREFUSED 127.0.0.1:9")
      ])
      const reason = new SqlError.ConnectionError({ cause: refused, message: "Failed to connect" })
      const failure = yield* Effect.flip(explain("DATABASE_URL")(new SqlError.SqlError({ reason })))
      assert.include(failure.message, "ECONNREFUSED ::1:9, connect ECONNREFUSED 127.0.0.1:9")
    })
  )

  it.effect("explains a wrong password, a missing database and a server without TLS at once", () =>
    Effect.gen(function* () {
      const url = Redacted.value(yield* SharedDatabase)
      const failure = Effect.fnUntraced(function* (change: (address: URL) => void) {
        const address = new URL(url)
        change(address)
        const started = startDatabase({
          variable: "DATABASE_URL",
          url: Redacted.make(address.href),
          prepare: Effect.void
        })
        const error = yield* Effect.flip(Effect.scoped(Layer.build(started)))
        assert.instanceOf(error, DatabaseStartError)
        return error.message
      })
      const password = yield* failure((address) => (address.password = "wrong"))
      assert.match(password, /DATABASE_URL: password authentication failed .*Correct the/)
      const database = yield* failure((address) => (address.pathname = "none"))
      assert.match(database, /DATABASE_URL: database "none" does not exist/)
      const tls = yield* failure((address) => address.searchParams.set("sslmode", "require"))
      assert.match(tls, /DATABASE_URL with TLS: .*sslmode=disable/)
    })
  )

  it.effect("names the settings to change when it has no connection left", () =>
    Effect.gen(function* () {
      const url = yield* SharedDatabase
      const admin = yield* PgConnection.make({ url })
      yield* admin.query("create role crowded login password 'crowded' connection limit 0")
      yield* Effect.addFinalizer(() => Effect.ignore(admin.query("drop role crowded")))
      const address = new URL(Redacted.value(url))
      address.username = address.password = "crowded"
      const refused = yield* Effect.flip(PgConnection.make({ url: Redacted.make(address.href) }))
      const error = yield* Effect.flip(explain("DATABASE_URL")(refused))
      assert.instanceOf(error, DatabaseStartError)
      assert.match(error.message, /max_connections.*SVC_DATABASE_CONNECTIONS/)
    })
  )
})
