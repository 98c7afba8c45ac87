/** Whether the operator has closed the sign-up of developers. */
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { orDieWithTimeout } from "../database.ts"

const Rows = Schema.Struct({ id: Schema.Int })

const statements = (sql: SqlClient.SqlClient) => ({
  find: SqlSchema.findAll({
    Request: Schema.Void,
    Result: Rows,
    execute: () => sql`select id from closed_signups`
  }),
  close: SqlSchema.findAll({
    Request: Schema.DateTimeUtcFromDate,
    Result: Rows,
    execute: (closedAt) => sql`
      insert into closed_signups (closed_at) values (${closedAt}) on conflict do nothing returning id`
  }),
  open: SqlSchema.findAll({
    Request: Schema.Void,
    Result: Rows,
    execute: () => sql`delete from closed_signups returning id`
  })
})

/** Repository of `closed_signups`, which has one row or none. */
export class ClosedSignups extends Context.Service<ClosedSignups>()(
  "sql/developers/closed-signups/ClosedSignups",
  {
    make: Effect.map(SqlClient.SqlClient, (sql) => {
      const { close, find, open } = statements(sql)
      const isAny = <E, R>(rows: Effect.Effect<ReadonlyArray<unknown>, E, R>) =>
        Effect.map(orDieWithTimeout(rows), ({ length }) => length > 0)
      return {
        isClosed: isAny(find(undefined)),
        /** Closes sign-up; false if it was closed. */
        close: (now: Parameters<typeof close>[0]) => isAny(close(now)),
        /** Leaves sign-up to the settings again; false if it was left to them. */
        open: isAny(open(undefined))
      }
    })
  }
) {
  static readonly layer = Layer.effect(ClosedSignups, this.make)
}
