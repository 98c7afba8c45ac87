/**
 * Sessions and the keys that sign their tokens (spec section 5, decisions 3.1.7-8).
 *
 * A session is one sign-in on one device and one row: the hash of its current refresh token and of
 * that token's immediate parent. A rotation rewrites the row in one statement that only the holder
 * of the current token passes, so of many that come at once exactly one wins.
 */
import { Context, Effect, Layer, Option, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { EnvironmentId, PlayerId, SanctionId, SessionId } from "#rpc/ids"
import { dieOnTimeout, orDieWithTimeout } from "./database.ts"
import { batchReads } from "./batching.ts"
import { IdentityRow, mapIdentityConflict } from "./identities.ts"
import { NewPlayer, PlayerRow, playerColumns } from "./players.ts"

const Time = Schema.DateTimeUtcFromDate

/** A session that begins. */
const Opening = Schema.Struct({
  sessionId: SessionId,
  tokenHash: Schema.String,
  now: Time,
  expiresAt: Time
})

/** A player who signs in for the first time. */
const FirstOpening = Schema.Struct({ ...Opening.fields, player: NewPlayer })

const Several = Schema.Struct({
  environmentId: Schema.String,
  sessionIds: Schema.Array(Schema.String)
})

const Rotation = Schema.Struct({
  environmentId: EnvironmentId,
  sessionId: SessionId,
  tokenHash: Schema.String,
  nextHash: Schema.String,
  now: Time,
  expiresAt: Time
})

const Owner = Schema.Struct({ environmentId: EnvironmentId, playerId: PlayerId })

const Named = Schema.Struct({ environmentId: EnvironmentId, sessionId: SessionId })

const SessionRow = Schema.Struct({
  playerId: PlayerId,
  tokenHash: Schema.String,
  parentHash: Schema.NullOr(Schema.String),
  rotatedAt: Time,
  expiresAt: Time,
  revokedAt: Schema.NullOr(Time),
  /** The ban that revoked it. */
  sanctionId: Schema.NullOr(SanctionId)
})
export type SessionRow = typeof SessionRow.Type

const SigningKeyRow = Schema.Struct({
  kid: Schema.String,
  publicJwk: Schema.String,
  privateJwkSealed: Schema.String,
  createdAt: Time
})
export type SigningKeyRow = typeof SigningKeyRow.Type

/** That the player `p` is not banned. */
const notBanned = (sql: SqlClient.SqlClient, now: Date) => sql`
  not exists (
    select from sanctions b where b.player_id = p.id and b.lifted_at is null
      and (b.expires_at is null or b.expires_at > ${now}))`

/** How sessions begin and go on. */
const chains = (sql: SqlClient.SqlClient) => ({
  open: SqlSchema.void({
    Request: FirstOpening,
    execute: ({ expiresAt, now, player, sessionId, tokenHash }) => sql`
      with signed_up as (insert into players ${sql.insert(player)} returning id, environment_id)
      insert into sessions (id, environment_id, player_id, token_hash, rotated_at, expires_at,
        created_at)
      select ${sessionId}, environment_id, id, ${tokenHash}, ${now}, ${expiresAt}, ${now}
      from signed_up`
  }),
  resume: SqlSchema.findOneOption({
    Request: Schema.Struct({ ...Opening.fields, ...Owner.fields }),
    Result: PlayerRow,
    execute: ({ environmentId, expiresAt, now, playerId, sessionId, tokenHash }) => sql`
      with opened as (
        insert into sessions (id, environment_id, player_id, token_hash, rotated_at, expires_at,
          created_at)
        select ${sessionId}, environment_id, id, ${tokenHash}, ${now}, ${expiresAt}, ${now}
        from players p where environment_id = ${environmentId} and id = ${playerId}
          and ${notBanned(sql, now)}
        returning player_id)
      select ${playerColumns(sql)} from opened join players p on p.id = opened.player_id`
  }),
  rotate: SqlSchema.findOneOption({
    Request: Rotation,
    Result: PlayerRow,
    execute: ({ environmentId, expiresAt, nextHash, now, sessionId, tokenHash }) => sql`
      update sessions s set token_hash = ${nextHash}, parent_hash = s.token_hash,
        rotated_at = ${now}, expires_at = ${expiresAt}
      from players p
      where s.id = ${sessionId} and s.environment_id = ${environmentId}
        and s.token_hash = ${tokenHash} and s.revoked_at is null and s.expires_at > ${now}
        and p.id = s.player_id and ${notBanned(sql, now)}
      returning ${playerColumns(sql)}`
  }),
  find: SqlSchema.findOneOption({
    Request: Named,
    Result: SessionRow,
    execute: ({ environmentId, sessionId }) => sql`
      select player_id, token_hash, parent_hash, rotated_at, expires_at, revoked_at, sanction_id
      from sessions
      where id = ${sessionId} and environment_id = ${environmentId}`
  }),
  hold: SqlSchema.findOneOption({
    Request: Schema.Struct({ ...Owner.fields, sessionId: Schema.String }),
    Result: Schema.Struct({ id: Schema.String }),
    execute: ({ environmentId, playerId, sessionId }) => sql`
      select s.id from players p join sessions s on s.player_id = p.id
      where p.environment_id = ${environmentId} and p.id = ${playerId}
        and s.id = ${sessionId} and s.revoked_at is null
      for update`
  })
})

/** How sessions end. */
const endings = (sql: SqlClient.SqlClient) => ({
  revoke: SqlSchema.void({
    Request: Schema.Struct({ ...Named.fields, now: Time }),
    execute: ({ environmentId, now, sessionId }) => sql`
      update sessions set revoked_at = ${now}
      where id = ${sessionId} and environment_id = ${environmentId} and revoked_at is null`
  }),
  revokeOthers: SqlSchema.void({
    Request: Schema.Struct({ ...Owner.fields, kept: Schema.NullOr(SessionId), now: Time }),
    execute: ({ environmentId, kept, now, playerId }) => sql`
      update sessions set revoked_at = ${now}
      where environment_id = ${environmentId} and player_id = ${playerId} and revoked_at is null
        and id is distinct from ${kept}`
  }),
  revoked: SqlSchema.findAll({
    Request: Several,
    Result: Schema.Struct({ id: Schema.String, revokedAt: Time }),
    execute: ({ environmentId, sessionIds }) => sql`
      select id, revoked_at from sessions where environment_id = ${environmentId}
        and id = any(${[...sessionIds]}::text[]) and revoked_at is not null`
  }),
  sweep: SqlSchema.void({
    Request: Time,
    execute: (before) => sql`delete from sessions where expires_at < ${before}`
  })
})

const signing = (sql: SqlClient.SqlClient) => ({
  keys: SqlSchema.findAll({
    Request: Schema.Void,
    Result: SigningKeyRow,
    execute: () => sql`
      select kid, public_jwk, private_jwk_sealed, created_at from signing_keys
      order by created_at desc, kid`
  }),
  insertKey: SqlSchema.void({
    Request: SigningKeyRow,
    execute: (row) => sql`
      insert into signing_keys ${sql.insert(row)}`
  })
})

/** Rows in and out of `sessions`. */
export class SessionRepository extends Context.Service<SessionRepository>()(
  "sql/sessions/SessionRows",
  {
    make: Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { find, hold: lockPlayer, open: createWithPlayer, resume: create, rotate } = chains(sql)
      const { revoke, revoked, revokeOthers, sweep } = endings(sql)
      const ends = yield* batchReads((environmentId, sessionIds) =>
        Effect.map(
          orDieWithTimeout(revoked({ environmentId, sessionIds })),
          (rows): ReadonlyMap<string, typeof Time.Type> =>
            new Map(rows.map(({ id, revokedAt }) => [id, revokedAt]))
        )
      )
      const link = SqlSchema.void({
        Request: IdentityRow,
        execute: (row) => sql`insert into identities ${sql.insert(row)}`
      })
      return {
        /** A new player and its session, both or neither. */
        open: (request: typeof FirstOpening.Type) => orDieWithTimeout(createWithPlayer(request)),
        /** A new player with an identity and its session, all or nothing. */
        createWithIdentity: (request: typeof FirstOpening.Type, identity: IdentityRow) =>
          dieOnTimeout(
            mapIdentityConflict(
              sql.withTransaction(Effect.andThen(createWithPlayer(request), link(identity)))
            )
          ),
        /** A session more of a player; none when there is no such player, or it is banned. */
        resume: (request: Parameters<typeof create>[0]) => orDieWithTimeout(create(request)),
        /** The player, when the token was current, its session alive and there is no ban; then the next is current. */
        rotate: (request: typeof Rotation.Type) => orDieWithTimeout(rotate(request)),
        find: (request: typeof Named.Type) => orDieWithTimeout(find(request)),
        /** Whether the session is open; then its player is held until the transaction ends. */
        hold: (request: Parameters<typeof lockPlayer>[0]) =>
          Effect.map(orDieWithTimeout(lockPlayer(request)), Option.isSome),
        /** When the session was revoked, if it was. */
        revokedAt: (environmentId: EnvironmentId, sessionId: SessionId) =>
          Effect.map(ends(environmentId, [sessionId]), (found) => found.get(sessionId)),
        revoke: (request: Parameters<typeof revoke>[0]) => orDieWithTimeout(revoke(request)),
        /** Ends the sessions of a player, all but the one that is kept. */
        revokeOthers: (request: Parameters<typeof revokeOthers>[0]) =>
          orDieWithTimeout(revokeOthers(request)),
        /** Forgets the sessions that ended before a time. */
        sweep: (before: typeof Time.Type) => Effect.orDie(sweep(before))
      }
    })
  }
) {
  static readonly layer = Layer.effect(SessionRepository, this.make)
}

/** Rows in and out of `signing_keys`. */
export class SigningKeyRepository extends Context.Service<SigningKeyRepository>()(
  "sql/sessions/SigningKeyRows",
  {
    make: Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { insertKey, keys } = signing(sql)
      return {
        /** The keys, newest first. */
        all: orDieWithTimeout(keys(undefined)),
        /** The keys; when there is none, the one that is made. Of many callers one makes it. */
        allOrCreate: <E, R>(make: Effect.Effect<SigningKeyRow, E, R>) =>
          orDieWithTimeout(
            sql.withTransaction(
              Effect.gen(function* () {
                yield* sql`lock table signing_keys in share row exclusive mode`
                const found = yield* keys(undefined)
                if (found.length > 0) return found
                const made = yield* make
                yield* insertKey(made)
                return [made]
              })
            )
          )
      }
    })
  }
) {
  static readonly layer = Layer.effect(SigningKeyRepository, this.make)
}
