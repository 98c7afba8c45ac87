/** Config documents of environments, with all previous versions. */
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { orDieWithTimeout } from "./database.ts"
import { isOpen } from "./projects/open.ts"

/** Document exactly as it was pushed, so that `pull` and `push` round-trip. */
const Document = Schema.fromJsonString(Schema.Json)

const DocumentRow = Schema.Struct({ version: Schema.Int, document: Document })

/** Document with the operator's suspensions. */
const CurrentRow = Schema.Struct({ ...DocumentRow.fields, voiceSuspended: Schema.Boolean })

const VersionRow = Schema.Struct({
  environmentId: Schema.String,
  version: Schema.Int,
  document: Document,
  pushedBy: Schema.String,
  createdAt: Schema.DateTimeUtcFromDate
})

const VersionsPage = Schema.Struct({
  environmentId: Schema.String,
  /** Returns versions below this one. */
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
    Result: CurrentRow,
    execute: (environmentId) => sql`
      select c.version, c.document, e.voice_suspended_at is not null as voice_suspended
      from configs c join environments e on e.id = c.environment_id
        join projects p on p.id = e.project_id and ${isOpen(sql)}
      where c.environment_id = ${environmentId}
      order by c.version desc limit 1`
  }),
  version: SqlSchema.findOneOption({
    Request: Schema.Struct({ environmentId: Schema.String, version: Schema.Int }),
    Result: DocumentRow,
    execute: ({ environmentId, version }) => sql`
      select version, document from configs
      where environment_id = ${environmentId} and version = ${version}`
  }),
  history: SqlSchema.findAll({
    Request: VersionsPage,
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

/** Repository of `configs`. */
export class ConfigRepository extends Context.Service<ConfigRepository>()(
  "sql/config/ConfigRepository",
  {
    make: Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { history, insert, newest, version } = statements(sql)
      return {
        /** Returns the newest version; none before the first push, or when the project is deleted. */
        newest: (environmentId: string) => orDieWithTimeout(newest(environmentId)),
        /** Returns a pushed version. */
        version: (request: Parameters<typeof version>[0]) => orDieWithTimeout(version(request)),
        /** Lists versions with author and time, newest first. */
        history: (page: typeof VersionsPage.Type) => orDieWithTimeout(history(page)),
        insert: (row: typeof VersionRow.Type) => orDieWithTimeout(insert(row)),
        /** Locks the environment until the transaction ends, so that pushes to it serialize. */
        lockEnvironment: (environmentId: string) =>
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
