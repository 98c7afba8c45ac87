/** Sealed client credentials of sign-in providers. */
import { Context, Effect, Layer, Option, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { Provider } from "#rpc/identities"
import { EnvironmentId } from "#rpc/ids"
import { orDieWithTimeout } from "../database.ts"

const Key = Schema.Struct({ environmentId: EnvironmentId, provider: Provider })

const Row = Schema.Struct({
  ...Key.fields,
  clientId: Schema.String,
  sealed: Schema.String,
  updatedAt: Schema.DateTimeUtcFromDate
})

const Credentials = Schema.Struct({ clientId: Schema.String, sealed: Schema.String })

const statements = (sql: SqlClient.SqlClient) => ({
  find: SqlSchema.findOneOption({
    Request: Key,
    Result: Credentials,
    execute: ({ environmentId, provider }) => sql`
      select client_id, sealed from provider_credentials
      where environment_id = ${environmentId} and provider = ${provider}`
  }),
  put: SqlSchema.void({
    Request: Row,
    execute: (row) => sql`
      insert into provider_credentials ${sql.insert(row)}
      on conflict (environment_id, provider) do update set client_id = excluded.client_id,
        sealed = excluded.sealed, updated_at = excluded.updated_at`
  }),
  delete: SqlSchema.findOneOption({
    Request: Key,
    Result: Schema.Struct({ clientId: Schema.String }),
    execute: ({ environmentId, provider }) => sql`
      delete from provider_credentials
      where environment_id = ${environmentId} and provider = ${provider}
      returning client_id`
  })
})

/** Stores provider credentials. */
export class ProviderRepository extends Context.Service<ProviderRepository>()(
  "sql/oauth/providers/ProviderRepository",
  {
    make: Effect.gen(function* () {
      const { delete: remove, find, put } = statements(yield* SqlClient.SqlClient)
      return {
        find: (environmentId: EnvironmentId, provider: Provider) =>
          orDieWithTimeout(find({ environmentId, provider })),
        put: (row: typeof Row.Type) => orDieWithTimeout(put(row)),
        /** Whether there were credentials to delete. */
        delete: (environmentId: EnvironmentId, provider: Provider) =>
          Effect.map(orDieWithTimeout(remove({ environmentId, provider })), Option.isSome)
      }
    })
  }
) {
  static readonly layer = Layer.effect(ProviderRepository, this.make)
}
