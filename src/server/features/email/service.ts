/**
 * Sign-in with an email and a password (spec sections 3 and 5; decisions 3.2.4, 3.2.5, 3.2.9).
 *
 * A password is checked outside of any transaction, since that takes long; a session opens, and a
 * password changes, only if the one that was checked is still in force. So nobody who knew the old one
 * comes in after a reset, not even at the same moment. Whatever changes how a player signs in, or signs
 * it in, holds the player first, so that no two wait for one another.
 */
import { Context, DateTime, Effect, Layer, Option } from "effect"
import type { EnvironmentCaller, PlayerCaller } from "#rpc/auth"
import { normalizeEmail } from "#rpc/email"
import {
  EmailAlreadyLinked,
  EmailTaken,
  IdentityAlreadyLinked,
  InvalidCredentials,
  InvalidRefreshToken,
  NotFound,
  type PlayerBanned,
  type SessionRevoked,
  type Unavailable
} from "#rpc/errors/codes"
import type { EnvironmentId, PlayerId } from "#rpc/ids"
import type { Player } from "#rpc/players"
import type { Session } from "#rpc/sessions"
import { IdentityRepository, type NewIdentity } from "#sql/identities"
import { PlayerRepository } from "#sql/players"
import { makeTransaction } from "#server/platform/database"
import { type MailRequest, Mailer } from "#server/platform/mail/outbox"
import { Passwords } from "#server/platform/passwords"
import { SingleUseCodes } from "#server/platform/single-use-codes"
import { playerView } from "../players/view.ts"
import { Sessions } from "../sessions/service.ts"

/** Where the link of a verification leads. */
export type LinkTarget = Pick<MailRequest, "key" | "redirectUrl">

/** An address with a password, to be. */
interface Credentials {
  readonly email: string
  readonly password: string
}

export class EmailAccounts extends Context.Service<
  EmailAccounts,
  {
    /** A new player, signed in; the mail that asks for confirmation leaves, if one can. */
    readonly signUp: (
      environment: EnvironmentCaller,
      account: Credentials & { readonly displayName?: string },
      link: LinkTarget
    ) => Effect.Effect<Session, EmailTaken | Unavailable>
    /** One error for whatever is wrong, after the same time; of a ban hears who knows the password. */
    readonly login: (
      environment: EnvironmentCaller,
      account: Credentials
    ) => Effect.Effect<Session, InvalidCredentials | PlayerBanned | Unavailable>
    /** Gives a player an address; a guest becomes permanent, with its id and all its data. */
    readonly link: (
      player: PlayerCaller,
      account: Credentials,
      link: LinkTarget
    ) => Effect.Effect<
      Player,
      IdentityAlreadyLinked | EmailAlreadyLinked | NotFound | SessionRevoked | Unavailable
    >
    /** Another password; every other device is signed out, and links to reset the old one end. */
    readonly changePassword: (
      player: PlayerCaller,
      currentPassword: string,
      newPassword: string,
      refreshToken: string
    ) => Effect.Effect<
      void,
      InvalidCredentials | InvalidRefreshToken | SessionRevoked | Unavailable
    >
  }
>()("server/features/email/service/EmailAccounts") {
  static readonly layer = Layer.effect(
    EmailAccounts,
    Effect.gen(function* () {
      return EmailAccounts.of({
        ...(yield* makeBeginnings),
        ...(yield* makeChecks)
      })
    })
  )
}

const newIdentity = (address: string, passwordHash: string): NewIdentity => ({
  provider: "email",
  subject: address,
  email: address,
  emailVerified: false,
  username: null,
  passwordHash,
  grantSealed: null
})

/** The order of a verification mail; nothing where none can be sent, or too many were to this address. */
const makeVerification = Effect.map(Mailer, (mails) =>
  Effect.fnUntraced(function* (environmentId: EnvironmentId, to: string, link: LinkTarget) {
    const permit = Effect.andThen(mails.available, mails.limitRecipient(environmentId, to))
    const permitted = yield* Effect.isSuccess(permit)
    return (playerId: PlayerId) =>
      permitted
        ? Effect.ignore(mails.enqueue({ environmentId, purpose: "verify", playerId, to, ...link }))
        : Effect.void
  })
)

/** How an address comes to a player. */
const makeBeginnings = Effect.gen(function* () {
  const identities = yield* IdentityRepository
  const passwords = yield* Passwords
  const players = yield* PlayerRepository
  const sessions = yield* Sessions
  const transaction = yield* makeTransaction
  const verification = yield* makeVerification

  const signUp: EmailAccounts["Service"]["signUp"] = Effect.fn("EmailAccounts.signUp")(function* (
    { environmentId },
    { displayName, email, password },
    link
  ) {
    const to = normalizeEmail(email)
    const identity = newIdentity(to, yield* passwords.hash(password))
    const verify = yield* verification(environmentId, to, link)
    return yield* sessions.signUp(environmentId, { displayName, identity }).pipe(
      Effect.tap(({ player }) => verify(player.id)),
      transaction,
      Effect.catchTag("NotLinked", () => Effect.fail(new EmailTaken()))
    )
  })

  /** Why an address was not linked: it may be the player's own. */
  const refused = Effect.fnUntraced(function* (player: PlayerCaller, subject: string) {
    const { environmentId, playerId } = player
    const owner = yield* identities.find({ environmentId, provider: "email", subject })
    const own = Option.exists(owner, (row) => row.playerId === playerId)
    return yield* own ? new EmailAlreadyLinked() : new IdentityAlreadyLinked()
  })

  const link: EmailAccounts["Service"]["link"] = Effect.fn("EmailAccounts.link")(function* (
    player,
    { email, password },
    target
  ) {
    const { environmentId, playerId, sessionId = "" } = player
    const found = yield* players.find(environmentId, playerId)
    if (Option.isNone(found)) return yield* new NotFound()
    if (found.value.methods.includes("email")) return yield* new EmailAlreadyLinked()
    const to = normalizeEmail(email)
    const identity = newIdentity(to, yield* passwords.hash(password))
    const verify = yield* verification(environmentId, to, target)
    const linkedAt = yield* DateTime.now
    const linked = yield* sessions.lockOpenSession(environmentId, playerId, sessionId).pipe(
      Effect.andThen(identities.link({ ...identity, environmentId, playerId, linkedAt })),
      Effect.tap(() => verify(playerId)),
      transaction,
      Effect.catchTag("NotLinked", ({ reason }) =>
        reason === "second" ? Effect.fail(new EmailAlreadyLinked()) : refused(player, to)
      )
    )
    return Option.isSome(linked) ? playerView(linked.value) : yield* new NotFound()
  })

  return { link, signUp }
})

/** What a password opens. */
const makeChecks = Effect.gen(function* () {
  const identities = yield* IdentityRepository
  const passwords = yield* Passwords
  const sessions = yield* Sessions
  const codes = yield* SingleUseCodes
  const transaction = yield* makeTransaction

  const login: EmailAccounts["Service"]["login"] = Effect.fn("EmailAccounts.login")(function* (
    { environmentId },
    { email, password }
  ) {
    const key = { environmentId, provider: "email", subject: normalizeEmail(email) } as const
    const found = Option.getOrUndefined(yield* identities.find(key))
    const from = found?.passwordHash ?? null
    const right = yield* passwords.verify(password, from)
    if (!right || found === undefined || from === null) return yield* new InvalidCredentials()
    const { playerId } = found
    const to = passwords.isOutdated(from) ? yield* passwords.hash(password) : from
    return yield* Effect.gen(function* () {
      yield* identities.lockPlayer({ environmentId, playerId })
      const holds = yield* identities.replacePassword({ environmentId, playerId, from, to })
      return holds ? yield* sessions.signIn(environmentId, playerId) : yield* wrong
    }).pipe(
      transaction,
      Effect.catchTag("player_not_found", () => wrong)
    )
  })

  const changePassword: EmailAccounts["Service"]["changePassword"] = Effect.fn(
    "EmailAccounts.changePassword"
  )(function* ({ environmentId, playerId }, currentPassword, newPassword, refreshToken) {
    const device = yield* sessions.authenticate(environmentId, refreshToken)
    if (device.playerId !== playerId) return yield* new InvalidRefreshToken()
    const all = yield* identities.ofPlayer({ environmentId, playerId })
    const from = all.find(({ provider }) => provider === "email")?.passwordHash ?? null
    const right = yield* passwords.verify(currentPassword, from)
    if (!right || from === null) return yield* wrongPassword
    const to = yield* passwords.hash(newPassword)
    yield* transaction(
      Effect.gen(function* () {
        yield* identities.lockPlayer({ environmentId, playerId })
        const holds = yield* identities.replacePassword({ environmentId, playerId, from, to })
        if (!holds) return yield* wrongPassword
        yield* codes.revoke(environmentId, playerId, "reset")
        yield* sessions.revokeAll(environmentId, playerId, device.sessionId)
      })
    )
  })

  return { changePassword, login }
})

const wrong = Effect.fail(new InvalidCredentials())
const wrongPassword = Effect.fail(new InvalidCredentials({ message: "The password is wrong." }))
