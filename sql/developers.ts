/** Developers: who may use the dashboard. Passwords are kept as argon2id hashes only. */
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { settled } from "./database.ts"

const DeveloperRow = Schema.Struct({
  id: Schema.String,
  email: Schema.String,
  passwordHash: Schema.String,
  createdAt: Schema.DateTimeUtcFromDate
})

/** Rows in and out of `developers`. */
export class DeveloperRows extends Context.Service<DeveloperRows>()(
  "sql/developers/DeveloperRows",
  {
    make: Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const insert = SqlSchema.void({
        Request: DeveloperRow,
        execute: (row) => sql`insert into developers ${sql.insert(row)}`
      })
      return { insert: (row: typeof DeveloperRow.Type) => settled(insert(row)) }
    })
  }
) {
  static readonly layer = Layer.effect(DeveloperRows, this.make)
}
