/**
 * How a person who has signed in at a provider becomes a player (spec section 3): the player of the
 * identity, a new one, or, to link, the player of the access token, whose session must still be open.
 * Accounts are never merged by email. A player is held while it gets in, so that nobody does by an
 * identity that was unlinked, or is linked by who was signed out, at the same moment.
 */
import { Context, DateTime, Effect, Layer, Option } from "effect"
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

/** A person, and the sealed permission that came with it. */
export interface AuthenticatedProfile {
  readonly person: ProviderProfile
  readonly grantSealed: string | null
}

const second = new IdentityAlreadyLinked({
  message: "This player has another identity of this provider."
})

/** Lets people in. */
export class IdentitySignIn extends Context.Service<
  IdentitySignIn,
  {
    /** Why a person would not get in, as far as it can be told; nothing is changed. */
    readonly precheck: (
      whose: FlowContext,
      person: ProviderProfile
    ) => Effect.Effect<SignInError | undefined>
    /** The session of the player that the person is, from now on if need be. */
    readonly signIn: (
      whose: FlowContext,
      entering: AuthenticatedProfile
    ) => Effect.Effect<
      ProviderSession,
      IdentityAlreadyLinked | PlayerBanned | PlayerNotFound | SessionRevoked
    >
  }
>()("server/features/oauth/identity-sign-in/Entrance") {
  static readonly layer = Layer.effect(
    IdentitySignIn,
    Effect.gen(function* () {
      return IdentitySignIn.of({ precheck: yield* makeForesee, signIn: yield* makeEnter })
    })
  )
}

const makeForesee = Effect.gen(function* () {
  const identities = yield* IdentityRepository
  const standings = yield* PlayerStatusCache
  return Effect.fn("Entrance.foresee")(function* (
    { environmentId, playerId, provider }: FlowContext,
    { subject }: ProviderProfile
  ) {
    const found = yield* identities.find({ environmentId, provider, subject })
    const owner = Option.map(found, (row) => row.playerId)
    const whom = playerId ?? Option.getOrUndefined(owner)
    if (whom === undefined) return undefined
    const standing = yield* standings.get(environmentId, whom)
    if (standing?.banned !== undefined) return "player_banned"
    if (playerId === null) return undefined
    if (Option.isSome(owner)) {
      return owner.value === playerId ? undefined : "identity_already_linked"
    }
    const own = yield* identities.ofPlayer({ environmentId, playerId })
    return own.some((row) => row.provider === provider) ? "identity_already_linked" : undefined
  })
})

/** Signs in the player who owns an identity, and stores what the provider says of it now. */
const makeSignInKnown = Effect.gen(function* () {
  const identities = yield* IdentityRepository
  const sessions = yield* Sessions
  const transaction = yield* makeTransaction
  return Effect.fnUntraced(function* ({ environmentId }: FlowContext, identity: NewIdentity) {
    const key = { ...identity, environmentId }
    const owner = yield* identities.find(key)
    if (Option.isNone(owner)) return Option.none()
    const { playerId } = owner.value
    yield* identities.lockPlayer({ environmentId, playerId })
    const still = yield* identities.renew(key)
    if (!Option.exists(still, (row) => row.playerId === playerId)) return Option.none()
    return Option.some(yield* sessions.signIn(environmentId, playerId))
  }, transaction)
})

const makeEnter = Effect.gen(function* () {
  const identities = yield* IdentityRepository
  const sessions = yield* Sessions
  const standings = yield* PlayerStatusCache
  const transaction = yield* makeTransaction

  const known = yield* makeSignInKnown

  const signIn = Effect.fnUntraced(function* (
    whose: FlowContext,
    identity: NewIdentity,
    displayName: string | undefined
  ) {
    const session = yield* known(whose, identity)
    if (Option.isSome(session)) return session.value
    return yield* sessions.signUp(whose.environmentId, { displayName, identity }).pipe(
      // The same person has come in by two doors at once.
      Effect.catchTag("NotLinked", () =>
        Effect.flatMap(known(whose, identity), (first) =>
          Option.isSome(first) ? Effect.succeed(first.value) : Effect.fail(new PlayerNotFound())
        )
      )
    )
  })

  const link = Effect.fnUntraced(function* (
    { environmentId, sessionId }: FlowContext,
    identity: NewIdentity,
    playerId: NonNullable<FlowContext["playerId"]>
  ) {
    yield* standings.requireNotBanned(environmentId, playerId)
    yield* sessions.lockOpenSession(environmentId, playerId, sessionId ?? "")
    const linkedAt = yield* DateTime.now
    const linked = yield* identities.link({ ...identity, environmentId, playerId, linkedAt }).pipe(
      Effect.map(Option.isSome),
      Effect.catchTag("NotLinked", () =>
        Effect.gen(function* () {
          const owner = yield* identities.find({ ...identity, environmentId })
          if (Option.isNone(owner)) return yield* second
          if (owner.value.playerId !== playerId) return yield* new IdentityAlreadyLinked()
          return Option.isSome(yield* identities.renew({ ...identity, environmentId }))
        })
      )
    )
    if (!linked) return yield* new PlayerNotFound()
    return yield* sessions.signIn(environmentId, playerId)
  }, transaction)

  return Effect.fn("Entrance.enter")(function* (
    whose: FlowContext,
    { grantSealed, person }: AuthenticatedProfile
  ) {
    const { playerId, provider } = whose
    const { name, ...told } = person
    const identity: NewIdentity = { ...told, provider, passwordHash: null, grantSealed }
    const session =
      playerId === null
        ? yield* signIn(whose, identity, displayNameOf(name))
        : yield* link(whose, identity, playerId)
    return { ...session, provider, linked: playerId !== null }
  })
})
