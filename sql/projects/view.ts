/** Reads of one environment for the dashboard: a player, daily active players and live rooms. */
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { EnvironmentId, PlayerId, SessionId } from "#rpc/ids"
import { orDieWithTimeout } from "../database.ts"
import { PlayerRow, playerColumns } from "../players.ts"

const Time = Schema.DateTimeUtcFromDate

/** A player; `lastSeenAt` is some minutes old. */
export const SeenPlayer = Schema.Struct({ ...PlayerRow.fields, lastSeenAt: Time })
export type SeenPlayer = typeof SeenPlayer.Type

const OnePlayer = Schema.Struct({ environmentId: EnvironmentId, playerId: PlayerId })

const SessionRow = Schema.Struct({ id: SessionId, createdAt: Time, rotatedAt: Time })

const Totals = Schema.Struct({ total: Schema.Int, guests: Schema.Int })

const Since = Schema.Struct({ environmentId: EnvironmentId, since: Schema.String })

/** A room; fields that the room list lacks come from its snapshot. */
const LiveRoom = Schema.Struct({
  id: Schema.String,
  code: Schema.String,
  mode: Schema.String,
  players: Schema.Int,
  maxPlayers: Schema.Int,
  metadata: Schema.fromJsonString(Schema.Record(Schema.String, Schema.Unknown)),
  createdAt: Time,
  private: Schema.Boolean,
  locked: Schema.Boolean,
  hostId: Schema.NullOr(Schema.String),
  connected: Schema.Int
})
export type LiveRoom = typeof LiveRoom.Type

/** Columns of a {@link SeenPlayer}, for `players p`. */
export const seenColumns = (sql: SqlClient.SqlClient) => sql`${playerColumns(sql)},
  greatest(p.created_at, p.last_seen_at,
    (select max(s.rotated_at) from sessions s where s.player_id = p.id)) as last_seen_at`

const players = (sql: SqlClient.SqlClient) => ({
  find: SqlSchema.findOneOption({
    Request: OnePlayer,
    Result: SeenPlayer,
    execute: ({ environmentId, playerId }) => sql`
      select ${seenColumns(sql)} from players p
      where id = ${playerId} and environment_id = ${environmentId}`
  }),
  sessions: SqlSchema.findAll({
    Request: Schema.Struct({ ...OnePlayer.fields, now: Time }),
    Result: SessionRow,
    execute: ({ environmentId, now, playerId }) => sql`
      select id, created_at, rotated_at from sessions
      where player_id = ${playerId} and environment_id = ${environmentId}
        and revoked_at is null and signed_out_at is null and expires_at > ${now}
      order by rotated_at desc limit 100`
  }),
  countPlayers: SqlSchema.findOne({
    Request: EnvironmentId,
    Result: Totals,
    execute: (environmentId) => sql`
      select count(*)::int as total, count(*) filter (where is_guest)::int as guests
      from players where environment_id = ${environmentId}`
  })
})

const activity = (sql: SqlClient.SqlClient) => ({
  dailyActives: SqlSchema.findAll({
    Request: Since,
    Result: Schema.Struct({ date: Schema.String, count: Schema.Int }),
    execute: ({ environmentId, since }) => sql`
      select to_char(day, 'YYYY-MM-DD') as date, players as count from daily_actives
      where environment_id = ${environmentId} and day >= ${since}::text::date`
  }),
  rooms: SqlSchema.findAll({
    Request: Schema.Struct({ environmentId: EnvironmentId, limit: Schema.Int }),
    Result: LiveRoom,
    execute: ({ environmentId, limit }) => sql`
      select id, code, mode, players, max_players, metadata, created_at,
        (s #>> '{settings,private}')::boolean as private, (s ->> 'locked')::boolean as locked,
        s ->> 'hostId' as host_id,
        jsonb_array_length(jsonb_path_query_array(s,
          '$.members[*] ? (@.absentSince == null && @.joinDeadline == null)')) as connected
      from (select *, snapshot::jsonb as s from rooms
        where environment_id = ${environmentId} order by created_at desc, id limit ${limit}) as r
      order by created_at desc, id`
  })
})

/** Repository of the dashboard's reads. */
export class ViewRepository extends Context.Service<ViewRepository>()(
  "sql/projects/view/ViewRepository",
  {
    make: Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { countPlayers, find, sessions } = players(sql)
      const { dailyActives, rooms } = activity(sql)
      return {
        player: (request: typeof OnePlayer.Type) => orDieWithTimeout(find(request)),
        /** Lists a player's active sessions, most recently used first. */
        sessions: (request: Parameters<typeof sessions>[0]) => orDieWithTimeout(sessions(request)),
        countPlayers: (environmentId: EnvironmentId) =>
          orDieWithTimeout(countPlayers(environmentId)),
        /** Returns the active players per day since an ISO date; days without any are missing. */
        dailyActives: (environmentId: EnvironmentId, since: string) =>
          orDieWithTimeout(dailyActives({ environmentId, since })),
        /** Lists public and private rooms, newest first, from snapshots at most a second old. */
        rooms: (environmentId: EnvironmentId, limit: number) =>
          orDieWithTimeout(rooms({ environmentId, limit }))
      }
    })
  }
) {
  static readonly layer = Layer.effect(ViewRepository, this.make)
}
