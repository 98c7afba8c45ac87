/** X profiles that players may show: columns of the account's row in `identities`. */
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { AgeBand } from "#rpc/ages"
import { EnvironmentId, PlayerId } from "#rpc/ids"
import { XProfile } from "#rpc/share/x-profiles"
import { orDieWithTimeout } from "../database.ts"

const Owner = Schema.Struct({ environmentId: EnvironmentId, playerId: PlayerId })

const statements = (sql: SqlClient.SqlClient) => ({
  own: SqlSchema.findOneOption({
    Request: Owner,
    Result: XProfile,
    execute: ({ environmentId, playerId }) => sql`
      select username, name, avatar_url, visible from identities
      where environment_id = ${environmentId} and player_id = ${playerId} and provider = 'x'`
  }),
  show: SqlSchema.findOneOption({
    Request: Schema.Struct({ ...Owner.fields, visible: Schema.Boolean }),
    Result: XProfile,
    execute: ({ environmentId, playerId, visible }) => sql`
      update identities set visible = ${visible}
      where environment_id = ${environmentId} and player_id = ${playerId} and provider = 'x'
      returning username, name, avatar_url, visible`
  }),
  shown: SqlSchema.findAll({
    Request: Schema.Struct({
      environmentId: EnvironmentId,
      playerIds: Schema.Array(Schema.String),
      now: Schema.DateTimeUtcFromDate
    }),
    Result: Schema.Struct({
      playerId: PlayerId,
      username: Schema.NullOr(Schema.String),
      name: Schema.NullOr(Schema.String),
      avatarUrl: Schema.NullOr(Schema.String),
      declaredAgeBand: Schema.NullOr(AgeBand)
    }),
    execute: ({ environmentId, now, playerIds }) => sql`
      select i.player_id, i.username, i.name, i.avatar_url, p.declared_age_band
      from identities i join players p on p.id = i.player_id
      where i.environment_id = ${environmentId} and i.player_id = any(${[...playerIds]}::text[])
        and i.provider = 'x' and i.visible and not exists (
          select from sanctions s where s.player_id = i.player_id
            and s.environment_id = i.environment_id and s.lifted_at is null
            and (s.expires_at is null or s.expires_at > ${now}))`
  })
})

/** Repository of X profiles. */
export class XProfileRepository extends Context.Service<XProfileRepository>()(
  "sql/share/x-profiles/XProfileRepository",
  {
    make: Effect.gen(function* () {
      const { own, show, shown } = statements(yield* SqlClient.SqlClient)
      return {
        /** The player's own profile; none without an identity at X. */
        own: (owner: typeof Owner.Type) => orDieWithTimeout(own(owner)),
        /** Stores whether others see the profile. None without an identity at X. */
        show: (request: Parameters<typeof show>[0]) => orDieWithTimeout(show(request)),
        /** Profiles of those players who opted in and are not banned, with their declared age band. */
        shown: (request: Parameters<typeof shown>[0]) => orDieWithTimeout(shown(request))
      }
    })
  }
) {
  static readonly layer = Layer.effect(XProfileRepository, this.make)
}
