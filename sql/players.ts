/** Players (spec section 2.1). Every query names the environment: another's player does not exist. */
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { EnvironmentId, PlayerId } from "#rpc/ids"
import { settled } from "./database.ts"

export const PlayerRow = Schema.Struct({
  id: PlayerId,
  environmentId: EnvironmentId,
  displayName: Schema.String,
  isGuest: Schema.Boolean,
  createdAt: Schema.DateTimeUtcFromDate
})
export type PlayerRow = typeof PlayerRow.Type

const statements = (sql: SqlClient.SqlClient) => ({
  find: SqlSchema.findOneOption({
    Request: Schema.Struct({ environmentId: EnvironmentId, playerId: PlayerId }),
    Result: PlayerRow,
    execute: ({ environmentId, playerId }) => sql`
      select id, environment_id, display_name, is_guest, created_at from players
      where environment_id = ${environmentId} and id = ${playerId}`
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
      returning id, environment_id, display_name, is_guest, created_at`
  })
})

/** Rows in and out of `players`. */
export class PlayerRows extends Context.Service<PlayerRows>()("sql/players/PlayerRows", {
  make: Effect.gen(function* () {
    const { find, rename } = statements(yield* SqlClient.SqlClient)
    return {
      find: (environmentId: EnvironmentId, playerId: PlayerId) =>
        settled(find({ environmentId, playerId })),
      /** The renamed player; none when the environment has no such player. */
      rename: (environmentId: EnvironmentId, playerId: PlayerId, displayName: string) =>
        settled(rename({ environmentId, playerId, displayName }))
    }
  })
}) {
  static readonly layer = Layer.effect(PlayerRows, this.make)
}
