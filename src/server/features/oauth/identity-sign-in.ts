/**
 * Signs in the owner of a provider identity, creates a player for a new identity, or links the identity
 * to a signed-in player. The service never merges accounts by email. The transaction locks the player
 * row, so a concurrent unlink or sign-out cannot leave a session behind.
 */
import { Context, Data, DateTime, Effect, Layer, Option } from "effect"
import {
  IdentityAlreadyLinked,
  type PlayerBanned,
  PlayerNotFound,
  type SessionRevoked
} from "#rpc/errors/codes"
import type { ProviderSession, SignInError } from "#rpc/oauth/sign-in"
import { IdentityRepository, type NewIdentity } from "#sql/identities"
import { makeTransaction } from "#server/platform/database"
import { PlayerStatusCache } from "../players/status-cache.ts"
import { Sessions } from "../sessions/service.ts"
import type { FlowContext } from "./flow-store.ts"
import { displayNameOf, type ProviderProfile } from "./profiles.ts"

/** A verified profile, with the sealed provider token that came with it. */
export interface AuthenticatedProfile {
  readonly profile: ProviderProfile
  readonly grantSealed: string | null
}

const providerAlreadyLinked = new IdentityAlreadyLinked({
  message: "This player has another identity of this provider. Unlink that one first."
})

/** Signs in with a verified provider profile. */
export class IdentitySignIn extends Context.Service<
  IdentitySignIn,
  {
    /** Predicts the error of `signIn` without a change, as far as possible. */
    readonly precheck: (
      context: FlowContext,
      profile: ProviderProfile
    ) => Effect.Effect<SignInError | undefined>
    /** Signs in, signs up or links, and returns the session. */
    readonly signIn: (
      context: FlowContext,
      authenticated: AuthenticatedProfile
    ) => Effect.Effect<
      ProviderSession,
      IdentityAlreadyLinked | PlayerBanned | PlayerNotFound | SessionRevoked
    >
  }
>()("server/features/oauth/identity-sign-in/IdentitySignIn") {
  static readonly layer = Layer.effect(
    IdentitySignIn,
    Effect.gen(function* () {
      return IdentitySignIn.of({ precheck: yield* makePrecheck, signIn: yield* makeSignIn })
    })
  )
}

const makePrecheck = Effect.gen(function* () {
  const identities = yield* IdentityRepository
  const statuses = yield* PlayerStatusCache
  return Effect.fn("IdentitySignIn.precheck")(function* (
    { environmentId, playerId, provider }: FlowContext,
    { subject }: ProviderProfile
  ) {
    const found = yield* identities.find({ environmentId, provider, subject })
    const owner = Option.map(found, (row) => row.playerId)
    const signingIn = playerId ?? Option.getOrUndefined(owner)
    if (signingIn === undefined) return undefined
    const status = yield* statuses.get(environmentId, signingIn)
    if (status?.banned !== undefined) return "player_banned"
    if (playerId === null) return undefined
    if (Option.isSome(owner)) {
      return owner.value === playerId ? undefined : "identity_already_linked"
    }
    const own = yield* identities.ofPlayer({ environmentId, playerId })
    return own.some((row) => row.provider === provider) ? "identity_already_linked" : undefined
  })
})

/** The identity has no owner, or has lost it meanwhile. */
class NoOwner extends Data.TaggedError("NoOwner")<{}> {}

/**
 * Signs in the owner of an identity and updates its stored profile; none if the identity has no owner.
 * Without one it rolls back, within a transaction to its start: the lock of the former owner would
 * otherwise wait for those who create the next one, and they for it.
 */
const makeSignInOwner = Effect.gen(function* () {
  const identities = yield* IdentityRepository
  const sessions = yield* Sessions
  const transaction = yield* makeTransaction
  const signIn = Effect.fnUntraced(function* (
    { environmentId }: FlowContext,
    identity: NewIdentity
  ) {
    const key = { ...identity, environmentId }
    const owner = yield* identities.find(key)
    if (Option.isNone(owner)) return yield* new NoOwner()
    const { playerId } = owner.value
    yield* identities.lockPlayer({ environmentId, playerId })
    const updated = yield* identities.updateProfile(key)
    if (!Option.exists(updated, (row) => row.playerId === playerId)) return yield* new NoOwner()
    return Option.some(yield* sessions.signIn(environmentId, playerId))
  }, transaction)
  return (context: FlowContext, identity: NewIdentity) =>
    Effect.catchTag(signIn(context, identity), "NoOwner", () => Effect.succeedNone)
})

const makeSignInOrSignUp = Effect.gen(function* () {
  const sessions = yield* Sessions
  const signInOwner = yield* makeSignInOwner
  return Effect.fnUntraced(function* (
    context: FlowContext,
    identity: NewIdentity,
    displayName: string | undefined
  ) {
    const session = yield* signInOwner(context, identity)
    if (Option.isSome(session)) return session.value
    return yield* sessions.signUp(context.environmentId, { displayName, identity }).pipe(
      // A concurrent first sign-in with the same identity has created the player.
      Effect.catchTag("IdentityConflict", () =>
        Effect.flatMap(signInOwner(context, identity), (existing) =>
          Option.isSome(existing)
            ? Effect.succeed(existing.value)
            : Effect.fail(new PlayerNotFound())
        )
      )
    )
  })
})

const makeLink = Effect.gen(function* () {
  const identities = yield* IdentityRepository
  const sessions = yield* Sessions
  const statuses = yield* PlayerStatusCache
  const transaction = yield* makeTransaction
  return Effect.fnUntraced(function* (
    { environmentId, sessionId }: FlowContext,
    identity: NewIdentity,
    playerId: NonNullable<FlowContext["playerId"]>
  ) {
    yield* statuses.requireNotBanned(environmentId, playerId)
    yield* sessions.lockOpenSession(environmentId, playerId, sessionId ?? "")
    const linkedAt = yield* DateTime.now
    const linked = yield* identities.link({ ...identity, environmentId, playerId, linkedAt }).pipe(
      Effect.map(Option.isSome),
      Effect.catchTag("IdentityConflict", () =>
        Effect.gen(function* () {
          const owner = yield* identities.find({ ...identity, environmentId })
          if (Option.isNone(owner)) return yield* providerAlreadyLinked
          if (owner.value.playerId !== playerId) return yield* new IdentityAlreadyLinked()
          return Option.isSome(yield* identities.updateProfile({ ...identity, environmentId }))
        })
      )
    )
    if (!linked) return yield* new PlayerNotFound()
    return yield* sessions.signIn(environmentId, playerId)
  }, transaction)
})

const makeSignIn = Effect.gen(function* () {
  const link = yield* makeLink
  const signInOrSignUp = yield* makeSignInOrSignUp
  return Effect.fn("IdentitySignIn.signIn")(function* (
    context: FlowContext,
    { grantSealed, profile }: AuthenticatedProfile
  ) {
    const { playerId, provider } = context
    const { name, ...fields } = profile
    const identity: NewIdentity = {
      ...fields,
      name: provider === "x" ? (displayNameOf(name) ?? null) : null,
      provider,
      passwordHash: null,
      grantSealed
    }
    const session =
      playerId === null
        ? yield* signInOrSignUp(context, identity, displayNameOf(name))
        : yield* link(context, identity, playerId)
    return { ...session, provider, linked: playerId !== null }
  })
})
