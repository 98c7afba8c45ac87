/**
 * Sessions, and the keys that sign their access tokens.
 *
 * A session is one sign-in on one device, stored as one row. The row holds the hashes of the current
 * refresh token and of its parent. One statement rotates the row if the presented token is current, so
 * exactly one of several concurrent rotations succeeds.
 */
import { Context, Effect, Layer, Option, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { EnvironmentId, PlayerId, SanctionId, SessionId } from "#rpc/ids"
import { dieOnTimeout, isRefused, orDieWithTimeout } from "./database.ts"
import { batchReads, batchWrites } from "./batching.ts"
import { insertEvents, isoTime } from "./functions/events.ts"
import { IdentityRow, mapIdentityConflict } from "./identities.ts"
import { NewPlayer, PlayerRow, playerColumns } from "./players.ts"

const Time = Schema.DateTimeUtcFromDate

/** A session to insert. */
const NewSession = Schema.Struct({
  sessionId: SessionId,
  tokenHash: Schema.String,
  now: Time,
  expiresAt: Time
})

/** A session to insert together with its player. */
const NewSessionAndPlayer = Schema.Struct({ ...NewSession.fields, player: NewPlayer })

type NewSessionAndPlayer = typeof NewSessionAndPlayer.Type

const JsonTime = Schema.DateTimeUtcFromString

/** Rows as one parameter, so that the statement text does not depend on their number. */
const NewSessionsAndPlayers = Schema.fromJsonString(
  Schema.Array(
    Schema.Struct({
      ...NewSession.fields,
      ...NewPlayer.fields,
      now: JsonTime,
      expiresAt: JsonTime,
      createdAt: JsonTime
    })
  )
)

/** Characters of a row in the parameter. */
const newRowCharacters = 500

const SessionIds = Schema.Struct({
  environmentId: Schema.String,
  sessionIds: Schema.Array(Schema.String)
})

const Rotation = Schema.Struct({
  environmentId: EnvironmentId,
  sessionId: SessionId,
  tokenHash: Schema.String,
  nextHash: Schema.String,
  /** Hash of the key that can repeat this rotation. */
  keyHash: Schema.NullOr(Schema.String),
  now: Time,
  expiresAt: Time
})

/** Refresh tokens of which one is current; with `rotation`, only as the result of that rotation. */
const Holder = Schema.Struct({
  environmentId: EnvironmentId,
  sessionId: SessionId,
  tokenHashes: Schema.Array(Schema.String),
  rotation: Schema.NullOr(Schema.Struct({ parentHash: Schema.String, keyHash: Schema.String })),
  now: Time
})

const Owner = Schema.Struct({ environmentId: EnvironmentId, playerId: PlayerId })

const SessionKey = Schema.Struct({ environmentId: EnvironmentId, sessionId: SessionId })

const SessionRow = Schema.Struct({
  playerId: PlayerId,
  tokenHash: Schema.String,
  parentHash: Schema.NullOr(Schema.String),
  /** Set while the rotation to the current token can be repeated: nobody has presented that token. */
  rotationKeyHash: Schema.NullOr(Schema.String),
  rotatedAt: Time,
  expiresAt: Time,
  revokedAt: Schema.NullOr(Time),
  /**
   * Time at which the player signed out on this device. The access tokens of the session stay valid
   * until they expire.
   */
  signedOutAt: Schema.NullOr(Time),
  /** The ban that revoked the session. */
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

/** Condition that the player `p` has no active ban. */
const notBanned = (sql: SqlClient.SqlClient, now: Date) => sql`
  not exists (
    select from sanctions b where b.player_id = p.id and b.lifted_at is null
      and (b.expires_at is null or b.expires_at > ${now}))`

/** The events of new players: those in `signed_up`. */
const createdPlayers = (sql: SqlClient.SqlClient) => sql`
  select environment_id, json_build_object('player', json_build_object('id', id,
    'displayName', display_name, 'isGuest', is_guest, 'createdAt', ${isoTime(sql, "created_at")})), created_at
  from signed_up`

/** Creates, reads and rotates sessions. */
const sessionStatements = (sql: SqlClient.SqlClient) => ({
  createWithPlayer: SqlSchema.void({
    Request: NewSessionAndPlayer,
    execute: ({ expiresAt, now, player, sessionId, tokenHash }) => sql`
      with signed_up as (insert into players ${sql.insert(player)} returning *),
      announced as (${insertEvents(sql, "onPlayerCreated", createdPlayers(sql))})
      insert into sessions (id, environment_id, player_id, token_hash, rotated_at, expires_at,
        created_at)
      select ${sessionId}, environment_id, id, ${tokenHash}, ${now}, ${expiresAt}, ${now}
      from signed_up`
  }),
  create: SqlSchema.findOneOption({
    Request: Schema.Struct({ ...NewSession.fields, ...Owner.fields }),
    Result: PlayerRow,
    execute: ({ environmentId, expiresAt, now, playerId, sessionId, tokenHash }) => sql`
      with created as (
        insert into sessions (id, environment_id, player_id, token_hash, rotated_at, expires_at,
          created_at)
        select ${sessionId}, environment_id, id, ${tokenHash}, ${now}, ${expiresAt}, ${now}
        from players p where environment_id = ${environmentId} and id = ${playerId}
          and ${notBanned(sql, now)}
        returning player_id)
      select ${playerColumns(sql)} from created join players p on p.id = created.player_id`
  }),
  rotate: SqlSchema.findOneOption({
    Request: Rotation,
    Result: PlayerRow,
    execute: ({ environmentId, expiresAt, keyHash, nextHash, now, sessionId, tokenHash }) => sql`
      update sessions s set token_hash = ${nextHash}, parent_hash = s.token_hash,
        rotation_key_hash = ${keyHash}, rotated_at = ${now}, expires_at = ${expiresAt}
      from players p
      where s.id = ${sessionId} and s.environment_id = ${environmentId}
        and s.token_hash = ${tokenHash} and s.expires_at > ${now}
        and s.revoked_at is null and s.signed_out_at is null
        and p.id = s.player_id and ${notBanned(sql, now)}
      returning ${playerColumns(sql)}`
  }),
  link: SqlSchema.void({
    Request: IdentityRow,
    execute: (row) => sql`insert into identities ${sql.insert(row)}`
  }),
  lockOpenSession: SqlSchema.findOneOption({
    Request: Schema.Struct({ ...Owner.fields, sessionId: Schema.String }),
    Result: Schema.Struct({ id: Schema.String }),
    execute: ({ environmentId, playerId, sessionId }) => sql`
      select s.id from players p join sessions s on s.player_id = p.id
      where p.environment_id = ${environmentId} and p.id = ${playerId}
        and s.id = ${sessionId} and s.revoked_at is null and s.signed_out_at is null
      for update`
  })
})

/** Finds sessions, and the holders of their tokens. */
const sessionReads = (sql: SqlClient.SqlClient) => ({
  findHolder: SqlSchema.findOneOption({
    Request: Holder,
    Result: Schema.Struct({ ...PlayerRow.fields, tokenHash: Schema.String }),
    execute: ({ environmentId, now, rotation, sessionId, tokenHashes }) => sql`
      select ${playerColumns(sql)}, s.token_hash
      from sessions s join players p on p.id = s.player_id
      where s.id = ${sessionId} and s.environment_id = ${environmentId}
        and s.token_hash = any(${[...tokenHashes]}::text[]) and s.expires_at > ${now}
        and s.revoked_at is null and s.signed_out_at is null and ${notBanned(sql, now)}
        and ${
          rotation === null
            ? sql`true`
            : sql`s.parent_hash = ${rotation.parentHash} and s.rotation_key_hash = ${rotation.keyHash}`
        }`
  }),
  find: SqlSchema.findOneOption({
    Request: SessionKey,
    Result: SessionRow,
    execute: ({ environmentId, sessionId }) => sql`
      select player_id, token_hash, parent_hash, rotation_key_hash, rotated_at, expires_at,
        revoked_at, signed_out_at, sanction_id
      from sessions
      where id = ${sessionId} and environment_id = ${environmentId}`
  }),
  ofPlayer: SqlSchema.findAll({
    Request: Owner,
    Result: Schema.Struct({ id: SessionId, createdAt: Time, lastUsedAt: Time }),
    execute: ({ environmentId, playerId }) => sql`
      select id, created_at, rotated_at as last_used_at from sessions
      where player_id = ${playerId} and environment_id = ${environmentId} order by id`
  })
})

/** Creates many at once. */
const manySessions = (sql: SqlClient.SqlClient) => ({
  createAllWithPlayers: SqlSchema.void({
    Request: NewSessionsAndPlayers,
    execute: (rows) => sql`
      with requested as (
        select * from json_to_recordset(${rows}::text::json) as r(id text, "environmentId" text,
          "displayName" text, "isGuest" boolean, "declaredAgeBand" text, "createdAt" timestamptz,
          "sessionId" text, "tokenHash" text, now timestamptz, "expiresAt" timestamptz)
      ), signed_up as (
        insert into players (id, environment_id, display_name, is_guest, declared_age_band, created_at)
        select id, "environmentId", "displayName", "isGuest", "declaredAgeBand", "createdAt"
        from requested
        returning *),
      announced as (${insertEvents(sql, "onPlayerCreated", createdPlayers(sql))})
      insert into sessions (id, environment_id, player_id, token_hash, rotated_at, expires_at,
        created_at)
      select r."sessionId", p.environment_id, p.id, r."tokenHash", r.now, r."expiresAt", r.now
      from signed_up p join requested r using (id)`
  })
})

/** Revokes and deletes sessions. */
const revocations = (sql: SqlClient.SqlClient) => ({
  // A session that a ban has revoked keeps its token, for the appeal. Else the hashes go, so that a
  // runner of the release before cannot rotate the token either.
  signOut: SqlSchema.void({
    Request: Schema.Struct({ ...SessionKey.fields, now: Time }),
    execute: ({ environmentId, now, sessionId }) => sql`
      update sessions set signed_out_at = ${now}, token_hash = '', parent_hash = null
      where id = ${sessionId} and environment_id = ${environmentId}
        and revoked_at is null and signed_out_at is null`
  }),
  endRepeats: SqlSchema.void({
    Request: Schema.Struct({ ...SessionKey.fields, tokenHash: Schema.String }),
    execute: ({ environmentId, sessionId, tokenHash }) => sql`
      update sessions set rotation_key_hash = null
      where id = ${sessionId} and environment_id = ${environmentId} and token_hash = ${tokenHash}`
  }),
  revoke: SqlSchema.void({
    Request: Schema.Struct({ ...SessionKey.fields, now: Time }),
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
    Request: SessionIds,
    Result: Schema.Struct({ id: Schema.String, revokedAt: Time }),
    execute: ({ environmentId, sessionIds }) => sql`
      select id, revoked_at from sessions where environment_id = ${environmentId}
        and id = any(${[...sessionIds]}::text[]) and revoked_at is not null`
  }),
  sweep: SqlSchema.void({
    Request: Schema.Struct({ expiredBefore: Time, guestsBefore: Time }),
    execute: ({ expiredBefore, guestsBefore }) => sql`
      delete from sessions s
      where s.expires_at < ${expiredBefore} and (s.expires_at < ${guestsBefore}
        or not exists (select from players p where p.id = s.player_id and p.is_guest))`
  })
})

const signingKeys = (sql: SqlClient.SqlClient) => ({
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

/** Stores sessions. */
export class SessionRepository extends Context.Service<SessionRepository>()(
  "sql/sessions/SessionRepository",
  {
    make: Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { create, createWithPlayer, link, lockOpenSession, rotate } = sessionStatements(sql)
      const { find, findHolder, ofPlayer } = sessionReads(sql)
      const { createAllWithPlayers } = manySessions(sql)
      const { endRepeats, revoke, revoked, revokeOthers, signOut, sweep } = revocations(sql)
      const revocationTimes = yield* batchReads((environmentId, sessionIds) =>
        Effect.map(
          orDieWithTimeout(revoked({ environmentId, sessionIds })),
          (rows): ReadonlyMap<string, typeof Time.Type> =>
            new Map(rows.map(({ id, revokedAt }) => [id, revokedAt]))
        )
      )
      const batchedCreate = yield* batchWrites<NewSessionAndPlayer, true>({
        ownerOf: ({ sessionId }) => sessionId,
        tenantOf: ({ player }) => player.environmentId,
        sizeOf: () => newRowCharacters,
        single: (request) => Effect.as(orDieWithTimeout(createWithPlayer(request)), true as const),
        batch: (requests) =>
          orDieWithTimeout(
            createAllWithPlayers(
              requests.map(({ player, ...session }) => ({ ...player, ...session }))
            ).pipe(
              Effect.as(new Map(requests.map(({ sessionId }) => [sessionId, true as const]))),
              Effect.catchIf(isRefused, () => Effect.succeed("refused" as const))
            )
          )
      })
      return {
        /** Inserts a player and its session atomically; not within a transaction. */
        createWithPlayer: (request: NewSessionAndPlayer) => Effect.asVoid(batchedCreate(request)),
        /** Inserts a player, its identity and its session atomically. */
        createWithIdentity: (request: NewSessionAndPlayer, identity: IdentityRow) =>
          dieOnTimeout(
            mapIdentityConflict(
              sql.withTransaction(Effect.andThen(createWithPlayer(request), link(identity)))
            )
          ),
        /** Adds a session to a player. None if the player does not exist or is banned. */
        create: (request: Parameters<typeof create>[0]) => orDieWithTimeout(create(request)),
        /**
         * Replaces the current token and returns the player. None if the token is not current, the
         * session has ended or the player is banned.
         */
        rotate: (request: typeof Rotation.Type) => orDieWithTimeout(rotate(request)),
        /** The player of the open session that has one of these tokens as its current one. */
        findHolder: (request: typeof Holder.Type) => orDieWithTimeout(findHolder(request)),
        /** The current token was presented, so the rotation that made it cannot be repeated. */
        endRepeats: (request: Parameters<typeof endRepeats>[0]) =>
          orDieWithTimeout(endRepeats(request)),
        find: (request: typeof SessionKey.Type) => orDieWithTimeout(find(request)),
        ofPlayer: (owner: typeof Owner.Type) => orDieWithTimeout(ofPlayer(owner)),
        /** Locks the rows of an open session and its player until the commit; false if it has ended. */
        lockOpenSession: (request: Parameters<typeof lockOpenSession>[0]) =>
          Effect.map(orDieWithTimeout(lockOpenSession(request)), Option.isSome),
        /** The time of revocation; undefined for a session that was not revoked, or is unknown. */
        revokedAt: (environmentId: EnvironmentId, sessionId: SessionId) =>
          Effect.map(revocationTimes(environmentId, [sessionId]), (found) => found.get(sessionId)),
        revoke: (request: Parameters<typeof revoke>[0]) => orDieWithTimeout(revoke(request)),
        /** Ends the refresh tokens of a session, and nothing else. */
        signOut: (request: Parameters<typeof signOut>[0]) => orDieWithTimeout(signOut(request)),
        /** Revokes all sessions of a player except `kept`. */
        revokeOthers: (request: Parameters<typeof revokeOthers>[0]) =>
          orDieWithTimeout(revokeOthers(request)),
        /** Deletes expired sessions; those of guests later, since they tell when the guest expires. */
        sweep: (before: Parameters<typeof sweep>[0]) => Effect.orDie(sweep(before))
      }
    })
  }
) {
  static readonly layer = Layer.effect(SessionRepository, this.make)
}

/** Stores the key pairs that sign access tokens. */
export class SigningKeyRepository extends Context.Service<SigningKeyRepository>()(
  "sql/sessions/SigningKeyRepository",
  {
    make: Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { insertKey, keys } = signingKeys(sql)
      return {
        /** Lists all keys, newest first. */
        all: orDieWithTimeout(keys(undefined)),
        /** Lists all keys. If there is none, one of the concurrent callers creates it. */
        allOrCreate: <E, R>(make: Effect.Effect<SigningKeyRow, E, R>) =>
          orDieWithTimeout(
            sql.withTransaction(
              Effect.gen(function* () {
                yield* sql`lock table signing_keys in share row exclusive mode`
                const found = yield* keys(undefined)
                if (found.length > 0) return found
                const created = yield* make
                yield* insertKey(created)
                return [created]
              })
            )
          )
      }
    })
  }
) {
  static readonly layer = Layer.effect(SigningKeyRepository, this.make)
}
