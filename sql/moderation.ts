/**
 * Bans (`sanctions`): one row per ban, with its optional appeal. A change of a player's bans first locks
 * the player's row, so concurrent changes serialize and each sees the previous one.
 */
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { AppealId, EnvironmentId, PlayerId, SanctionId } from "#rpc/ids"
import { AgeBand } from "#rpc/ages"
import { AppealStatus } from "#rpc/appeals"
import { orDieWithTimeout } from "./database.ts"

const Time = Schema.DateTimeUtcFromDate

/** A ban; the appeal columns are null without an appeal. */
export const SanctionRow = Schema.Struct({
  id: SanctionId,
  environmentId: EnvironmentId,
  playerId: PlayerId,
  /** Reason, shown to operators only; the player sees `note`. */
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

/** A page of appeals after the position `after`; open appeals come first, then oldest first. */
const Page = Schema.Struct({
  environmentId: EnvironmentId,
  status: Schema.NullOr(AppealStatus),
  now: Time,
  after: Schema.NullOr(Schema.Struct({ closed: Schema.Boolean, appealId: Schema.String })),
  limit: Schema.Int
})
export type AppealsPage = typeof Page.Type

const AppealRow = Schema.Struct({ ...SanctionRow.fields, displayName: Schema.String })

/** The player's name, declared age band and last ban, which the status cache loads. */
const PlayerStatus = Schema.Struct({
  playerId: PlayerId,
  displayName: Schema.String,
  declaredAgeBand: Schema.NullOr(AgeBand),
  hasBlocks: Schema.Boolean,
  /** The last ban, also one that was lifted; null without any. */
  sanctionId: Schema.NullOr(SanctionId),
  note: Schema.NullOr(Schema.String),
  expiresAt: Schema.NullOr(Time),
  liftedAt: Schema.NullOr(Time)
})
export type PlayerStatusRow = typeof PlayerStatus.Type

const columns = `s.id, s.environment_id, s.player_id, s.reason, s.note, s.created_at, s.expires_at,
  s.lifted_at, s.appeal_id, s.appeal_message, s.appeal_status, s.appeal_response, s.appealed_at,
  s.resolved_at`

const writes = (sql: SqlClient.SqlClient) => ({
  lockPlayer: SqlSchema.findOneOption({
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
        and revoked_at is null and signed_out_at is null and expires_at > ${now}
      returning id`
  })
})

const reads = (sql: SqlClient.SqlClient) => {
  const all = sql.literal(columns)
  return {
    listByPlayer: SqlSchema.findAll({
      Request: Owner,
      Result: SanctionRow,
      execute: ({ environmentId, playerId }) => sql`
        select ${all} from sanctions s
        where s.player_id = ${playerId} and s.environment_id = ${environmentId}
        order by s.number desc`
    }),
    findByAppeal: SqlSchema.findOneOption({
      Request: Schema.Struct({ environmentId: EnvironmentId, appealId: Schema.String }),
      Result: SanctionRow,
      execute: ({ appealId, environmentId }) => sql`
        select ${all} from sanctions s
        where s.appeal_id = ${appealId} and s.environment_id = ${environmentId}`
    }),
    // An expired ban's appeal counts as accepted even before the row is updated.
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

const playerStatuses = (sql: SqlClient.SqlClient) =>
  SqlSchema.findAll({
    Request: Schema.Struct({
      environmentId: Schema.String,
      playerIds: Schema.Array(Schema.String)
    }),
    Result: PlayerStatus,
    execute: ({ environmentId, playerIds }) => sql`
      select p.id as player_id, p.display_name, p.declared_age_band, s.id as sanction_id, s.note,
        s.expires_at, s.lifted_at,
        exists (select from blocks where blocks.player_id = p.id) as has_blocks
      from players p left join lateral (
        select id, note, expires_at, lifted_at from sanctions
        where player_id = p.id order by number desc limit 1
      ) s on true
      where p.environment_id = ${environmentId} and p.id = any(${[...playerIds]}::text[])`
  })

/** Repository of `sanctions`. */
export class SanctionRepository extends Context.Service<SanctionRepository>()(
  "sql/moderation/SanctionRepository",
  {
    make: Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { lockPlayer, revoke, save } = writes(sql)
      const { appeals, findByAppeal, listByPlayer } = reads(sql)
      const findPlayerStatuses = playerStatuses(sql)
      return {
        /** Locks the player's row until the transaction ends; none when the player does not exist. */
        lockPlayer: (owner: typeof Owner.Type) => orDieWithTimeout(lockPlayer(owner)),
        save: (row: SanctionRow) => orDieWithTimeout(save(row)),
        /** Revokes the player's sessions because of a ban; returns their number. */
        revokeSessions: (request: Parameters<typeof revoke>[0]) =>
          Effect.map(orDieWithTimeout(revoke(request)), (rows) => rows.length),
        /** Lists the player's bans, newest first. */
        listByPlayer: (owner: typeof Owner.Type) => orDieWithTimeout(listByPlayer(owner)),
        findByAppeal: (environmentId: EnvironmentId, appealId: string) =>
          orDieWithTimeout(findByAppeal({ environmentId, appealId })),
        /** Lists bans with an appeal: open appeals first, then oldest first. */
        appeals: (page: AppealsPage) => orDieWithTimeout(appeals(page)),
        /** Returns players with their last ban; unknown players are missing. */
        playerStatuses: (environmentId: string, playerIds: ReadonlyArray<string>) =>
          orDieWithTimeout(findPlayerStatuses({ environmentId, playerIds }))
      }
    })
  }
) {
  static readonly layer = Layer.effect(SanctionRepository, this.make)
}
