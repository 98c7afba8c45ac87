/** A real pooler before Postgres: accepted in session mode, refused in transaction mode. */
import { assert, describe, it } from "@effect/vitest"
import { PgConnection } from "@effect/sql-pg"
import { Effect, Layer, type Redacted, Schedule } from "effect"
import { startDatabase } from "#server/platform/database-start"
import { SharedDatabase } from "../support/http-stack.ts"
import { skipReason, startPgbouncer } from "../support/pgbouncer.ts"

const suffix = skipReason === undefined ? "" : ` (skipped: ${skipReason})`

const startVia = (url: Redacted.Redacted, variable: string) =>
  Layer.build(startDatabase({ variable, url, prepare: Effect.void }))

const canLock = (session: PgConnection.PgConnection) =>
  Effect.map(session.query("select pg_try_advisory_lock(1) as locked"), ({ rows }) =>
    Boolean(rows[0]?.["locked"])
  )

describe("a database behind PgBouncer", () => {
  it.live.skipIf(skipReason !== undefined)(
    `uses PgBouncer in session mode, where a lock ends with its client${suffix}`,
    () =>
      Effect.gen(function* () {
        const url = yield* startPgbouncer(yield* SharedDatabase, "session")
        yield* startVia(url, "DATABASE_URL")
        const second = yield* PgConnection.make({ url })
        yield* Effect.scoped(
          Effect.gen(function* () {
            assert.isTrue(yield* canLock(yield* PgConnection.make({ url })))
            assert.isFalse(yield* canLock(second))
          })
        )
        const isFree = Effect.filterOrFail(canLock(second), (locked) => locked)
        yield* Effect.retry(isFree, { times: 200, schedule: Schedule.spaced(25) })
      }).pipe(Effect.scoped, Effect.provide(SharedDatabase.layer))
  )

  it.live.skipIf(skipReason !== undefined)(
    `refuses PgBouncer in transaction mode, for the locks alone too${suffix}`,
    () =>
      Effect.gen(function* () {
        const url = yield* startPgbouncer(yield* SharedDatabase, "transaction")
        for (const variable of ["DATABASE_URL", "SVC_LOCK_DATABASE_URL"]) {
          const { message } = yield* Effect.flip(startVia(url, variable))
          assert.include(message, `${variable} leads through a pooler`)
          assert.include(message, "pool_mode = session")
        }
      }).pipe(Effect.scoped, Effect.provide(SharedDatabase.layer))
  )
})
