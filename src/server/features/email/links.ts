/**
 * Links in mails: verification of an address, its removal from a stranger's player, and reset of a
 * password. A link works once. It proves control of one mailbox, so a change of the player's address
 * invalidates it.
 *
 * Anybody may sign up with an address, but the owner of the mailbox wins. A reset that is the first
 * proof of the address removes the player's earlier providers, sessions and codes.
 */
import { Context, Effect, Layer, Option, Schema } from "effect"
import type { EnvironmentCaller, PlayerCaller } from "#rpc/auth"
import { isGivenEmail, typedEmail } from "#rpc/email"
import { InvalidToken, NotFound, type RateLimited } from "#rpc/errors/codes"
import { type EnvironmentId, PlayerId } from "#rpc/ids"
import { IdentityRepository } from "#sql/identities"
import type { MailPurpose } from "#sql/mail"
import { PlayerRepository } from "#sql/players"
import { makeTransaction } from "#server/platform/database"
import { Mailer } from "#server/platform/mail/outbox"
import { Passwords } from "#server/platform/passwords"
import { SingleUseCodes } from "#server/platform/single-use-codes"
import { type Keep, type SpendingRequest, SpentResponses } from "#server/platform/spent-responses"
import { ProviderGrants } from "../oauth/grants.ts"
import { playerView } from "../players/view.ts"
import { PlayerStatusCache } from "../players/status-cache.ts"
import { Sessions } from "../sessions/service.ts"
import type { LinkTarget } from "./service.ts"

/** Sends mail links and redeems them. */
export class EmailLinks extends Context.Service<EmailLinks>()(
  "server/features/email/links/EmailLinks",
  {
    make: Effect.gen(function* () {
      return {
        ...(yield* makeSenders),
        verify: yield* makeVerify,
        reset: yield* makeReset,
        disown: yield* makeDisown
      }
    })
  }
) {
  static readonly layer = Layer.effect(EmailLinks, this.make)
}

const makeSenders = Effect.gen(function* () {
  const identities = yield* IdentityRepository
  const mailer = yield* Mailer
  const transaction = yield* makeTransaction

  /** Sends another verification link; does nothing if the address is verified. */
  const resend = Effect.fn("EmailLinks.resend")(function* (
    { environmentId, playerId }: PlayerCaller,
    link: LinkTarget
  ) {
    yield* mailer.available
    const all = yield* identities.ofPlayer({ environmentId, playerId })
    const identity = all.find(({ provider }) => provider === "email")
    if (identity === undefined) return yield* noEmail
    if (identity.emailVerified) return
    const { subject: to } = identity
    const enqueue = mailer.enqueue({ environmentId, purpose: "verify", playerId, to, ...link })
    yield* transaction(Effect.andThen(enqueue, mailer.limitRecipient(environmentId, to)))
  })

  /**
   * Enqueues a reset link. The mail worker looks up the account later, so that the response reveals
   * nothing: every address costs the same work. Skips the mail silently beyond a limit.
   */
  const forgot = Effect.fn("EmailLinks.forgot")(function* (
    { environmentId }: EnvironmentCaller,
    email: string,
    link: LinkTarget,
    throttle: Effect.Effect<void, RateLimited>
  ) {
    yield* mailer.available
    if (!isGivenEmail(email)) return
    const to = typedEmail(email)
    if (!(yield* Effect.isSuccess(throttle))) {
      return yield* Effect.logInfo("Skipped a reset link: the rate limit is exceeded")
    }
    yield* mailer.enqueue({ environmentId, purpose: "reset", playerId: null, to, ...link })
  })

  return { forgot, resend }
})

/**
 * Removes the providers and codes that another person may have added before the mailbox owner claimed
 * the player.
 */
const makeEvictOthers = Effect.gen(function* () {
  const codes = yield* SingleUseCodes
  const grants = yield* ProviderGrants
  const identities = yield* IdentityRepository
  return Effect.fnUntraced(function* (owner: {
    readonly environmentId: EnvironmentId
    readonly playerId: PlayerId
  }) {
    const { environmentId, playerId } = owner
    const collected = yield* grants.collect(environmentId, playerId)
    yield* identities.removeProviders(owner)
    yield* codes.revokeAll(environmentId, playerId)
    return collected
  })
})

/** Reads and spends links that prove an address. */
const makeProofs = Effect.gen(function* () {
  const codes = yield* SingleUseCodes
  const identities = yield* IdentityRepository
  const statuses = yield* PlayerStatusCache

  /** Finds the player of a link without spending the link. Refuses banned players. */
  const peek = Effect.fnUntraced(function* (
    environmentId: EnvironmentId,
    purpose: MailPurpose,
    token: string
  ) {
    const found = yield* codes.peek(environmentId, purpose, token)
    if (Option.isNone(found)) return yield* invalid
    const { playerId } = found.value
    yield* statuses.requireNotBanned(environmentId, playerId)
    return playerId
  })

  /**
   * Spends a link and verifies the address if the player still has it. Returns whether this is the
   * first proof of the address.
   */
  const spend = Effect.fnUntraced(function* (
    environmentId: EnvironmentId,
    playerId: PlayerId,
    purpose: MailPurpose,
    token: string
  ) {
    yield* identities.lockPlayer({ environmentId, playerId })
    const spent = yield* codes.spend(environmentId, purpose, token)
    if (Option.isNone(spent)) return yield* invalid
    const { data: subject } = spent.value
    const all = yield* identities.ofPlayer({ environmentId, playerId })
    const isFirst = all.some((row) => row.provider === "email" && !row.emailVerified)
    const isCurrent = yield* identities.verify({ environmentId, playerId, subject })
    return isCurrent ? isFirst : yield* invalid
  })

  return { peek, spend }
})

/** What a repeated request with a link needs: the player of the link. */
const Kept = Schema.Struct({ playerId: PlayerId })
type KeepPlayer = Keep<typeof Kept.Type>

/** Verifies the address that received the token. Like each of these, it can be repeated by its key. */
const makeVerify = Effect.gen(function* () {
  const responses = yield* SpentResponses
  const players = yield* PlayerRepository
  const statuses = yield* PlayerStatusCache
  const transaction = yield* makeTransaction
  const { peek, spend } = yield* makeProofs

  const viewOf = Effect.fnUntraced(function* (environmentId: EnvironmentId, playerId: PlayerId) {
    const found = yield* players.find(environmentId, playerId)
    return Option.isSome(found) ? playerView(found.value) : yield* invalid
  })

  const verifyOnce = Effect.fnUntraced(function* (
    environmentId: EnvironmentId,
    token: string,
    keep: KeepPlayer
  ) {
    const playerId = yield* peek(environmentId, "verify", token)
    const verified = spend(environmentId, playerId, "verify", token)
    yield* transaction(Effect.andThen(verified, keep({ playerId }, playerId)))
    return yield* viewOf(environmentId, playerId)
  })

  return Effect.fn("EmailLinks.verify")(function* (
    { environmentId }: EnvironmentCaller,
    token: string,
    key: string | undefined
  ) {
    const request = spendingOf(environmentId, "email/verify", token, key)
    return yield* responses.once(request, Kept, {
      spend: (keep) => verifyOnce(environmentId, token, keep),
      repeat: ({ playerId }) =>
        Effect.andThen(
          statuses.requireNotBanned(environmentId, playerId),
          viewOf(environmentId, playerId)
        )
    })
  })
})

/**
 * Sets the password, verifies the address and revokes all sessions. If the address was not verified
 * before, it also removes the player's other identities and all its codes.
 */
const makeReset = Effect.gen(function* () {
  const responses = yield* SpentResponses
  const codes = yield* SingleUseCodes
  const evictOthers = yield* makeEvictOthers
  const grants = yield* ProviderGrants
  const identities = yield* IdentityRepository
  const passwords = yield* Passwords
  const sessions = yield* Sessions
  const statuses = yield* PlayerStatusCache
  const transaction = yield* makeTransaction
  const { peek, spend } = yield* makeProofs

  const resetOnce = Effect.fnUntraced(function* (
    environmentId: EnvironmentId,
    token: string,
    password: string,
    keep: KeepPlayer
  ) {
    // Checked first, so that an invalid link costs no password hash.
    const playerId = yield* peek(environmentId, "reset", token)
    const passwordHash = yield* passwords.hash(password)
    const collected = yield* transaction(
      Effect.gen(function* () {
        const isFirst = yield* spend(environmentId, playerId, "reset", token)
        yield* identities.setPassword({ environmentId, playerId, passwordHash })
        yield* codes.revoke(environmentId, playerId, "reset")
        yield* sessions.revokeAll(environmentId, playerId)
        const evicted = isFirst ? yield* evictOthers({ environmentId, playerId }) : []
        yield* keep({ playerId }, playerId)
        return evicted
      })
    )
    yield* grants.revoke(collected)
  })

  return Effect.fn("EmailLinks.reset")(function* (
    { environmentId }: EnvironmentCaller,
    token: string,
    password: string,
    key: string | undefined
  ) {
    const request = spendingOf(environmentId, "password/reset", token, key, password)
    yield* responses.once(request, Kept, {
      spend: (keep) => resetOnce(environmentId, token, password, keep),
      repeat: ({ playerId }) => statuses.requireNotBanned(environmentId, playerId)
    })
  })
})

/**
 * Removes the address and its password, verified or not, from the player of the token. Everything else
 * stays.
 */
const makeDisown = Effect.gen(function* () {
  const responses = yield* SpentResponses
  const codes = yield* SingleUseCodes
  const identities = yield* IdentityRepository
  const transaction = yield* makeTransaction
  const disownOnce = Effect.fnUntraced(function* (
    environmentId: EnvironmentId,
    token: string,
    keep: KeepPlayer
  ) {
    const found = yield* codes.peek(environmentId, "disown", token)
    if (Option.isNone(found)) return yield* invalid
    const { data: subject, playerId } = found.value
    const owner = { environmentId, playerId }
    yield* transaction(
      Effect.gen(function* () {
        yield* identities.lockPlayer(owner)
        const spent = yield* codes.spend(environmentId, "disown", token)
        if (Option.isNone(spent)) return yield* invalid
        if (!(yield* identities.disown({ ...owner, subject }))) return yield* invalid
        for (const purpose of ["verify", "reset", "disown"] as const) {
          yield* codes.revoke(environmentId, playerId, purpose)
        }
        yield* keep({ playerId }, playerId)
      })
    )
  })
  return Effect.fn("EmailLinks.disown")(function* (
    { environmentId }: EnvironmentCaller,
    token: string,
    key: string | undefined
  ) {
    yield* responses.once(spendingOf(environmentId, "email/disown", token, key), Kept, {
      spend: (keep) => disownOnce(environmentId, token, keep),
      repeat: () => Effect.void
    })
  })
})

const spendingOf = (
  tenant: EnvironmentId,
  path: string,
  secret: string,
  key: string | undefined,
  body = ""
): SpendingRequest => ({ tenant, path: `POST /v1/auth/${path}`, secret, body, key })

const noEmail = Effect.fail(
  new NotFound({ message: "This player has no email address. Link one first." })
)
const invalid = Effect.fail(
  new InvalidToken({ message: "This link is invalid, expired or already used. Request a new one." })
)
