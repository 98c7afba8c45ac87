/**
 * Mails to be sent. A mail is claimed for a while by the process that tries to send it: `due_at` is
 * then the time at which the others may take over. What it says is sealed by whoever writes it.
 */
import { Context, Effect, Layer, Option, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { EnvironmentId, MailId, PlayerId } from "#rpc/ids"
import { orDieWithTimeout } from "./database.ts"

const Time = Schema.DateTimeUtcFromDate

/** What a mail's link is for. */
export const MailPurpose = Schema.Literals(["verify", "reset"])
export type MailPurpose = typeof MailPurpose.Type

const NewMail = Schema.Struct({
  id: MailId,
  environmentId: EnvironmentId,
  /** Null while it is not known whether anybody has the address. */
  playerId: Schema.NullOr(PlayerId),
  purpose: MailPurpose,
  sealed: Schema.String,
  createdAt: Time,
  /** Nobody wants it after this. */
  expiresAt: Time
})

/** A mail that this process is to send now; `attempts` counts this one. */
const ClaimedMail = Schema.Struct({
  ...NewMail.fields,
  attempts: Schema.Int,
  projectName: Schema.String
})
export type ClaimedMail = typeof ClaimedMail.Type

const KeptMail = Schema.Struct({ id: MailId, sealed: Schema.String, createdAt: Time })

const Claim = Schema.Struct({ now: Time, until: Time, most: Schema.Int })

const statements = (sql: SqlClient.SqlClient) => ({
  insert: SqlSchema.findOneOption({
    Request: Schema.Struct({ ...NewMail.fields, most: Schema.Int }),
    Result: Schema.Struct({ id: MailId }),
    execute: ({ createdAt, environmentId, expiresAt, id, most, playerId, purpose, sealed }) => sql`
      insert into mails (id, environment_id, player_id, purpose, sealed, attempts, created_at,
        expires_at, due_at)
      select ${id}, ${environmentId}, ${playerId}, ${purpose}, ${sealed}, 0,
        ${createdAt}::timestamptz, ${expiresAt}::timestamptz, ${createdAt}::timestamptz
      where not exists (select from mails where due_at is not null offset ${most - 1})
      returning id`
  }),
  claim: SqlSchema.findAll({
    Request: Claim,
    Result: ClaimedMail,
    execute: ({ most, now, until }) => sql`
      with due as (
        select id from mails where due_at <= ${now} order by due_at limit ${most}
        for update skip locked)
      update mails m set due_at = ${until}, attempts = m.attempts + 1
      from due, environments e join projects p on p.id = e.project_id
      where m.id = due.id and e.id = m.environment_id
      returning m.id, m.environment_id, m.player_id, m.purpose, m.sealed, m.created_at,
        m.expires_at, m.attempts, p.name as project_name`
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

/** For development: mails stay here. */
const keeping = (sql: SqlClient.SqlClient) => ({
  keep: SqlSchema.void({
    Request: Schema.Struct({ id: MailId, playerId: PlayerId, sealed: Schema.String }),
    execute: ({ id, playerId, sealed }) => sql`
      update mails set due_at = null, player_id = ${playerId}, sealed = ${sealed}
      where id = ${id}`
  }),
  forgetOld: SqlSchema.void({
    Request: Schema.Int,
    execute: (most) => sql`
      delete from mails where due_at is null and id in (
        select id from mails where due_at is null order by id desc offset ${most})`
  }),
  kept: SqlSchema.findAll({
    Request: Schema.Int,
    Result: KeptMail,
    execute: (most) => sql`
      select id, sealed, created_at from mails where due_at is null order by id desc limit ${most}`
  })
})

/** Rows in and out of `mails`. */
export class MailRepository extends Context.Service<MailRepository>()("sql/mail/MailRows", {
  make: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const { claim, insert, nextDue, postpone, remove, sweep } = statements(sql)
    const { forgetOld, keep, kept } = keeping(sql)
    return {
      /** False when so many wait already that there is no room. */
      insert: (mail: Parameters<typeof insert>[0]) =>
        Effect.map(orDieWithTimeout(insert(mail)), Option.isSome),
      /** Mails that are due, those that have waited longest first; nobody else gets them meanwhile. */
      claim: (request: typeof Claim.Type) => orDieWithTimeout(claim(request)),
      /** When the next mail is due; null while none waits. */
      nextDue: Effect.map(orDieWithTimeout(nextDue(undefined)), ({ dueAt }) => dueAt),
      postpone: (request: Parameters<typeof postpone>[0]) => orDieWithTimeout(postpone(request)),
      remove: (id: MailId) => orDieWithTimeout(remove(id)),
      /** Keeps a mail instead of sending it, and no more than the newest `most`. */
      keep: (mail: Parameters<typeof keep>[0], most: number) =>
        orDieWithTimeout(Effect.andThen(keep(mail), forgetOld(most))),
      /** The mails that are kept, newest first. */
      kept: (most: number) => orDieWithTimeout(kept(most)),
      /** Forgets mails that nobody has sent in time. */
      sweep: (now: typeof Time.Type) => Effect.orDie(sweep(now))
    }
  })
}) {
  static readonly layer = Layer.effect(MailRepository, this.make)
}
