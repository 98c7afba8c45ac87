/**
 * Sanctions (spec sections 3 and 4.2): a row for each ban of a player with the one appeal that it may
 * have. Whoever changes a player's sanctions first holds the player's row, so changes come one after
 * the other and each is decided on what the one before has left.
 */
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { AppealId, EnvironmentId, PlayerId, SanctionId } from "#rpc/ids"
import { AgeBand } from "#rpc/ages"
import { AppealStatus } from "#rpc/appeals"
import { orDieWithTimeout } from "./database.ts"

const Time = Schema.DateTimeUtcFromDate

/** A ban; the appeal's columns are null until there is one. */
export const SanctionRow = Schema.Struct({
  id: SanctionId,
  environmentId: EnvironmentId,
  playerId: PlayerId,
  /** For operators only; `note` is what the player sees. */
  reason: Schema.NullOr(Schema.String),
  note: Schema.NullOr(Schema.String),
  createdAt: Time,
  expiresAt: Schema.NullOr(Time),
  liftedAt: Schema.NullOr(Time),
  appealId: Schema.NullOr(AppealId),
  appealMessage: Schema.NullOr(Schema.String),
  appealStatus: Schema.NullOr(AppealStatus),
  appealResponse: Schema.NullOr(Schema.String),
  appealedAt: Schema.NullOr(Time),
  resolvedAt: Schema.NullOr(Time)
})
export type SanctionRow = typeof SanctionRow.Type

const Owner = Schema.Struct({ environmentId: EnvironmentId, playerId: PlayerId })

/** A page of appeals: those after `after` in the order open first, then by age. */
const Page = Schema.Struct({
  environmentId: EnvironmentId,
  status: Schema.NullOr(AppealStatus),
  now: Time,
  after: Schema.NullOr(Schema.Struct({ closed: Schema.Boolean, appealId: Schema.String })),
  limit: Schema.Int
})
export type AppealsPage = typeof Page.Type

const AppealRow = Schema.Struct({ ...SanctionRow.fields, displayName: Schema.String })

/** What has to be known of a player at every step. */
const PlayerStatus = Schema.Struct({
  playerId: PlayerId,
  displayName: Schema.String,
  declaredAgeBand: Schema.NullOr(AgeBand),
  sanctionId: Schema.NullOr(SanctionId),
  note: Schema.NullOr(Schema.String),
  expiresAt: Schema.NullOr(Time)
})
export type PlayerStatusRow = typeof PlayerStatus.Type

const columns = `s.id, s.environment_id, s.player_id, s.reason, s.note, s.created_at, s.expires_at,
  s.lifted_at, s.appeal_id, s.appeal_message, s.appeal_status, s.appeal_response, s.appealed_at,
  s.resolved_at`

const writes = (sql: SqlClient.SqlClient) => ({
  hold: SqlSchema.findOneOption({
    Request: Owner,
    Result: Schema.Struct({ displayName: Schema.String }),
    execute: ({ environmentId, playerId }) => sql`
      select display_name from players
      where id = ${playerId} and environment_id = ${environmentId} for no key update`
  }),
  save: SqlSchema.void({
    Request: SanctionRow,
    execute: (row) => sql`
      insert into sanctions ${sql.insert(row)}
      on conflict (id) do update set reason = excluded.reason, note = excluded.note,
        expires_at = excluded.expires_at, lifted_at = excluded.lifted_at,
        appeal_id = excluded.appeal_id, appeal_message = excluded.appeal_message,
        appeal_status = excluded.appeal_status, appeal_response = excluded.appeal_response,
        appealed_at = excluded.appealed_at, resolved_at = excluded.resolved_at`
  }),
  revoke: SqlSchema.findAll({
    Request: Schema.Struct({ ...Owner.fields, sanctionId: SanctionId, now: Time }),
    Result: Schema.Struct({ id: Schema.String }),
    execute: ({ environmentId, now, playerId, sanctionId }) => sql`
      update sessions set revoked_at = ${now}, sanction_id = ${sanctionId}
      where player_id = ${playerId} and environment_id = ${environmentId}
        and revoked_at is null and expires_at > ${now}
      returning id`
  })
})

const reads = (sql: SqlClient.SqlClient) => {
  const all = sql.literal(columns)
  return {
    ofPlayer: SqlSchema.findAll({
      Request: Owner,
      Result: SanctionRow,
      execute: ({ environmentId, playerId }) => sql`
        select ${all} from sanctions s
        where s.player_id = ${playerId} and s.environment_id = ${environmentId}
        order by s.number desc`
    }),
    ofAppeal: SqlSchema.findOneOption({
      Request: Schema.Struct({ environmentId: EnvironmentId, appealId: Schema.String }),
      Result: SanctionRow,
      execute: ({ appealId, environmentId }) => sql`
        select ${all} from sanctions s
        where s.appeal_id = ${appealId} and s.environment_id = ${environmentId}`
    }),
    // The end of a ban ends its appeal, whether or not anybody has written that down.
    appeals: SqlSchema.findAll({
      Request: Page,
      Result: AppealRow,
      execute: ({ after, environmentId, limit, now, status }) => sql`
        select ${all}, p.display_name from (
          select *, case when appeal_status = 'open' and expires_at <= ${now} then 'accepted'
            else appeal_status end as status
          from sanctions where environment_id = ${environmentId} and appeal_id is not null
        ) s join players p on p.id = s.player_id
        where (${status}::text is null or s.status = ${status}::text)
          and (${after === null} or (s.status <> 'open', s.appeal_id)
            > (${after?.closed ?? false}::boolean, ${after?.appealId ?? ""}::text))
        order by s.status <> 'open', s.appeal_id limit ${limit}`
    })
  }
}

const standings = (sql: SqlClient.SqlClient) =>
  SqlSchema.findAll({
    Request: Schema.Struct({
      environmentId: Schema.String,
      playerIds: Schema.Array(Schema.String)
    }),
    Result: PlayerStatus,
    execute: ({ environmentId, playerIds }) => sql`
      select p.id as player_id, p.display_name, p.declared_age_band, s.id as sanction_id, s.note,
        s.expires_at
      from players p left join lateral (
        select id, note, expires_at, lifted_at from sanctions
        where player_id = p.id order by number desc limit 1
      ) s on s.lifted_at is null
      where p.environment_id = ${environmentId} and p.id = any(${[...playerIds]}::text[])`
  })

/** Rows in and out of `sanctions`. */
export class SanctionRepository extends Context.Service<SanctionRepository>()(
  "sql/moderation/SanctionRepository",
  {
    make: Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { hold, revoke, save } = writes(sql)
      const { appeals, ofAppeal, ofPlayer } = reads(sql)
      const findStandings = standings(sql)
      return {
        /** Holds the player's row until the transaction ends; none when there is no such player. */
        hold: (owner: typeof Owner.Type) => orDieWithTimeout(hold(owner)),
        save: (row: SanctionRow) => orDieWithTimeout(save(row)),
        /** Ends the player's sessions because of a ban; answers how many there were. */
        revokeSessions: (request: Parameters<typeof revoke>[0]) =>
          Effect.map(orDieWithTimeout(revoke(request)), (rows) => rows.length),
        /** The player's bans, newest first. */
        ofPlayer: (owner: typeof Owner.Type) => orDieWithTimeout(ofPlayer(owner)),
        ofAppeal: (environmentId: EnvironmentId, appealId: string) =>
          orDieWithTimeout(ofAppeal({ environmentId, appealId })),
        /** Bans with an appeal, open ones first, then by age. */
        appeals: (page: AppealsPage) => orDieWithTimeout(appeals(page)),
        /** Players with their last ban, if it was not lifted; unknown ones are missing. */
        playerStatuses: (environmentId: string, playerIds: ReadonlyArray<string>) =>
          orDieWithTimeout(findStandings({ environmentId, playerIds }))
      }
    })
  }
) {
  static readonly layer = Layer.effect(SanctionRepository, this.make)
}
