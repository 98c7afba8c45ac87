/** What a project's members see of an environment: its players, its days, what is alive. */
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { EnvironmentId, PlayerId, SessionId } from "#rpc/ids"
import { orDieWithTimeout } from "../database.ts"
import { PlayerRow, playerColumns } from "../players.ts"

const Time = Schema.DateTimeUtcFromDate

/** A player, and when it last signed in or renewed its session. */
const SeenPlayer = Schema.Struct({ ...PlayerRow.fields, lastSeenAt: Time })
export type SeenPlayer = typeof SeenPlayer.Type

const Newest = Schema.Struct({
  environmentId: EnvironmentId,
  /** Players before this one. */
  before: PlayerId,
  limit: Schema.Int
})

const Named = Schema.Struct({
  environmentId: EnvironmentId,
  /** What the name begins with, whatever its case. */
  prefix: Schema.String,
  /** Players behind this one, by the name in lower case and the id; an empty name is before all. */
  after: Schema.Struct({ name: Schema.String, id: Schema.String }),
  limit: Schema.Int
})

/** A player as a search by name finds it; `sortName` is what it is found by. */
const NamedPlayer = Schema.Struct({ ...SeenPlayer.fields, sortName: Schema.String })

const OnePlayer = Schema.Struct({ environmentId: EnvironmentId, playerId: PlayerId })

const SessionRow = Schema.Struct({ id: SessionId, createdAt: Time, rotatedAt: Time })

const Totals = Schema.Struct({ total: Schema.Int, guests: Schema.Int })

const Since = Schema.Struct({ environmentId: EnvironmentId, since: Schema.String })

/** A room; what the list does not show comes from its snapshot. */
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

/** Players of one email; there is one at each provider, if things are right there. */
const emailPlayersMax = 50

/** Behind every name that begins with the text before it. */
const lastCharacter = "\u{10ffff}"

const players = (sql: SqlClient.SqlClient) => {
  const seen = sql`${playerColumns(sql)},
    coalesce((select max(s.rotated_at) from sessions s where s.player_id = p.id), p.created_at)
      as last_seen_at`
  return {
    find: SqlSchema.findOneOption({
      Request: OnePlayer,
      Result: SeenPlayer,
      execute: ({ environmentId, playerId }) => sql`
        select ${seen} from players p where id = ${playerId} and environment_id = ${environmentId}`
    }),
    // Whoever has it at a provider, too: accounts are never merged by email.
    mailed: SqlSchema.findAll({
      Request: Schema.Struct({ environmentId: EnvironmentId, email: Schema.String }),
      Result: SeenPlayer,
      execute: ({ email, environmentId }) => sql`
        select ${seen} from players p
        where environment_id = ${environmentId} and id in (
          select player_id from identities
          where environment_id = ${environmentId} and lower(email) = ${email})
        order by id desc limit ${emailPlayersMax}`
    }),
    newest: SqlSchema.findAll({
      Request: Newest,
      Result: SeenPlayer,
      execute: ({ before, environmentId, limit }) => sql`
        select ${seen} from players p
        where environment_id = ${environmentId} and id < ${before} order by id desc limit ${limit}`
    }),
    // In the order of the index, so that a page costs the same however many have such a name.
    named: SqlSchema.findAll({
      Request: Named,
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
          and revoked_at is null and expires_at > ${now}
        order by rotated_at desc limit 100`
    }),
    totals: SqlSchema.findOne({
      Request: EnvironmentId,
      Result: Totals,
      execute: (environmentId) => sql`
        select count(*)::int as total, count(*) filter (where is_guest)::int as guests
        from players where environment_id = ${environmentId}`
    })
  }
}

const living = (sql: SqlClient.SqlClient) => ({
  actives: SqlSchema.findAll({
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
          '$.members[*] ? (@.absentSince == null && @.enterBy == null)')) as connected
      from (select *, snapshot::jsonb as s from rooms
        where environment_id = ${environmentId} order by created_at desc, id limit ${limit}) as r
      order by created_at desc, id`
  })
})

/** Reads for the dashboard. */
export class ViewRepository extends Context.Service<ViewRepository>()(
  "sql/projects/view/ViewRepository",
  {
    make: Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { find, mailed, named, newest, sessions, totals } = players(sql)
      const { actives, rooms } = living(sql)
      return {
        player: (request: typeof OnePlayer.Type) => orDieWithTimeout(find(request)),
        /** Players who have an email, in lower case, the newest first. */
        mailed: (request: Parameters<typeof mailed>[0]) => orDieWithTimeout(mailed(request)),
        /** Players, the newest first. */
        newest: (page: typeof Newest.Type) => orDieWithTimeout(newest(page)),
        /** Players whose name begins so, by name. */
        named: (page: typeof Named.Type) => orDieWithTimeout(named(page)),
        /** The sessions of a player that are alive, the one used last first. */
        sessions: (request: Parameters<typeof sessions>[0]) => orDieWithTimeout(sessions(request)),
        totals: (environmentId: EnvironmentId) => orDieWithTimeout(totals(environmentId)),
        /** How many players were there, on the days since an ISO date that had any. */
        actives: (environmentId: EnvironmentId, since: string) =>
          orDieWithTimeout(actives({ environmentId, since })),
        /** Rooms, listed or not, the newest first, at most a second old. */
        rooms: (environmentId: EnvironmentId, limit: number) =>
          orDieWithTimeout(rooms({ environmentId, limit }))
      }
    })
  }
) {
  static readonly layer = Layer.effect(ViewRepository, this.make)
}
