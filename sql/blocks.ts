/**
 * Blocks: one row for each player and each player whom it has blocked. A block exists between players of
 * one environment only, and goes with either of them.
 */
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { blockLimits } from "#rpc/blocks"
import { EnvironmentId, PlayerId } from "#rpc/ids"
import { batchReads } from "./batching.ts"
import { orDieWithTimeout } from "./database.ts"

const Time = Schema.DateTimeUtcFromDate

const Owner = { environmentId: EnvironmentId, playerId: PlayerId }

/** A block to store or to remove. */
const Pair = Schema.Struct({ ...Owner, blockedId: PlayerId })

const BlockRow = Schema.Struct({
  blockedId: PlayerId,
  displayName: Schema.String,
  createdAt: Time
})
export type BlockRow = typeof BlockRow.Type

/** Rows after the position `after`; null for the first. */
const Page = Schema.Struct({
  ...Owner,
  after: Schema.NullOr(Schema.Struct({ createdAt: Time, blockedId: Schema.String })),
  limit: Schema.Int
})
export type BlocksPage = typeof Page.Type

const statements = (sql: SqlClient.SqlClient) => ({
  lock: SqlSchema.void({
    Request: Schema.Struct(Owner),
    execute: ({ environmentId, playerId }) => sql`
      select from players where id = ${playerId} and environment_id = ${environmentId}
      for no key update`
  }),
  // A full list refuses also players who do not exist: the answer does not tell who does.
  insert: SqlSchema.findOne({
    Request: Schema.Struct({ ...Pair.fields, now: Time }),
    Result: Schema.Struct({ isFull: Schema.Boolean }),
    execute: ({ blockedId, environmentId, now, playerId }) => sql`
      with own as (
        select count(*) >= ${blockLimits.perPlayer}
          and not coalesce(bool_or(blocked_id = ${blockedId}), false) as is_full
        from blocks where player_id = ${playerId}
      ), added as (
        insert into blocks (environment_id, player_id, blocked_id, created_at)
        select ${environmentId}, p.id, b.id, ${now} from players p, players b, own
        where p.id = ${playerId} and p.environment_id = ${environmentId}
          and b.id = ${blockedId} and b.environment_id = ${environmentId} and not own.is_full
        on conflict do nothing
      )
      select is_full from own`
  }),
  remove: SqlSchema.void({
    Request: Pair,
    execute: ({ blockedId, environmentId, playerId }) => sql`
      delete from blocks where player_id = ${playerId} and blocked_id = ${blockedId}
        and environment_id = ${environmentId}`
  }),
  page: SqlSchema.findAll({
    Request: Page,
    Result: BlockRow,
    execute: ({ after, environmentId, limit, playerId }) => sql`
      select b.blocked_id, p.display_name, b.created_at
      from blocks b join players p on p.id = b.blocked_id
      where b.player_id = ${playerId} and b.environment_id = ${environmentId}
        and (${after === null} or (b.created_at, b.blocked_id)
          < (${after?.createdAt ?? null}::timestamptz, ${after?.blockedId ?? ""}::text))
      order by b.created_at desc, b.blocked_id desc limit ${limit}`
  }),
  ofPlayers: SqlSchema.findAll({
    Request: Schema.Struct({
      environmentId: Schema.String,
      playerIds: Schema.Array(Schema.String)
    }),
    Result: Schema.Struct({ playerId: Schema.String, blocked: Schema.Array(Schema.String) }),
    execute: ({ environmentId, playerIds }) => sql`
      select player_id, array_agg(blocked_id order by created_at desc, blocked_id desc) as blocked
      from blocks where environment_id = ${environmentId}
        and player_id = any(${[...playerIds]}::text[])
      group by player_id`
  })
})

/** Stores the blocks of players. */
export class BlockRepository extends Context.Service<BlockRepository>()(
  "sql/blocks/BlockRepository",
  {
    make: Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { insert, lock, ofPlayers, page, remove } = statements(sql)
      const blocked = yield* batchReads((environmentId, playerIds) =>
        Effect.map(
          orDieWithTimeout(ofPlayers({ environmentId, playerIds })),
          (rows): ReadonlyMap<string, ReadonlyArray<string>> =>
            new Map(rows.map((row) => [row.playerId, row.blocked]))
        )
      )
      return {
        /**
         * Adds a block in a transaction, unless the player to block does not exist. False if the list is
         * full. Concurrent additions of one player wait for each other, so that none exceeds the limit.
         */
        add: (block: Parameters<typeof insert>[0]) =>
          Effect.map(
            Effect.andThen(orDieWithTimeout(lock(block)), orDieWithTimeout(insert(block))),
            ({ isFull }) => !isFull
          ),
        remove: (block: typeof Pair.Type) => orDieWithTimeout(remove(block)),
        /** Lists blocks, newest first. */
        page: (request: BlocksPage) => orDieWithTimeout(page(request)),
        /** The ids of the players whom a player has blocked, newest first. */
        blockedBy: (environmentId: EnvironmentId, playerId: PlayerId) =>
          Effect.map(
            blocked(environmentId, [playerId]),
            (found): ReadonlyArray<string> => found.get(playerId) ?? []
          )
      }
    })
  }
) {
  static readonly layer = Layer.effect(BlockRepository, this.make)
}
