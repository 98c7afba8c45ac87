/** Reads of one environment for the dashboard: players, daily active players and live rooms. */
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { EnvironmentId, PlayerId, SessionId } from "#rpc/ids"
import { orDieWithTimeout } from "../database.ts"
import { PlayerRow, playerColumns } from "../players.ts"

const Time = Schema.DateTimeUtcFromDate

/** A player; `lastSeenAt` is some minutes old. */
const SeenPlayer = Schema.Struct({ ...PlayerRow.fields, lastSeenAt: Time })
export type SeenPlayer = typeof SeenPlayer.Type

const NewestPage = Schema.Struct({
  environmentId: EnvironmentId,
  /** Returns players with ids below this one. */
  before: PlayerId,
  limit: Schema.Int
})

const NameSearch = Schema.Struct({
  environmentId: EnvironmentId,
  /** Case-insensitive prefix of the display name. */
  prefix: Schema.String,
  /** Returns players after this lower-case name and id; an empty name starts at the first player. */
  after: Schema.Struct({ name: Schema.String, id: Schema.String }),
  limit: Schema.Int
})

/** A result of a search by name; `sortName` is the lower-case display name. */
const NamedPlayer = Schema.Struct({ ...SeenPlayer.fields, sortName: Schema.String })

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

/** Bound of the players with one email: usually one per sign-in provider. */
const emailPlayersMax = 50

/** Suffix that makes a prefix sort after every name with that prefix. */
const lastCharacter = "\u{10ffff}"

const players = (sql: SqlClient.SqlClient) => {
  const seen = sql`${playerColumns(sql)},
    greatest(p.created_at, p.last_seen_at,
      (select max(s.rotated_at) from sessions s where s.player_id = p.id)) as last_seen_at`
  return {
    find: SqlSchema.findOneOption({
      Request: OnePlayer,
      Result: SeenPlayer,
      execute: ({ environmentId, playerId }) => sql`
        select ${seen} from players p where id = ${playerId} and environment_id = ${environmentId}`
    }),
    // Includes emails that providers report: accounts are never merged by email.
    findByEmail: SqlSchema.findAll({
      Request: Schema.Struct({ environmentId: EnvironmentId, forms: Schema.Array(Schema.String) }),
      Result: SeenPlayer,
      execute: ({ environmentId, forms }) => sql`
        select ${seen} from players p
        where environment_id = ${environmentId} and id in (
          select player_id from identities
          where environment_id = ${environmentId} and lower(email) = any(${[...forms]}::text[]))
        order by id desc limit ${emailPlayersMax}`
    }),
    listNewest: SqlSchema.findAll({
      Request: NewestPage,
      Result: SeenPlayer,
      execute: ({ before, environmentId, limit }) => sql`
        select ${seen} from players p
        where environment_id = ${environmentId} and id < ${before} order by id desc limit ${limit}`
    }),
    // Follows the index order, so the cost of a page does not depend on the number of matches.
    searchByName: SqlSchema.findAll({
      Request: NameSearch,
      Result: NamedPlayer,
      execute: ({ after, environmentId, limit, prefix }) => sql`
        select ${seen}, lower(display_name) as sort_name from players p
        where environment_id = ${environmentId}
          and lower(display_name) ~>=~ lower(${prefix}::text)
          and lower(display_name) ~<~ (lower(${prefix}::text) || ${lastCharacter}::text)
          and lower(display_name) ~>=~ ${after.name}::text
          and (lower(display_name) <> ${after.name}::text or id > ${after.id})
        order by lower(display_name) using ~<~, id limit ${limit}`
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
  }
}

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
      const { countPlayers, find, findByEmail, listNewest, searchByName, sessions } = players(sql)
      const { dailyActives, rooms } = activity(sql)
      return {
        player: (request: typeof OnePlayer.Type) => orDieWithTimeout(find(request)),
        /** Finds players by a lower-case email, newest first. */
        findByEmail: (request: Parameters<typeof findByEmail>[0]) =>
          orDieWithTimeout(findByEmail(request)),
        /** Lists players, newest first. */
        listNewest: (page: typeof NewestPage.Type) => orDieWithTimeout(listNewest(page)),
        /** Lists players by name prefix, ordered by name. */
        searchByName: (page: typeof NameSearch.Type) => orDieWithTimeout(searchByName(page)),
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
