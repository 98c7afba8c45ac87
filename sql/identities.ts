/**
 * How players sign in (spec sections 2.1 and 3): an address with a password, or a person at a provider.
 * An identity belongs to one player of its environment, and a player has at most one of a provider.
 */
import { Context, Data, Effect, Layer, Option, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { LastLoginMethod } from "#rpc/errors/codes"
import { EnvironmentId, PlayerId } from "#rpc/ids"
import { Method } from "#rpc/identities"
import { dieOnTimeout, violatedConstraint, orDieWithTimeout } from "./database.ts"
import { PlayerRow, playerColumns } from "./players.ts"

/** The key of an identity: `subject` is an address in lower case, or the provider's id of a person. */
const Key = Schema.Struct({
  environmentId: EnvironmentId,
  provider: Method,
  subject: Schema.String
})

/** What a provider tells of a person at each sign-in. */
const Told = {
  email: Schema.NullOr(Schema.String),
  emailVerified: Schema.Boolean,
  username: Schema.NullOr(Schema.String),
  /** What has to be given back to the provider when the player is deleted, sealed. */
  grantSealed: Schema.NullOr(Schema.String)
}

/** A way to sign in, as it is made. */
export const NewIdentity = Schema.Struct({
  provider: Method,
  subject: Schema.String,
  ...Told,
  /** Of `email`, and only of it. */
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

const Owner = Schema.Struct({ environmentId: EnvironmentId, playerId: PlayerId })
type Owner = typeof Owner.Type

const Owned = Schema.Struct({ ...Owner.fields, provider: Method })

const reads = (sql: SqlClient.SqlClient) => ({
  find: SqlSchema.findOneOption({
    Request: Key,
    Result: IdentityRow,
    execute: ({ environmentId, provider, subject }) => sql`
      select * from identities where environment_id = ${environmentId}
        and provider = ${provider} and subject = ${subject}`
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
  /** The player, locked: what else is decided of its identities waits. */
  lock: SqlSchema.findOneOption({
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
  settle: SqlSchema.void({
    Request: Owner,
    execute: ({ environmentId, playerId }) => sql`
      update players set is_guest = false
      where environment_id = ${environmentId} and id = ${playerId} and is_guest`
  }),
  remove: SqlSchema.void({
    Request: Owned,
    execute: ({ environmentId, playerId, provider }) => sql`
      delete from identities where environment_id = ${environmentId}
        and player_id = ${playerId} and provider = ${provider}`
  }),
  renew: SqlSchema.findOneOption({
    Request: Schema.Struct({ ...Key.fields, ...Told }),
    Result: Schema.Struct({ playerId: PlayerId }),
    execute: ({ email, emailVerified, environmentId, grantSealed, provider, subject, username }) =>
      sql`
        update identities set email = coalesce(${email}, email),
          email_verified = case when ${email}::text is null then email_verified
            else ${emailVerified}::boolean end,
          username = coalesce(${username}, username),
          grant_sealed = coalesce(${grantSealed}, grant_sealed)
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

/** An identity stays unlinked: it is another player's (`taken`), or the player has one of its provider. */
export class IdentityConflict extends Data.TaggedError("NotLinked")<{
  readonly reason: "taken" | "second"
}> {}

const reasons: ReadonlyMap<string, "taken" | "second"> = new Map([
  ["identities_subject", "taken"],
  ["identities_one_a_provider", "second"]
])

/** Runs a statement that links; any failure but a broken rule of `identities` is a defect. */
export const mapIdentityConflict = <A, E, R>(
  statement: Effect.Effect<A, E, R>
): Effect.Effect<A, IdentityConflict, R> =>
  Effect.catch(statement, (failure) => {
    const reason = reasons.get(violatedConstraint(failure) ?? "")
    return reason === undefined
      ? Effect.die(failure)
      : Effect.fail(new IdentityConflict({ reason }))
  })

/** Rows in and out of `identities`. */
export class IdentityRepository extends Context.Service<IdentityRepository>()(
  "sql/identities/IdentityRows",
  {
    make: Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { find, ofPlayer } = reads(sql)
      const {
        insert,
        lock,
        remove,
        renew: updateProfile,
        replacePassword,
        setPassword,
        settle,
        verify
      } = writes(sql)
      return {
        find: (key: typeof Key.Type) => orDieWithTimeout(find(key)),
        /** All of a player, oldest first. */
        ofPlayer: (owner: Owner) => orDieWithTimeout(ofPlayer(owner)),
        /** Holds the player's row until the transaction ends; none when there is no such player. */
        lockPlayer: (owner: Owner) => orDieWithTimeout(lock(owner)),
        /** The player with one identity more, no guest any longer; none when there is no such player. */
        link: (row: IdentityRow) =>
          dieOnTimeout(
            mapIdentityConflict(
              sql.withTransaction(
                Effect.gen(function* () {
                  if (Option.isNone(yield* lock(row))) return Option.none<PlayerRow>()
                  yield* insert(row)
                  yield* settle(row)
                  return yield* lock(row)
                })
              )
            )
          ),
        /** The player with one identity fewer; none when it has not got it. */
        unlink: (owned: typeof Owned.Type) =>
          dieOnTimeout(
            sql
              .withTransaction(
                Effect.gen(function* () {
                  yield* lock(owned)
                  // Not as the statement sees them that has waited: what it waited for may be gone.
                  const methods = (yield* ofPlayer(owned)).map(({ provider }) => provider)
                  if (!methods.includes(owned.provider)) return Option.none<PlayerRow>()
                  if (methods.length === 1) return yield* new LastLoginMethod()
                  yield* remove(owned)
                  return yield* lock(owned)
                })
              )
              .pipe(Effect.catchTag(["SqlError", "SchemaError"], Effect.die))
          ),
        /** Whose it is, if anybody's, with what the provider tells now; what it leaves out stays. */
        renew: (identity: Parameters<typeof updateProfile>[0]) =>
          orDieWithTimeout(updateProfile(identity)),
        /** Whether the player (still) has this address. */
        verify: (owned: Parameters<typeof verify>[0]) =>
          Effect.map(orDieWithTimeout(verify(owned)), Option.isSome),
        /** Whether the player (still) has a password. */
        setPassword: (owned: Parameters<typeof setPassword>[0]) =>
          Effect.map(orDieWithTimeout(setPassword(owned)), Option.isSome),
        /** Whether the password is still `from`; then it is `to`, and stays until the transaction ends. */
        replacePassword: (owned: Parameters<typeof replacePassword>[0]) =>
          Effect.map(orDieWithTimeout(replacePassword(owned)), Option.isSome)
      }
    })
  }
) {
  static readonly layer = Layer.effect(IdentityRepository, this.make)
}
