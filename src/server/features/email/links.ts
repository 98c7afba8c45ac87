/**
 * The links of mails (spec sections 3 and 5, rule 8; decisions 3.2.5): asked for, and used once. A
 * link proves that somebody reads the mailbox of one address, so it is good for that address alone.
 */
import { Context, Effect, Layer, Option } from "effect"
import type { EnvironmentCaller, PlayerCaller } from "#rpc/auth"
import { normalizeEmail } from "#rpc/email"
import {
  InvalidToken,
  type MailUnavailable,
  NotFound,
  type PlayerBanned,
  type RateLimited,
  type Unavailable
} from "#rpc/errors/codes"
import type { EnvironmentId, PlayerId } from "#rpc/ids"
import type { Player } from "#rpc/players"
import { IdentityRepository } from "#sql/identities"
import type { MailPurpose } from "#sql/mail"
import { PlayerRepository } from "#sql/players"
import { makeTransaction } from "#server/platform/database"
import { Mailer } from "#server/platform/mail/outbox"
import { Passwords } from "#server/platform/passwords"
import { SingleUseCodes } from "#server/platform/single-use-codes"
import { playerView } from "../players/view.ts"
import { PlayerStatusCache } from "../players/status-cache.ts"
import { Sessions } from "../sessions/service.ts"
import type { LinkTarget } from "./service.ts"

export class EmailLinks extends Context.Service<
  EmailLinks,
  {
    /** Sends the verification link again; nothing when the address is confirmed. */
    readonly resend: (
      player: PlayerCaller,
      link: LinkTarget
    ) => Effect.Effect<void, MailUnavailable | NotFound | RateLimited>
    /**
     * Sends a reset link, if anybody has the address. Here nobody looks whether somebody has: the same
     * happens for every address, and nothing for one that has got too many or for who keeps no pace.
     */
    readonly forgot: (
      environment: EnvironmentCaller,
      email: string,
      link: LinkTarget,
      pace: Effect.Effect<void, RateLimited>
    ) => Effect.Effect<void, MailUnavailable>
    /** Confirms the address that a token was sent to. */
    readonly verify: (
      environment: EnvironmentCaller,
      token: string
    ) => Effect.Effect<Player, InvalidToken | PlayerBanned>
    /** Sets a password, confirms the address and ends every session. */
    readonly reset: (
      environment: EnvironmentCaller,
      token: string,
      password: string
    ) => Effect.Effect<void, InvalidToken | PlayerBanned | Unavailable>
  }
>()("server/features/email/links/EmailLinks") {
  static readonly layer = Layer.effect(
    EmailLinks,
    Effect.gen(function* () {
      return EmailLinks.of({ ...(yield* makeRequests), ...(yield* makeUses) })
    })
  )
}

const makeRequests = Effect.gen(function* () {
  const identities = yield* IdentityRepository
  const mails = yield* Mailer

  const resend: EmailLinks["Service"]["resend"] = Effect.fn("EmailLinks.resend")(function* (
    { environmentId, playerId },
    link
  ) {
    yield* mails.available
    const all = yield* identities.ofPlayer({ environmentId, playerId })
    const own = all.find(({ provider }) => provider === "email")
    if (own === undefined) return yield* noEmail
    if (own.emailVerified) return
    const { subject: to } = own
    yield* mails.limitRecipient(environmentId, to)
    yield* mails.enqueue({ environmentId, purpose: "verify", playerId, to, ...link })
  })

  const forgot: EmailLinks["Service"]["forgot"] = Effect.fn("EmailLinks.forgot")(function* (
    { environmentId },
    email,
    link,
    pace
  ) {
    yield* mails.available
    const to = normalizeEmail(email)
    const permit = Effect.andThen(pace, mails.limitRecipient(environmentId, to))
    if (!(yield* Effect.isSuccess(permit))) {
      return yield* Effect.logInfo("No reset link was sent: too many were asked for")
    }
    yield* mails.enqueue({ environmentId, purpose: "reset", playerId: null, to, ...link })
  })

  return { forgot, resend }
})

const makeUses = Effect.gen(function* () {
  const codes = yield* SingleUseCodes
  const identities = yield* IdentityRepository
  const passwords = yield* Passwords
  const players = yield* PlayerRepository
  const sessions = yield* Sessions
  const standings = yield* PlayerStatusCache
  const transaction = yield* makeTransaction

  /** Whose link it is, who may use it; it is not used. */
  const look = Effect.fnUntraced(function* (
    environmentId: EnvironmentId,
    purpose: MailPurpose,
    token: string
  ) {
    const found = yield* codes.peek(environmentId, purpose, token)
    if (Option.isNone(found)) return yield* invalid
    const { playerId } = found.value
    yield* standings.requireNotBanned(environmentId, playerId)
    return playerId
  })

  /** Uses a link of a player up: the player's address is confirmed, if it still is the player's. */
  const use = Effect.fnUntraced(function* (
    environmentId: EnvironmentId,
    playerId: PlayerId,
    purpose: MailPurpose,
    token: string
  ) {
    yield* identities.lockPlayer({ environmentId, playerId })
    const spent = yield* codes.spend(environmentId, purpose, token)
    if (Option.isNone(spent)) return yield* invalid
    const { data: subject } = spent.value
    const isOwn = yield* identities.verify({ environmentId, playerId, subject })
    if (!isOwn) return yield* invalid
  })

  const verify: EmailLinks["Service"]["verify"] = Effect.fn("EmailLinks.verify")(function* (
    { environmentId },
    token
  ) {
    const playerId = yield* look(environmentId, "verify", token)
    yield* transaction(use(environmentId, playerId, "verify", token))
    const found = yield* players.find(environmentId, playerId)
    return Option.isSome(found) ? playerView(found.value) : yield* invalid
  })

  const reset: EmailLinks["Service"]["reset"] = Effect.fn("EmailLinks.reset")(function* (
    { environmentId },
    token,
    password
  ) {
    // Nobody hashes for a link that does not work.
    const playerId = yield* look(environmentId, "reset", token)
    const passwordHash = yield* passwords.hash(password)
    yield* transaction(
      Effect.gen(function* () {
        yield* use(environmentId, playerId, "reset", token)
        yield* identities.setPassword({ environmentId, playerId, passwordHash })
        yield* codes.revoke(environmentId, playerId, "reset")
        yield* sessions.revokeAll(environmentId, playerId)
      })
    )
  })

  return { reset, verify }
})

const noEmail = Effect.fail(new NotFound({ message: "This player has no email." }))
const invalid = Effect.fail(
  new InvalidToken({ message: "This link was used, has expired or never was." })
)
