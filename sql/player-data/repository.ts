/** Deletes a player, and what other tables than those of features know of it. */
import { Context, Effect, Layer, Option, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { EnvironmentId, PlayerId } from "#rpc/ids"
import { playerLimits } from "#rpc/features"
import { orDieWithTimeout } from "../database.ts"

const Time = Schema.DateTimeUtcFromDate

const Owner = Schema.Struct({ environmentId: EnvironmentId, playerId: PlayerId })
type Owner = typeof Owner.Type

/** The keys of a player's rate limits: by key, a deletion does not scan those of all players. */
const limitKeysOf = (playerId: string): ReadonlyArray<string> =>
  Array.from(playerLimits, (name) => `${name}:${playerId}`)

const deletions = (sql: SqlClient.SqlClient) => ({
  player: SqlSchema.findOneOption({
    Request: Owner,
    Result: Schema.Struct({ id: PlayerId }),
    execute: ({ environmentId, playerId }) => sql`
      delete from players where id = ${playerId} and environment_id = ${environmentId}
      returning id`
  }),
  insertTombstone: SqlSchema.void({
    Request: Schema.Struct({ ...Owner.fields, now: Time }),
    execute: ({ environmentId, now, playerId }) => sql`
      insert into deleted_players (id, environment_id, deleted_at)
      values (${playerId}, ${environmentId}, ${now})`
  }),
  idempotencyKeys: SqlSchema.void({
    Request: Owner,
    execute: ({ environmentId, playerId }) => sql`
      delete from idempotency_keys
      where caller = ${playerId} and environment_id = ${environmentId}`
  }),
  throttles: SqlSchema.void({
    Request: Owner,
    execute: ({ playerId }) => sql`
      delete from throttles where key = any(${limitKeysOf(playerId)}::text[])`
  }),
  rateWindows: SqlSchema.void({
    Request: Owner,
    execute: ({ playerId }) => sql`
      delete from rate_windows where key = any(${limitKeysOf(playerId)}::text[])`
  })
})

/** Deletes all rows of one player. */
export class PlayerDataRepository extends Context.Service<PlayerDataRepository>()(
  "sql/player-data/repository/PlayerDataRepository",
  {
    make: Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { idempotencyKeys, insertTombstone, player, rateWindows, throttles } = deletions(sql)
      return {
        /** Deletes the player and everything it owns. False if the player does not exist. */
        delete: (owner: Owner, now: typeof Time.Type) =>
          orDieWithTimeout(
            Effect.gen(function* () {
              if (Option.isNone(yield* player(owner))) return false
              yield* insertTombstone({ ...owner, now })
              yield* idempotencyKeys(owner)
              yield* throttles(owner)
              yield* rateWindows(owner)
              return true
            })
          )
      }
    })
  }
) {
  static readonly layer = Layer.effect(PlayerDataRepository, this.make)
}
