/**
 * Developer accounts, their sign-in methods and their sessions. The database stores passwords as
 * argon2id hashes, session tokens as SHA-256 hashes.
 */
import { Context, Effect, Layer, Option, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { DeveloperId, DeveloperSessionId } from "#rpc/ids"
import { orDieWithTimeout } from "../database.ts"

const Time = Schema.DateTimeUtcFromDate

const NewDeveloper = Schema.Struct({
  id: DeveloperId,
  email: Schema.String,
  name: Schema.NullOr(Schema.String),
  /** Hash of the password; null for a developer who signs in with external providers only. */
  passwordHash: Schema.NullOr(Schema.String),
  createdAt: Time
})
export type NewDeveloper = typeof NewDeveloper.Type

const DeveloperRow = Schema.Struct({
  ...NewDeveloper.fields,
  /** Time at which the developer confirmed the address; null before. */
  emailVerifiedAt: Schema.NullOr(Time)
})
export type DeveloperRow = typeof DeveloperRow.Type

const SessionRow = Schema.Struct({
  id: DeveloperSessionId,
  developerId: DeveloperId,
  tokenHash: Schema.String,
  createdAt: Time,
  expiresAt: Time
})

/** `earliest`: sessions that were created before have reached their longest life. */
const PresentedToken = Schema.Struct({ tokenHash: Schema.String, now: Time, earliest: Time })

/** An unexpired session with its developer. */
const SessionWithDeveloper = Schema.Struct({
  sessionId: DeveloperSessionId,
  developerId: DeveloperId,
  email: Schema.String,
  name: Schema.NullOr(Schema.String),
  createdAt: Time,
  expiresAt: Time
})

const sessions = (sql: SqlClient.SqlClient) => ({
  insertSession: SqlSchema.void({
    Request: SessionRow,
    execute: (row) => sql`insert into developer_sessions ${sql.insert(row)}`
  }),
  findSession: SqlSchema.findOneOption({
    Request: PresentedToken,
    Result: SessionWithDeveloper,
    execute: ({ earliest, now, tokenHash }) => sql`
      select s.id as session_id, s.created_at, s.expires_at, d.id as developer_id, d.email, d.name
      from developer_sessions s join developers d on d.id = s.developer_id
      where s.token_hash = ${tokenHash} and s.expires_at > ${now}
        and s.created_at > ${earliest}`
  }),
  findOpen: SqlSchema.findOneOption({
    Request: Schema.Struct({ sessionId: DeveloperSessionId, now: Time }),
    Result: Schema.Struct({ id: DeveloperSessionId }),
    execute: ({ now, sessionId }) => sql`
      select id from developer_sessions where id = ${sessionId} and expires_at > ${now}`
  }),
  extendSession: SqlSchema.void({
    Request: Schema.Struct({ sessionId: DeveloperSessionId, expiresAt: Time }),
    execute: ({ expiresAt, sessionId }) => sql`
      update developer_sessions set expires_at = ${expiresAt} where id = ${sessionId}`
  })
})

const DeveloperRef = Schema.Struct({ developerId: DeveloperId })

const profileFields = {
  email: Schema.NullOr(Schema.String),
  username: Schema.NullOr(Schema.String)
}

const IdentityRow = Schema.Struct({
  provider: Schema.String,
  ...profileFields,
  linkedAt: Time
})

/** The external account; `subject` is the provider's permanent id of the user. */
const IdentityKey = Schema.Struct({ provider: Schema.String, subject: Schema.String })

const NewIdentity = Schema.Struct({
  ...IdentityKey.fields,
  ...DeveloperRef.fields,
  ...profileFields,
  linkedAt: Time
})
export type NewDeveloperIdentity = typeof NewIdentity.Type

const sessionRemovals = (sql: SqlClient.SqlClient) => ({
  endSession: SqlSchema.void({
    Request: DeveloperSessionId,
    execute: (id) => sql`delete from developer_sessions where id = ${id}`
  }),
  endOtherSessions: SqlSchema.void({
    Request: Schema.Struct({ ...DeveloperRef.fields, sessionId: DeveloperSessionId }),
    execute: ({ developerId, sessionId }) => sql`
      delete from developer_sessions where developer_id = ${developerId} and id <> ${sessionId}`
  }),
  endSessions: SqlSchema.void({
    Request: DeveloperId,
    execute: (id) => sql`delete from developer_sessions where developer_id = ${id}`
  }),
  sweepSessions: SqlSchema.void({
    Request: Time,
    execute: (now) => sql`delete from developer_sessions where expires_at <= ${now}`
  })
})

const accounts = (sql: SqlClient.SqlClient) => {
  const columns = sql.literal("id, email, name, password_hash, created_at, email_verified_at")
  return {
    insert: SqlSchema.void({
      Request: NewDeveloper,
      execute: (row) => sql`insert into developers ${sql.insert(row)}`
    }),
    find: SqlSchema.findOneOption({
      Request: DeveloperId,
      Result: DeveloperRow,
      execute: (id) => sql`select ${columns} from developers where id = ${id}`
    }),
    findByEmail: SqlSchema.findOneOption({
      Request: Schema.Array(Schema.String),
      Result: DeveloperRow,
      execute: (forms) => sql`
          select ${columns} from developers where ${sql.in("email", forms)}
          order by array_position(${[...forms]}::text[], email) limit 1`
    }),
    any: SqlSchema.findAll({
      Request: Schema.Void,
      Result: Schema.Struct({ id: DeveloperId }),
      execute: () => sql`select id from developers limit 1`
    }),
    replacePassword: SqlSchema.findOneOption({
      Request: Schema.Struct({
        ...DeveloperRef.fields,
        from: Schema.NullOr(Schema.String),
        to: Schema.String
      }),
      Result: Schema.Struct({ id: DeveloperId }),
      execute: ({ developerId, from, to }) => sql`
        update developers set password_hash = ${to}
        where id = ${developerId} and password_hash is not distinct from ${from}
        returning id`
    })
  }
}

const externalIdentities = (sql: SqlClient.SqlClient) => ({
  identities: SqlSchema.findAll({
    Request: DeveloperId,
    Result: IdentityRow,
    execute: (id) => sql`
      select provider, email, username, linked_at from developer_identities
      where developer_id = ${id} order by linked_at, provider`
  }),
  findByIdentity: SqlSchema.findOneOption({
    Request: IdentityKey,
    Result: DeveloperRow,
    execute: ({ provider, subject }) => sql`
      select d.id, d.email, d.name, d.password_hash, d.created_at, d.email_verified_at
      from developer_identities i join developers d on d.id = i.developer_id
      where i.provider = ${provider} and i.subject = ${subject}`
  }),
  link: SqlSchema.findOneOption({
    Request: NewIdentity,
    Result: IdentityKey,
    execute: (row) => sql`
      insert into developer_identities ${sql.insert(row)}
      on conflict do nothing returning provider, subject`
  }),
  updateProfile: SqlSchema.void({
    Request: Schema.Struct({ ...IdentityKey.fields, ...profileFields }),
    execute: ({ email, provider, subject, username }) => sql`
      update developer_identities set email = ${email}, username = ${username}
      where provider = ${provider} and subject = ${subject}`
  }),
  unlink: SqlSchema.void({
    Request: Schema.Struct({ ...DeveloperRef.fields, provider: Schema.String }),
    execute: ({ developerId, provider }) => sql`
      delete from developer_identities
      where developer_id = ${developerId} and provider = ${provider}`
  })
})

const setupTokens = (sql: SqlClient.SqlClient) => {
  const insertSetupToken = SqlSchema.findAll({
    Request: Schema.Struct({ hash: Schema.String, createdAt: Time }),
    Result: Schema.Struct({ id: Schema.Int }),
    execute: (row) => sql`
      insert into setup_token ${sql.insert(row)} on conflict do nothing returning id`
  })
  const findSetupToken = SqlSchema.findOneOption({
    Request: Schema.Void,
    Result: Schema.Struct({ hash: Schema.String }),
    execute: () => sql`select hash from setup_token`
  })
  return {
    /** Stores the hash of the setup token; false if there is one already. */
    insertSetupToken: (row: Parameters<typeof insertSetupToken>[0]) =>
      Effect.map(orDieWithTimeout(insertSetupToken(row)), (rows) => rows.length === 1),
    setupTokenHash: Effect.map(
      orDieWithTimeout(findSetupToken(undefined)),
      Option.map(({ hash }) => hash)
    ),
    deleteSetupToken: Effect.asVoid(orDieWithTimeout(sql`delete from setup_token`))
  }
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { extendSession, findOpen, findSession, insertSession } = sessions(sql)
  const { endOtherSessions, endSession, endSessions, sweepSessions } = sessionRemovals(sql)
  const { any, find, findByEmail, insert, replacePassword } = accounts(sql)
  const { findByIdentity, identities, link, unlink, updateProfile } = externalIdentities(sql)
  return {
    ...setupTokens(sql),
    insert: (row: NewDeveloper) => orDieWithTimeout(insert(row)),
    find: (id: DeveloperId) => orDieWithTimeout(find(id)),
    /** Finds the account with an address in one of these forms; the first form wins. */
    findByEmail: (forms: ReadonlyArray<string>) => orDieWithTimeout(findByEmail(forms)),
    /** Whether there is no developer account. */
    isEmpty: Effect.map(orDieWithTimeout(any(undefined)), (rows) => rows.length === 0),
    /** Locks the table until the transaction ends, so that sign-ups serialize. */
    lockAccounts: Effect.asVoid(
      orDieWithTimeout(sql`lock table developers in share row exclusive mode`)
    ),
    /** Locks an account until the transaction ends, so that changes of its sign-in methods serialize. */
    lockAccount: (id: DeveloperId) =>
      Effect.asVoid(orDieWithTimeout(sql`select id from developers where id = ${id} for update`)),
    /**
     * Replaces the password hash `from` by `to` (compare-and-set). Returns whether it did. The row
     * stays locked until the transaction ends.
     */
    replacePassword: (request: Parameters<typeof replacePassword>[0]) =>
      Effect.map(orDieWithTimeout(replacePassword(request)), Option.isSome),
    identities: (id: DeveloperId) => orDieWithTimeout(identities(id)),
    /** The developer who signs in with an external account. */
    findByIdentity: (key: typeof IdentityKey.Type) => orDieWithTimeout(findByIdentity(key)),
    /**
     * Links an external account. Returns false if it, or another account of its provider, is linked
     * already.
     */
    link: (row: NewDeveloperIdentity) => Effect.map(orDieWithTimeout(link(row)), Option.isSome),
    updateProfile: (request: Parameters<typeof updateProfile>[0]) =>
      orDieWithTimeout(updateProfile(request)),
    unlink: (request: Parameters<typeof unlink>[0]) => orDieWithTimeout(unlink(request)),
    insertSession: (row: typeof SessionRow.Type) => orDieWithTimeout(insertSession(row)),
    /** Finds an unexpired session by the hash of its token. */
    findSession: (request: Parameters<typeof findSession>[0]) =>
      orDieWithTimeout(findSession(request)),
    /** Whether a session has neither ended nor expired. */
    isSessionOpen: (request: Parameters<typeof findOpen>[0]) =>
      Effect.map(orDieWithTimeout(findOpen(request)), Option.isSome),
    extendSession: (request: Parameters<typeof extendSession>[0]) =>
      orDieWithTimeout(extendSession(request)),
    endSession: (id: DeveloperSessionId) => orDieWithTimeout(endSession(id)),
    endSessions: (id: DeveloperId) => orDieWithTimeout(endSessions(id)),
    endOtherSessions: (request: Parameters<typeof endOtherSessions>[0]) =>
      orDieWithTimeout(endOtherSessions(request)),
    sweepSessions: (now: typeof Time.Type) => Effect.orDie(sweepSessions(now))
  }
})

/** Repository of `developers`, their external identities, and sessions. */
export class DeveloperRepository extends Context.Service<DeveloperRepository>()(
  "sql/developers/repository/DeveloperRepository",
  { make }
) {
  static readonly layer = Layer.effect(DeveloperRepository, this.make)
}
