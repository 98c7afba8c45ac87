/**
 * Identities of players: an email address with a password, or an account at a sign-in provider. An
 * identity belongs to one player of its environment. A player has at most one identity per provider.
 */
import { Context, Data, Effect, Layer, Option, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { LastLoginMethod } from "#rpc/errors/codes"
import { EnvironmentId, PlayerId } from "#rpc/ids"
import { Method } from "#rpc/identities"
import { dieOnTimeout, violatedConstraint, orDieWithTimeout } from "./database.ts"
import { PlayerRow, playerColumns } from "./players.ts"

/** Key of an identity. `subject` is a normalized email address or the provider's user id. */
const Key = Schema.Struct({
  environmentId: EnvironmentId,
  provider: Method,
  subject: Schema.String
})

/** Fields that the provider sends at each sign-in. */
const Profile = {
  email: Schema.NullOr(Schema.String),
  emailVerified: Schema.Boolean,
  username: Schema.NullOr(Schema.String),
  /** Name and picture of the account; stored for X only, whose profile players may show. */
  name: Schema.NullOr(Schema.String),
  avatarUrl: Schema.NullOr(Schema.String),
  /** Sealed provider token. The service revokes it when it deletes the player. */
  grantSealed: Schema.NullOr(Schema.String)
}

/** An identity to insert. */
export const NewIdentity = Schema.Struct({
  provider: Method,
  subject: Schema.String,
  ...Profile,
  /** Hash of the password, for `email` only. */
  passwordHash: Schema.NullOr(Schema.String)
})
export type NewIdentity = typeof NewIdentity.Type

export const IdentityRow = Schema.Struct({
  ...NewIdentity.fields,
  environmentId: EnvironmentId,
  playerId: PlayerId,
  linkedAt: Schema.DateTimeUtcFromDate
})
export type IdentityRow = typeof IdentityRow.Type

const Addressed = Schema.Struct({
  environmentId: EnvironmentId,
  forms: Schema.Array(Schema.String)
})

const Owner = Schema.Struct({ environmentId: EnvironmentId, playerId: PlayerId })
type Owner = typeof Owner.Type

const IdentityOfPlayer = Schema.Struct({ ...Owner.fields, provider: Method })

const reads = (sql: SqlClient.SqlClient) => ({
  find: SqlSchema.findOneOption({
    Request: Key,
    Result: IdentityRow,
    execute: ({ environmentId, provider, subject }) => sql`
      select * from identities where environment_id = ${environmentId}
        and provider = ${provider} and subject = ${subject}`
  }),
  findByEmail: SqlSchema.findOneOption({
    Request: Addressed,
    Result: IdentityRow,
    execute: ({ environmentId, forms }) => sql`
        select * from identities where environment_id = ${environmentId}
          and provider = 'email' and ${sql.in("subject", forms)}
        order by array_position(${[...forms]}::text[], subject) limit 1`
  }),
  ofPlayer: SqlSchema.findAll({
    Request: Owner,
    Result: IdentityRow,
    execute: ({ environmentId, playerId }) => sql`
      select * from identities
      where environment_id = ${environmentId} and player_id = ${playerId}
      order by linked_at, provider`
  })
})

const writes = (sql: SqlClient.SqlClient) => ({
  /** Locks the player row, so that changes to its identities serialize. */
  lockPlayer: SqlSchema.findOneOption({
    Request: Owner,
    Result: PlayerRow,
    execute: ({ environmentId, playerId }) => sql`
      select ${playerColumns(sql)} from players p
      where p.environment_id = ${environmentId} and p.id = ${playerId} for update`
  }),
  insert: SqlSchema.void({
    Request: IdentityRow,
    execute: (row) => sql`insert into identities ${sql.insert(row)}`
  }),
  clearGuestFlag: SqlSchema.void({
    Request: Owner,
    execute: ({ environmentId, playerId }) => sql`
      update players set is_guest = false
      where environment_id = ${environmentId} and id = ${playerId} and is_guest`
  }),
  remove: SqlSchema.void({
    Request: IdentityOfPlayer,
    execute: ({ environmentId, playerId, provider }) => sql`
      delete from identities where environment_id = ${environmentId}
        and player_id = ${playerId} and provider = ${provider}`
  }),
  updateProfile: SqlSchema.findOneOption({
    Request: Schema.Struct({ ...Key.fields, ...Profile }),
    Result: Schema.Struct({ playerId: PlayerId }),
    execute: ({ environmentId, provider, subject, ...profile }) => sql`
      update identities set email = coalesce(${profile.email}, email),
        email_verified = case when ${profile.email}::text is null then email_verified
          else ${profile.emailVerified}::boolean end,
        username = coalesce(${profile.username}, username),
        name = coalesce(${profile.name}, name),
        avatar_url = coalesce(${profile.avatarUrl}, avatar_url),
        grant_sealed = coalesce(${profile.grantSealed}, grant_sealed)
      where environment_id = ${environmentId} and provider = ${provider}
        and subject = ${subject}
      returning player_id`
  }),
  verify: SqlSchema.findOneOption({
    Request: Schema.Struct({ ...Owner.fields, subject: Schema.String }),
    Result: Schema.Struct({ playerId: PlayerId }),
    execute: ({ environmentId, playerId, subject }) => sql`
      update identities set email_verified = true
      where environment_id = ${environmentId} and player_id = ${playerId}
        and provider = 'email' and subject = ${subject}
      returning player_id`
  }),
  setPassword: SqlSchema.findOneOption({
    Request: Schema.Struct({ ...Owner.fields, passwordHash: Schema.String }),
    Result: Schema.Struct({ playerId: PlayerId }),
    execute: ({ environmentId, passwordHash, playerId }) => sql`
      update identities set password_hash = ${passwordHash}
      where environment_id = ${environmentId} and player_id = ${playerId} and provider = 'email'
      returning player_id`
  }),
  replacePassword: SqlSchema.findOneOption({
    Request: Schema.Struct({ ...Owner.fields, from: Schema.String, to: Schema.String }),
    Result: Schema.Struct({ playerId: PlayerId }),
    execute: ({ environmentId, from, playerId, to }) => sql`
      update identities set password_hash = ${to}
      where environment_id = ${environmentId} and player_id = ${playerId} and provider = 'email'
        and password_hash = ${from}
      returning player_id`
  })
})

/**
 * Statements by which the owner of a mailbox removes identities from a player that somebody else
 * made with the address.
 */
const evictions = (sql: SqlClient.SqlClient) => {
  const removeProviders = SqlSchema.void({
    Request: Owner,
    execute: ({ environmentId, playerId }) => sql`
      delete from identities where environment_id = ${environmentId}
        and player_id = ${playerId} and provider <> 'email'`
  })
  const removeAddress = SqlSchema.findOneOption({
    Request: Schema.Struct({ ...Owner.fields, subject: Schema.String }),
    Result: Schema.Struct({ playerId: PlayerId }),
    execute: ({ environmentId, playerId, subject }) => sql`
      delete from identities where environment_id = ${environmentId}
        and player_id = ${playerId} and provider = 'email' and subject = ${subject}
      returning player_id`
  })
  const setGuestFlag = SqlSchema.void({
    Request: Owner,
    execute: ({ environmentId, playerId }) => sql`
      update players set is_guest = true
      where environment_id = ${environmentId} and id = ${playerId}
        and not exists (select from identities i where i.player_id = players.id)`
  })
  return {
    /** Removes all identities of a player but the email address. */
    removeProviders: (owner: Owner) => orDieWithTimeout(removeProviders(owner)),
    /**
     * Removes an address with its password from a player, who becomes a guest if it was the last
     * identity. False if the address does not belong to the player. Run it in a transaction.
     */
    disown: Effect.fnUntraced(function* (owned: Parameters<typeof removeAddress>[0]) {
      const removed = yield* orDieWithTimeout(removeAddress(owned))
      if (Option.isNone(removed)) return false
      yield* orDieWithTimeout(setGuestFlag(owned))
      return true
    })
  }
}

/**
 * Error for an identity that belongs to another player (`subject-taken`), or for a player who
 * already has an identity of this provider (`provider-linked`).
 */
export class IdentityConflict extends Data.TaggedError("IdentityConflict")<{
  readonly reason: "subject-taken" | "provider-linked"
}> {}

const reasons: ReadonlyMap<string, "subject-taken" | "provider-linked"> = new Map([
  ["identities_subject", "subject-taken"],
  ["identities_one_a_provider", "provider-linked"]
])

/** Maps a violated unique constraint of `identities` to an error. Any other failure is a defect. */
export const mapIdentityConflict = <A, E, R>(
  statement: Effect.Effect<A, E, R>
): Effect.Effect<A, IdentityConflict, R> =>
  Effect.catch(statement, (failure) => {
    const reason = reasons.get(violatedConstraint(failure) ?? "")
    return reason === undefined
      ? Effect.die(failure)
      : Effect.fail(new IdentityConflict({ reason }))
  })

/** Stores identities. */
export class IdentityRepository extends Context.Service<IdentityRepository>()(
  "sql/identities/IdentityRepository",
  {
    make: Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { find, findByEmail, ofPlayer } = reads(sql)
      const {
        insert,
        lockPlayer,
        remove,
        updateProfile,
        replacePassword,
        setPassword,
        clearGuestFlag,
        verify
      } = writes(sql)
      return {
        find: (key: typeof Key.Type) => orDieWithTimeout(find(key)),
        /** Finds the account with an email address in one of these forms; the first form wins. */
        findByEmail: (address: typeof Addressed.Type) => orDieWithTimeout(findByEmail(address)),
        /** Lists all identities of a player, oldest first. */
        ofPlayer: (owner: Owner) => orDieWithTimeout(ofPlayer(owner)),
        /** Locks the player row until the commit. None if the player does not exist. */
        lockPlayer: (owner: Owner) => orDieWithTimeout(lockPlayer(owner)),
        /** Adds an identity; the player is no guest afterwards. None if the player does not exist. */
        link: (row: IdentityRow) =>
          dieOnTimeout(
            mapIdentityConflict(
              sql.withTransaction(
                Effect.gen(function* () {
                  if (Option.isNone(yield* lockPlayer(row))) return Option.none<PlayerRow>()
                  yield* insert(row)
                  yield* clearGuestFlag(row)
                  return yield* lockPlayer(row)
                })
              )
            )
          ),
        /** Removes an identity. None if the player does not have it. */
        unlink: (owned: typeof IdentityOfPlayer.Type) =>
          dieOnTimeout(
            sql
              .withTransaction(
                Effect.gen(function* () {
                  yield* lockPlayer(owned)
                  // Read under the lock: a concurrent unlink may have removed an identity.
                  const methods = (yield* ofPlayer(owned)).map(({ provider }) => provider)
                  if (!methods.includes(owned.provider)) return Option.none<PlayerRow>()
                  if (methods.length === 1) return yield* new LastLoginMethod()
                  yield* remove(owned)
                  return yield* lockPlayer(owned)
                })
              )
              .pipe(Effect.catchTag(["SqlError", "SchemaError"], Effect.die))
          ),
        ...evictions(sql),
        /** Updates the profile and returns the owner. Null fields keep their stored value. */
        updateProfile: (identity: Parameters<typeof updateProfile>[0]) =>
          orDieWithTimeout(updateProfile(identity)),
        /** Marks the address as verified. False if it no longer belongs to the player. */
        verify: (owned: Parameters<typeof verify>[0]) =>
          Effect.map(orDieWithTimeout(verify(owned)), Option.isSome),
        /** Sets the password. False if the player has no email identity. */
        setPassword: (owned: Parameters<typeof setPassword>[0]) =>
          Effect.map(orDieWithTimeout(setPassword(owned)), Option.isSome),
        /** Replaces the hash `from` by `to` and locks the row until the commit. False if `from` is stale. */
        replacePassword: (owned: Parameters<typeof replacePassword>[0]) =>
          Effect.map(orDieWithTimeout(replacePassword(owned)), Option.isSome)
      }
    })
  }
) {
  static readonly layer = Layer.effect(IdentityRepository, this.make)
}
