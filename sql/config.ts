/** The config documents of environments: every version that was ever in force (spec section 9). */
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { orDieWithTimeout } from "./database.ts"

/** The document exactly as it was pushed, so that a pull gives back what a push gave. */
const Document = Schema.fromJsonString(Schema.Json)

const NewestRow = Schema.Struct({ version: Schema.Int, document: Document })

const VersionRow = Schema.Struct({
  environmentId: Schema.String,
  version: Schema.Int,
  document: Document,
  pushedBy: Schema.String,
  createdAt: Schema.DateTimeUtcFromDate
})

const PageOfVersions = Schema.Struct({
  environmentId: Schema.String,
  /** Versions below this one. */
  before: Schema.Int,
  limit: Schema.Int
})

const PushedRow = Schema.Struct({
  version: Schema.Int,
  pushedBy: Schema.String,
  createdAt: Schema.DateTimeUtcFromDate
})

const statements = (sql: SqlClient.SqlClient) => ({
  newest: SqlSchema.findOneOption({
    Request: Schema.String,
    Result: NewestRow,
    execute: (environmentId) => sql`
      select version, document from configs where environment_id = ${environmentId}
      order by version desc limit 1`
  }),
  version: SqlSchema.findOneOption({
    Request: Schema.Struct({ environmentId: Schema.String, version: Schema.Int }),
    Result: NewestRow,
    execute: ({ environmentId, version }) => sql`
      select version, document from configs
      where environment_id = ${environmentId} and version = ${version}`
  }),
  history: SqlSchema.findAll({
    Request: PageOfVersions,
    Result: PushedRow,
    execute: ({ before, environmentId, limit }) => sql`
      select version, pushed_by, created_at from configs
      where environment_id = ${environmentId} and version < ${before}
      order by version desc limit ${limit}`
  }),
  insert: SqlSchema.void({
    Request: VersionRow,
    execute: (row) => sql`insert into configs ${sql.insert(row)}`
  })
})

/** Rows in and out of `configs`. */
export class ConfigRepository extends Context.Service<ConfigRepository>()(
  "sql/config/ConfigRepository",
  {
    make: Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { history, insert, newest, version } = statements(sql)
      return {
        /** The version in force; none before the first push. */
        newest: (environmentId: string) => orDieWithTimeout(newest(environmentId)),
        /** A version that was pushed. */
        version: (request: Parameters<typeof version>[0]) => orDieWithTimeout(version(request)),
        /** Who pushed what when, newest first. */
        history: (page: typeof PageOfVersions.Type) => orDieWithTimeout(history(page)),
        insert: (row: typeof VersionRow.Type) => orDieWithTimeout(insert(row)),
        /** Within a transaction: pushes to this environment come one after the other. */
        serialize: (environmentId: string) =>
          Effect.asVoid(
            orDieWithTimeout(
              sql`select id from environments where id = ${environmentId} for update`
            )
          )
      }
    })
  }
) {
  static readonly layer = Layer.effect(ConfigRepository, this.make)
}
