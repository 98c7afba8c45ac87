/** The rooms that a player finds: in the list, by a code or by an id. */
import { Effect, Option, Schema } from "effect"
import { SqlClient, SqlSchema, type Statement } from "effect/sql"
import { batchReads } from "../batching.ts"
import { orDieWithTimeout } from "../database.ts"

export const IdRow = Schema.Struct({ id: Schema.String })

export const idsOf = (rows: ReadonlyArray<typeof IdRow.Type>) => rows.map(({ id }) => id)

const firstId = (rows: ReadonlyArray<typeof IdRow.Type>) => Option.fromNullishOr(rows[0]?.id)

const ListedRow = Schema.Struct({
  id: Schema.String,
  code: Schema.String,
  mode: Schema.String,
  players: Schema.Int,
  maxPlayers: Schema.Int,
  metadata: Schema.fromJsonString(Schema.Record(Schema.String, Schema.Unknown)),
  createdAt: Schema.DateTimeUtcFromDate
})

/** A room that a player, or a session, looks for by its id. */
const SoughtRow = Schema.Struct({
  id: Schema.String,
  /** Empty without a player. */
  playerId: Schema.String,
  isThere: Schema.Boolean
})

/** The key of a look-up by id for a player. */
const soughtKey = (id: string, playerId: string): string => `${id} ${playerId}`

/**
 * Whether a room is there for a player: no host is found by whom it has blocked, except by its members.
 * Without a player every room is.
 */
const isThereFor = (sql: SqlClient.SqlClient, player: Statement.Fragment) => sql`
  (${player} is null or rooms.members @> array[${player}] or not exists (
    select from blocks where blocks.player_id = rooms.host_id and blocks.blocked_id = ${player}))`

const statements = (sql: SqlClient.SqlClient) => ({
  byCode: SqlSchema.findAll({
    Request: Schema.Struct({
      environmentId: Schema.String,
      code: Schema.String,
      playerId: Schema.String
    }),
    Result: IdRow,
    execute: ({ code, environmentId, playerId }) => sql`
      select id from rooms where environment_id = ${environmentId} and code = ${code}
        and ${isThereFor(sql, sql`${playerId}::text`)}`
  }),
  byIds: SqlSchema.findAll({
    Request: Schema.Struct({
      environmentId: Schema.String,
      ids: Schema.Array(Schema.String),
      players: Schema.Array(Schema.String)
    }),
    Result: SoughtRow,
    execute: ({ environmentId, ids, players }) => sql`
      select rooms.id, sought.player as player_id,
        ${isThereFor(sql, sql`nullif(sought.player, '')`)} as is_there
      from unnest(${[...ids]}::text[], ${[...players]}::text[]) as sought(id, player)
      join rooms on rooms.id = sought.id
      where rooms.environment_id = ${environmentId}`
  }),
  list: SqlSchema.findAll({
    Request: Schema.Struct({
      environmentId: Schema.String,
      mode: Schema.NullOr(Schema.String),
      playerId: Schema.NullOr(Schema.String),
      limit: Schema.Int
    }),
    Result: ListedRow,
    execute: ({ environmentId, limit, mode, playerId }) => sql`
      select id, code, mode, players, max_players, metadata, created_at from rooms
      where environment_id = ${environmentId} and listed
        and (${mode}::text is null or mode = ${mode}::text)
        and ${isThereFor(sql, sql`${playerId}::text`)}
      order by created_at desc limit ${limit}`
  })
})

/** Finds rooms. */
export const makeFinds = Effect.fnUntraced(function* (sql: SqlClient.SqlClient) {
  const { byCode, byIds, list } = statements(sql)
  const found = yield* batchReads<boolean>((environmentId, keys) => {
    const pairs = keys.map((key) => key.split(" "))
    const ids = pairs.map(([id = ""]) => id)
    const players = pairs.map(([, player = ""]) => player)
    return Effect.map(
      orDieWithTimeout(byIds({ environmentId, ids, players })),
      (rows) => new Map(rows.map((row) => [soughtKey(row.id, row.playerId), row.isThere]))
    )
  })
  return {
    /** Finds the room of a code that is there for a player. */
    findByCode: (environmentId: string, code: string, playerId: string) =>
      Effect.map(orDieWithTimeout(byCode({ environmentId, code, playerId })), firstId),
    /** Whether a room is there for a player, or at all without one; undefined if it has no row. */
    findById: (environmentId: string, id: string, playerId: string | null) => {
      const key = soughtKey(id, playerId ?? "")
      return Effect.map(found(environmentId, [key]), (rooms) => rooms.get(key))
    },
    /** Returns the listed rooms that are there for a player, or all without one, newest first. */
    list: (
      environmentId: string,
      mode: string | undefined,
      limit: number,
      playerId: string | null
    ) => orDieWithTimeout(list({ environmentId, mode: mode ?? null, limit, playerId }))
  }
})
