/**
 * Sliding windows that all nodes share. A row holds the time of every request that a window still counts,
 * so no window of its length ever contains more than its limit. The times are Postgres' own, taken
 * under the lock of the row: the clocks of the nodes do not matter. Requests of different keys share a
 * statement.
 */
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { batchWrites } from "./batching.ts"
import { orDieWithTimeout } from "./database.ts"

/** One request of a key. */
const WindowRequest = Schema.Struct({
  key: Schema.String,
  limit: Schema.Int,
  windowMillis: Schema.Number
})
export type WindowRequest = typeof WindowRequest.Type

/** Whether the window had room; otherwise the time until it has. */
const WindowResult = Schema.Struct({ granted: Schema.Boolean, waitMillis: Schema.Number })
export type WindowResult = typeof WindowResult.Type

const statements = (sql: SqlClient.SqlClient) => {
  const now = sql.literal("extract(epoch from clock_timestamp())::float8 * 1000")
  return {
    // Rows are locked in the order of the keys, so two statements cannot deadlock. A time later than now
    // comes from before a correction of the clock and counts as now.
    take: SqlSchema.findAll({
      Request: Schema.fromJsonString(Schema.Array(WindowRequest)),
      Result: Schema.Struct({ key: Schema.String, ...WindowResult.fields }),
      execute: (requests) => sql`
        insert into rate_windows as w (key, request_limit, window_millis, taken, granted)
        select r.key, r."limit", r."windowMillis", array[${now}], true
        from json_to_recordset(${requests}::text::json)
          as r(key text, "limit" int, "windowMillis" float8)
        order by r.key
        on conflict (key) do update set (request_limit, window_millis, taken, granted) = (
          select excluded.request_limit, excluded.window_millis,
            case when has_room then counted || now else times end, has_room
          from (
            select *, cardinality(counted) < excluded.request_limit as has_room
            from (
              select *, times[width_bucket(now - excluded.window_millis, times) + 1 :] as counted
              from (
                select now, case when w.taken[cardinality(w.taken)] <= now then w.taken
                  else array(select least(t, now) from unnest(w.taken) as t) end as times
                from (select ${now} as now) as clock offset 0) as sorted
              offset 0) as pruned
          ) as checked)
        returning key, granted, case when granted then 0 else
          w.taken[cardinality(w.taken) - w.request_limit + 1] + w.window_millis - ${now}
        end as wait_millis`
    }),
    sweep: SqlSchema.void({
      Request: Schema.Void,
      execute: () => sql`
        delete from rate_windows
        where taken[cardinality(taken)] + window_millis < ${now}`
    })
  }
}

/** Repository of the table `rate_windows`. */
export class RateWindowRepository extends Context.Service<RateWindowRepository>()(
  "sql/rate-windows/RateWindowRepository",
  {
    make: Effect.gen(function* () {
      const { sweep, take } = statements(yield* SqlClient.SqlClient)
      const batch = (requests: ReadonlyArray<WindowRequest>) =>
        Effect.map(
          orDieWithTimeout(take(requests)),
          (rows): ReadonlyMap<string, WindowResult> => new Map(rows.map((row) => [row.key, row]))
        )
      const batched = yield* batchWrites<WindowRequest, WindowResult>({
        ownerOf: ({ key }) => key,
        sizeOf: ({ key }) => key.length,
        single: (request) =>
          Effect.flatMap(batch([request]), (results) =>
            Effect.fromNullishOr(results.get(request.key)).pipe(Effect.orDie)
          ),
        batch
      })
      return {
        /** Counts a request if its window has room. Never joins a transaction of the caller. */
        take: batched,
        /** Deletes windows that count no request any more. */
        sweep: Effect.orDie(sweep(undefined))
      }
    })
  }
) {
  static readonly layer = Layer.effect(RateWindowRepository, this.make)
}
