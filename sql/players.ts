/** Players. Every query is scoped to an environment, so a foreign player reads as absent. */
import { Context, Effect, Layer, Option, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { AgeBand } from "#rpc/ages"
import { Method } from "#rpc/identities"
import { EnvironmentId, PlayerId } from "#rpc/ids"
import { orDieWithTimeout } from "./database.ts"
import { batchReads } from "./batching.ts"

/** A player to insert. */
export const NewPlayer = Schema.Struct({
  id: PlayerId,
  environmentId: EnvironmentId,
  displayName: Schema.String,
  isGuest: Schema.Boolean,
  declaredAgeBand: Schema.NullOr(AgeBand),
  createdAt: Schema.DateTimeUtcFromDate
})
export type NewPlayer = typeof NewPlayer.Type

export const PlayerRow = Schema.Struct({
  ...NewPlayer.fields,
  /** Providers of the identities, oldest first. Empty for a guest. */
  methods: Schema.Array(Method),
  /** Whether the address of the `email` identity is verified. */
  emailVerified: Schema.Boolean
})
export type PlayerRow = typeof PlayerRow.Type

/** Columns of a {@link PlayerRow}, for `players p`. */
export const playerColumns = (sql: SqlClient.SqlClient) =>
  sql.literal(`
  p.id, p.environment_id, p.display_name, p.is_guest, p.declared_age_band, p.created_at,
  array(select i.provider from identities i where i.player_id = p.id
    order by i.linked_at, i.provider) as methods,
  exists(select from identities i where i.player_id = p.id and i.provider = 'email'
    and i.email_verified) as email_verified`)

const statements = (sql: SqlClient.SqlClient) => ({
  find: SqlSchema.findAll({
    Request: Schema.Struct({
      environmentId: Schema.String,
      playerIds: Schema.Array(Schema.String)
    }),
    Result: PlayerRow,
    execute: ({ environmentId, playerIds }) => sql`
      select ${playerColumns(sql)} from players p
      where p.environment_id = ${environmentId} and p.id = any(${[...playerIds]}::text[])`
  }),
  declareAge: SqlSchema.findOneOption({
    Request: Schema.Struct({ environmentId: EnvironmentId, playerId: PlayerId, band: AgeBand }),
    Result: PlayerRow,
    execute: ({ band, environmentId, playerId }) => sql`
      update players p set declared_age_band = ${band}
      where p.environment_id = ${environmentId} and p.id = ${playerId}
      returning ${playerColumns(sql)}`
  }),
  lastSeen: SqlSchema.findOneOption({
    Request: Schema.Struct({ environmentId: EnvironmentId, playerId: PlayerId }),
    Result: Schema.Struct({ lastSeenAt: Schema.NullOr(Schema.DateTimeUtcFromDate) }),
    execute: ({ environmentId, playerId }) => sql`
      select last_seen_at from players
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
      update players p set display_name = ${displayName}
      where p.environment_id = ${environmentId} and p.id = ${playerId}
      returning ${playerColumns(sql)}`
  })
})

/** Stores players. */
export class PlayerRepository extends Context.Service<PlayerRepository>()(
  "sql/players/PlayerRepository",
  {
    make: Effect.gen(function* () {
      const { declareAge, find, lastSeen, rename } = statements(yield* SqlClient.SqlClient)
      const players = yield* batchReads((environmentId, playerIds) =>
        Effect.map(
          orDieWithTimeout(find({ environmentId, playerIds })),
          (rows): ReadonlyMap<string, PlayerRow> => new Map(rows.map((row) => [row.id, row]))
        )
      )
      return {
        find: (environmentId: EnvironmentId, playerId: PlayerId) =>
          Effect.map(players(environmentId, [playerId]), (found) =>
            Option.fromUndefinedOr(found.get(playerId))
          ),
        /** Sets the declared age band. None if the environment has no such player. */
        declareAge: (environmentId: EnvironmentId, playerId: PlayerId, band: AgeBand) =>
          orDieWithTimeout(declareAge({ environmentId, playerId, band })),
        /** The last visit that is stored; null if there is none. */
        lastSeenAt: (environmentId: EnvironmentId, playerId: PlayerId) =>
          Effect.map(
            orDieWithTimeout(lastSeen({ environmentId, playerId })),
            Option.match({ onNone: () => null, onSome: ({ lastSeenAt }) => lastSeenAt })
          ),
        /** Sets the display name. None if the environment has no such player. */
        rename: (environmentId: EnvironmentId, playerId: PlayerId, displayName: string) =>
          orDieWithTimeout(rename({ environmentId, playerId, displayName }))
      }
    })
  }
) {
  static readonly layer = Layer.effect(PlayerRepository, this.make)
}
