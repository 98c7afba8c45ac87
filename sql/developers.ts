/**
 * Developers: who may use the dashboard, how they sign in, and their sessions. Passwords are kept as
 * argon2id hashes only, session tokens as SHA-256.
 */
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { DeveloperId, DeveloperSessionId } from "#rpc/ids"
import { settled } from "./database.ts"

const Time = Schema.DateTimeUtcFromDate

export const DeveloperRow = Schema.Struct({
  id: DeveloperId,
  email: Schema.String,
  name: Schema.NullOr(Schema.String),
  /** Absent for a developer who signs in with an external provider only. */
  passwordHash: Schema.NullOr(Schema.String),
  createdAt: Time
})
export type DeveloperRow = typeof DeveloperRow.Type

const SessionRow = Schema.Struct({
  id: DeveloperSessionId,
  developerId: DeveloperId,
  tokenHash: Schema.String,
  createdAt: Time,
  expiresAt: Time
})

/** A session that is alive, and whose it is. */
const OpenSession = Schema.Struct({
  sessionId: DeveloperSessionId,
  developerId: DeveloperId,
  email: Schema.String,
  name: Schema.NullOr(Schema.String),
  expiresAt: Time
})

const sessions = (sql: SqlClient.SqlClient) => ({
  insertSession: SqlSchema.void({
    Request: SessionRow,
    execute: (row) => sql`insert into developer_sessions ${sql.insert(row)}`
  }),
  openSession: SqlSchema.findOneOption({
    Request: Schema.Struct({ tokenHash: Schema.String, now: Time }),
    Result: OpenSession,
    execute: ({ now, tokenHash }) => sql`
      select s.id as session_id, s.expires_at, d.id as developer_id, d.email, d.name
      from developer_sessions s join developers d on d.id = s.developer_id
      where s.token_hash = ${tokenHash} and s.expires_at > ${now}`
  }),
  extendSession: SqlSchema.void({
    Request: Schema.Struct({ sessionId: DeveloperSessionId, expiresAt: Time }),
    execute: ({ expiresAt, sessionId }) => sql`
      update developer_sessions set expires_at = ${expiresAt} where id = ${sessionId}`
  })
})

/** Rows in and out of `developers` and their sessions. */
export class DeveloperRows extends Context.Service<DeveloperRows>()(
  "sql/developers/DeveloperRows",
  {
    make: Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { extendSession, insertSession, openSession } = sessions(sql)
      const insert = SqlSchema.void({
        Request: DeveloperRow,
        execute: (row) => sql`insert into developers ${sql.insert(row)}`
      })
      return {
        insert: (row: DeveloperRow) => settled(insert(row)),
        insertSession: (row: typeof SessionRow.Type) => settled(insertSession(row)),
        /** The session of a token's hash; none when it is unknown, ended or too old. */
        openSession: (request: Parameters<typeof openSession>[0]) => settled(openSession(request)),
        extendSession: (request: Parameters<typeof extendSession>[0]) =>
          settled(extendSession(request))
      }
    })
  }
) {
  static readonly layer = Layer.effect(DeveloperRows, this.make)
}
