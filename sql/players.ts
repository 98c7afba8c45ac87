/** Players (spec section 2.1). Every query names the environment: another's player does not exist. */
import { Context, Effect, Layer, Option, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { AgeBand } from "#rpc/ages"
import { EnvironmentId, PlayerId } from "#rpc/ids"
import { settled } from "./database.ts"
import { gather } from "./gather.ts"

export const PlayerRow = Schema.Struct({
  id: PlayerId,
  environmentId: EnvironmentId,
  displayName: Schema.String,
  isGuest: Schema.Boolean,
  /** The age group that was declared. */
  declaredAgeBand: Schema.NullOr(AgeBand),
  createdAt: Schema.DateTimeUtcFromDate
})
export type PlayerRow = typeof PlayerRow.Type

const statements = (sql: SqlClient.SqlClient) => ({
  find: SqlSchema.findAll({
    Request: Schema.Struct({
      environmentId: Schema.String,
      playerIds: Schema.Array(Schema.String)
    }),
    Result: PlayerRow,
    execute: ({ environmentId, playerIds }) => sql`
      select id, environment_id, display_name, is_guest, declared_age_band, created_at from players
      where environment_id = ${environmentId} and id = any(${[...playerIds]}::text[])`
  }),
  declareAge: SqlSchema.findOneOption({
    Request: Schema.Struct({ environmentId: EnvironmentId, playerId: PlayerId, band: AgeBand }),
    Result: PlayerRow,
    execute: ({ band, environmentId, playerId }) => sql`
      update players set declared_age_band = ${band}
      where environment_id = ${environmentId} and id = ${playerId}
      returning id, environment_id, display_name, is_guest, declared_age_band, created_at`
  }),
  rename: SqlSchema.findOneOption({
    Request: Schema.Struct({
      environmentId: EnvironmentId,
      playerId: PlayerId,
      displayName: Schema.String
    }),
    Result: PlayerRow,
    execute: ({ displayName, environmentId, playerId }) => sql`
      update players set display_name = ${displayName}
      where environment_id = ${environmentId} and id = ${playerId}
      returning id, environment_id, display_name, is_guest, declared_age_band, created_at`
  })
})

/** Rows in and out of `players`. */
export class PlayerRows extends Context.Service<PlayerRows>()("sql/players/PlayerRows", {
  make: Effect.gen(function* () {
    const { declareAge, find, rename } = statements(yield* SqlClient.SqlClient)
    const players = yield* gather((environmentId, playerIds) =>
      Effect.map(
        settled(find({ environmentId, playerIds })),
        (rows): ReadonlyMap<string, PlayerRow> => new Map(rows.map((row) => [row.id, row]))
      )
    )
    return {
      find: (environmentId: EnvironmentId, playerId: PlayerId) =>
        Effect.map(players(environmentId, [playerId]), (found) =>
          Option.fromUndefinedOr(found.get(playerId))
        ),
      /** The player with another age group; none when the environment has no such player. */
      declareAge: (environmentId: EnvironmentId, playerId: PlayerId, band: AgeBand) =>
        settled(declareAge({ environmentId, playerId, band })),
      /** The renamed player; none when the environment has no such player. */
      rename: (environmentId: EnvironmentId, playerId: PlayerId, displayName: string) =>
        settled(rename({ environmentId, playerId, displayName }))
    }
  })
}) {
  static readonly layer = Layer.effect(PlayerRows, this.make)
}
