/**
 * Token buckets that all nodes share. A bucket is one number: the time at which it will be full again.
 * Taking tokens moves that time forward, and the tokens left follow from its distance.
 */
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { orDieWithTimeout } from "./database.ts"

/** Request for tokens. Times are Unix milliseconds. */
const Take = Schema.Struct({
  key: Schema.String,
  /** Maximum number of tokens to take. */
  wanted: Schema.Int,
  /** Time in which an empty bucket fills, and time in which it gains one token. */
  windowMillis: Schema.Number,
  intervalMillis: Schema.Number,
  now: Schema.Number
})

const Taken = Schema.Struct({ granted: Schema.Int, fullAt: Schema.Number })
export type Taken = typeof Taken.Type

const statements = (sql: SqlClient.SqlClient) => ({
  take: SqlSchema.findOne({
    Request: Take,
    Result: Taken,
    execute: ({ intervalMillis, key, now, wanted, windowMillis }) => {
      const missing = sql`greatest(t.full_at - ${now}::float8, 0)`
      const available = sql`floor((${windowMillis}::float8 - ${missing}) / ${intervalMillis}::float8)`
      const granted = sql`greatest(least(${wanted}::int, ${available}), 0)`
      return sql`
        insert into throttles as t (key, granted, full_at) values (${key}, ${wanted}::int,
          ${now}::float8 + ${wanted}::int * ${intervalMillis}::float8)
        on conflict (key) do update set granted = ${granted},
          full_at = greatest(t.full_at, ${now}::float8) + ${granted} * ${intervalMillis}::float8
        returning granted, full_at`
    }
  }),
  sweep: SqlSchema.void({
    Request: Schema.Number,
    execute: (now) => sql`delete from throttles where full_at < ${now}::float8`
  })
})

/** Repository of the table `throttles`. */
export class ThrottleRepository extends Context.Service<ThrottleRepository>()(
  "sql/throttles/ThrottleRows",
  {
    make: Effect.gen(function* () {
      const { sweep, take } = statements(yield* SqlClient.SqlClient)
      return {
        take: (request: typeof Take.Type) => orDieWithTimeout(take(request)),
        /** Deletes full buckets: a bucket without a row is full. */
        sweep: (now: number) => Effect.orDie(sweep(now))
      }
    })
  }
) {
  static readonly layer = Layer.effect(ThrottleRepository, this.make)
}
