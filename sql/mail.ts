/**
 * Outbox of mails. A process claims a mail before it sends it: `due_at` is then the time at which another
 * process may take over. The content is encrypted by the caller.
 */
import { Context, Effect, Layer, Option, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { EnvironmentId, MailId, PlayerId } from "#rpc/ids"
import { orDieWithTimeout } from "./database.ts"

const Time = Schema.DateTimeUtcFromDate

/** Purpose of a mail's link. */
export const MailPurpose = Schema.Literals(["verify", "reset"])
export type MailPurpose = typeof MailPurpose.Type

const NewMail = Schema.Struct({
  id: MailId,
  environmentId: EnvironmentId,
  /** Player of the address; null while it is unknown whether the address has an account. */
  playerId: Schema.NullOr(PlayerId),
  purpose: MailPurpose,
  sealed: Schema.String,
  createdAt: Time,
  /** End of the period in which the mail may be sent. */
  expiresAt: Time
})

/** A mail for this process to send now; `attempts` includes this one. */
const ClaimedMail = Schema.Struct({
  ...NewMail.fields,
  attempts: Schema.Int,
  projectName: Schema.String
})
export type ClaimedMail = typeof ClaimedMail.Type

const StoredMail = Schema.Struct({ id: MailId, sealed: Schema.String, createdAt: Time })

const Claim = Schema.Struct({
  now: Time,
  until: Time,
  limit: Schema.Int,
  /** The environments of the mails that this process is sending, each as often as it has one. */
  busy: Schema.Array(EnvironmentId)
})

const statements = (sql: SqlClient.SqlClient) => ({
  insert: SqlSchema.findOneOption({
    Request: Schema.Struct({ ...NewMail.fields, limit: Schema.Int }),
    Result: Schema.Struct({ id: MailId }),
    execute: ({ createdAt, environmentId, expiresAt, id, limit, playerId, purpose, sealed }) => sql`
      insert into mails (id, environment_id, player_id, purpose, sealed, attempts, created_at,
        expires_at, due_at)
      select ${id}, ${environmentId}, ${playerId}, ${purpose}, ${sealed}, 0,
        ${createdAt}::timestamptz, ${expiresAt}::timestamptz, ${createdAt}::timestamptz
      where (
        select count(*) + count(*) filter (where w.project_id in (
          select other.project_id from environments e
          join project_members own on own.project_id = e.project_id
          join project_members other on other.developer_id = own.developer_id
          where e.id = ${environmentId}
          union select project_id from environments where id = ${environmentId}))
        from (
          select e.project_id from mails m join environments e on e.id = m.environment_id
          where m.due_at is not null limit ${limit}) w) < ${limit}
      returning id`
  }),
  claim: SqlSchema.findAll({
    Request: Claim,
    Result: ClaimedMail,
    execute: ({ busy, limit, now, until }) => sql`
      with ranked as (
        select id, row_number() over (partition by environment_id order by due_at)
          + coalesce(cardinality(array_positions(${busy}::text[], environment_id)), 0) as place
        from mails where due_at <= ${now}),
      due as (
        select m.id from mails m join ranked r on r.id = m.id
        where m.due_at <= ${now} order by r.place, m.due_at limit ${limit}
        for update of m skip locked)
      update mails m set due_at = ${until}, attempts = m.attempts + 1
      from due, environments e join projects p on p.id = e.project_id
      where m.id = due.id and e.id = m.environment_id
      returning m.id, m.environment_id, m.player_id, m.purpose, m.sealed, m.created_at,
        m.expires_at, m.attempts, p.name as project_name`
  }),
  ownerOf: SqlSchema.findOne({
    Request: EnvironmentId,
    Result: Schema.Struct({ ownerId: Schema.String }),
    execute: (environmentId) => sql`
      select coalesce(
        (select developer_id from project_members m where m.project_id = e.project_id
          order by created_at, developer_id limit 1),
        e.project_id) as owner_id
      from environments e where e.id = ${environmentId}`
  }),
  nextDue: SqlSchema.findOne({
    Request: Schema.Void,
    Result: Schema.Struct({ dueAt: Schema.NullOr(Time) }),
    execute: () => sql`select min(due_at) as due_at from mails`
  }),
  postpone: SqlSchema.void({
    Request: Schema.Struct({ id: MailId, dueAt: Time }),
    execute: ({ dueAt, id }) => sql`update mails set due_at = ${dueAt} where id = ${id}`
  }),
  remove: SqlSchema.void({
    Request: MailId,
    execute: (id) => sql`delete from mails where id = ${id}`
  }),
  sweep: SqlSchema.void({
    Request: Time,
    execute: (now) => sql`delete from mails where due_at is not null and expires_at <= ${now}`
  })
})

/** Statements that watch the outbox. */
const watching = (sql: SqlClient.SqlClient) => ({
  oldest: SqlSchema.findOne({
    Request: Schema.Void,
    Result: Schema.Struct({ createdAt: Schema.NullOr(Time) }),
    execute: () => sql`select min(created_at) as created_at from mails where due_at is not null`
  })
})

/** Statements of development without a mail server, which stores mails instead of sending them. */
const storage = (sql: SqlClient.SqlClient) => ({
  store: SqlSchema.void({
    Request: Schema.Struct({ id: MailId, playerId: PlayerId, sealed: Schema.String }),
    execute: ({ id, playerId, sealed }) => sql`
      update mails set due_at = null, player_id = ${playerId}, sealed = ${sealed}
      where id = ${id}`
  }),
  forgetOld: SqlSchema.void({
    Request: Schema.Int,
    execute: (limit) => sql`
      delete from mails where due_at is null and id in (
        select id from mails where due_at is null order by id desc offset ${limit})`
  }),
  stored: SqlSchema.findAll({
    Request: Schema.Int,
    Result: StoredMail,
    execute: (limit) => sql`
      select id, sealed, created_at from mails where due_at is null order by id desc limit ${limit}`
  })
})

/** Repository of the table `mails`. */
export class MailRepository extends Context.Service<MailRepository>()("sql/mail/MailRows", {
  make: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const { claim, insert, nextDue, ownerOf, postpone, remove, sweep } = statements(sql)
    const { oldest } = watching(sql)
    const { forgetOld, store, stored } = storage(sql)
    return {
      /**
       * Inserts a mail. Returns false if the outbox is full. Projects that share a developer may
       * have at most as many mails in it as it has free places.
       */
      insert: (mail: Parameters<typeof insert>[0]) =>
        Effect.map(orDieWithTimeout(insert(mail)), Option.isSome),
      /** Returns the developer of an environment's project, or the project if it has no member. */
      ownerOf: (environmentId: EnvironmentId) =>
        Effect.map(orDieWithTimeout(ownerOf(environmentId)), ({ ownerId }) => ownerId),
      /** Claims due mails: environments take turns, and the oldest of each comes first. */
      claim: (request: typeof Claim.Type) => orDieWithTimeout(claim(request)),
      /** Returns the time at which the next mail is due; null if there is none. */
      nextDue: Effect.map(orDieWithTimeout(nextDue(undefined)), ({ dueAt }) => dueAt),
      /** Returns when the oldest mail that waits was written; null if there is none. */
      oldest: Effect.map(orDieWithTimeout(oldest(undefined)), ({ createdAt }) => createdAt),
      postpone: (request: Parameters<typeof postpone>[0]) => orDieWithTimeout(postpone(request)),
      remove: (id: MailId) => orDieWithTimeout(remove(id)),
      /** Stores a mail instead of sending it, and deletes all but the newest `limit`. */
      store: (mail: Parameters<typeof store>[0], limit: number) =>
        orDieWithTimeout(Effect.andThen(store(mail), forgetOld(limit))),
      /** The stored mails, newest first. */
      stored: (limit: number) => orDieWithTimeout(stored(limit)),
      /** Deletes mails that were not sent in time. */
      sweep: (now: typeof Time.Type) => Effect.orDie(sweep(now))
    }
  })
}) {
  static readonly layer = Layer.effect(MailRepository, this.make)
}
