/** Apps by their address: which environment a host name belongs to, and what its pages may know. */
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { EnvironmentName } from "#rpc/auth"
import { EnvironmentId, ProjectId } from "#rpc/ids"
import { orDieWithTimeout } from "../database.ts"
import { isOpen } from "../projects/open.ts"

/** An environment of a project that is not deleted. */
const AppRow = Schema.Struct({
  environmentId: EnvironmentId,
  projectId: ProjectId,
  name: EnvironmentName,
  projectName: Schema.String,
  slug: Schema.String
})
export type AppRow = typeof AppRow.Type

const KeyRow = Schema.Struct({ plain: Schema.String, hash: Schema.String })

const statements = (sql: SqlClient.SqlClient) => {
  const app = sql`
    select e.id as environment_id, e.project_id, e.name, p.name as project_name, p.slug
    from environments e join projects p on p.id = e.project_id
    where ${isOpen(sql)}`
  return {
    bySlug: SqlSchema.findOneOption({
      Request: Schema.Struct({ slug: Schema.String, name: EnvironmentName }),
      Result: AppRow,
      execute: ({ name, slug }) => sql`${app} and p.slug = ${slug} and e.name = ${name}`
    }),
    byId: SqlSchema.findOneOption({
      Request: EnvironmentId,
      Result: AppRow,
      execute: (id) => sql`${app} and e.id = ${id}`
    }),
    publishableKey: SqlSchema.findOneOption({
      Request: EnvironmentId,
      Result: KeyRow,
      execute: (environmentId) => sql`
        select plain, hash from keys
        where environment_id = ${environmentId} and kind = 'publishable' and revoked_at is null
          and plain is not null
        order by id limit 1`
    })
  }
}

/** Repository of apps by their address. */
export class AppRepository extends Context.Service<AppRepository>()(
  "sql/hosting/apps/AppRepository",
  {
    make: Effect.gen(function* () {
      const { byId, bySlug, publishableKey } = statements(yield* SqlClient.SqlClient)
      return {
        /** Finds the app of a project's slug and environment. */
        bySlug: (request: Parameters<typeof bySlug>[0]) => orDieWithTimeout(bySlug(request)),
        byId: (environmentId: EnvironmentId) => orDieWithTimeout(byId(environmentId)),
        /** The oldest publishable key that is not revoked, with its hash. */
        publishableKey: (environmentId: EnvironmentId) =>
          orDieWithTimeout(publishableKey(environmentId))
      }
    })
  }
) {
  static readonly layer = Layer.effect(AppRepository, this.make)
}
