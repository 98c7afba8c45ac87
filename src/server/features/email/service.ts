/**
 * Accounts with an email address and a password: sign-up, login, linking and password changes.
 *
 * The service hashes passwords outside of transactions, because that is slow. Each transaction then
 * checks that the verified hash is still current, so an old password is useless once a reset commits.
 * Every transaction locks the player row first, which prevents deadlocks.
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
  NotFound
} from "#rpc/errors/codes"
import type { EnvironmentId, PlayerId } from "#rpc/ids"
import { IdentityRepository, type NewIdentity } from "#sql/identities"
import { PlayerRepository } from "#sql/players"
import { makeTransaction } from "#server/platform/database"
import { emailForms } from "#server/platform/email-forms"
import { type MailRequest, Mailer } from "#server/platform/mail/outbox"
import { Passwords } from "#server/platform/passwords"
import { SingleUseCodes } from "#server/platform/single-use-codes"
import { playerView } from "../players/view.ts"
import { Sessions } from "../sessions/service.ts"

/** Target of a mail link: the redirect URL and the publishable key of the caller. */
export type LinkTarget = Pick<MailRequest, "key" | "redirectUrl">

interface Credentials {
  readonly email: string
  readonly password: string
}

/** Signs up, logs in and changes accounts with an email address. */
export class EmailAccounts extends Context.Service<EmailAccounts>()(
  "server/features/email/service/EmailAccounts",
  {
    make: Effect.gen(function* () {
      return { ...(yield* makeLinking), ...(yield* makePasswordChecks) }
    })
  }
) {
  static readonly layer = Layer.effect(EmailAccounts, this.make)
}

const newIdentity = (address: string, passwordHash: string): NewIdentity => ({
  provider: "email",
  subject: address,
  email: address,
  emailVerified: false,
  username: null,
  name: null,
  avatarUrl: null,
  passwordHash,
  grantSealed: null
})

/**
 * Enqueues a verification mail; none without mail delivery or beyond the limits of the address. Call it
 * after storing the address, so that a refused sign-up takes no permit of the address.
 */
const makeSendVerification = Effect.gen(function* () {
  const mailer = yield* Mailer
  const transaction = yield* makeTransaction
  return (environmentId: EnvironmentId, playerId: PlayerId, to: string, link: LinkTarget) =>
    mailer.available.pipe(
      Effect.andThen(mailer.enqueue({ environmentId, purpose: "verify", playerId, to, ...link })),
      Effect.andThen(mailer.limitRecipient(environmentId, to)),
      transaction,
      Effect.ignore
    )
})

/** Adds an email identity to a new or an existing player. */
const makeLinking = Effect.gen(function* () {
  const identities = yield* IdentityRepository
  const passwords = yield* Passwords
  const players = yield* PlayerRepository
  const sessions = yield* Sessions
  const transaction = yield* makeTransaction
  const sendVerification = yield* makeSendVerification

  /** Creates a player and its session. Enqueues a verification mail, if mail is available. */
  const signUp = Effect.fn("EmailAccounts.signUp")(function* (
    { environmentId }: EnvironmentCaller,
    { displayName, email, password }: Credentials & { readonly displayName?: string },
    link: LinkTarget
  ) {
    const to = normalizeEmail(email)
    const identity = newIdentity(to, yield* passwords.hash(password))
    const owner = yield* identities.findByEmail({ environmentId, forms: emailForms(email) })
    if (Option.isSome(owner)) return yield* new EmailTaken()
    return yield* sessions.signUp(environmentId, { displayName, identity }).pipe(
      Effect.tap(({ player }) => sendVerification(environmentId, player.id, to, link)),
      transaction,
      Effect.catchTag("IdentityConflict", () => Effect.fail(new EmailTaken()))
    )
  })

  /** Fails with the reason if an address is taken. The address may be the player's own. */
  const requireFree = Effect.fnUntraced(function* (player: PlayerCaller, email: string) {
    const { environmentId, playerId } = player
    const owner = yield* identities.findByEmail({ environmentId, forms: emailForms(email) })
    if (Option.isNone(owner)) return
    const isOwn = owner.value.playerId === playerId
    return yield* isOwn ? new EmailAlreadyLinked() : new IdentityAlreadyLinked()
  })

  /** Adds an email identity to a player. A guest keeps its id and data and becomes permanent. */
  const link = Effect.fn("EmailAccounts.link")(function* (
    player: PlayerCaller,
    { email, password }: Credentials,
    target: LinkTarget
  ) {
    const { environmentId, playerId, sessionId = "" } = player
    const found = yield* players.find(environmentId, playerId)
    if (Option.isNone(found)) return yield* new NotFound()
    if (found.value.methods.includes("email")) return yield* new EmailAlreadyLinked()
    const to = normalizeEmail(email)
    const identity = newIdentity(to, yield* passwords.hash(password))
    const linkedAt = yield* DateTime.now
    const linked = yield* sessions.lockOpenSession(environmentId, playerId, sessionId).pipe(
      Effect.andThen(requireFree(player, email)),
      Effect.andThen(identities.link({ ...identity, environmentId, playerId, linkedAt })),
      Effect.tap(() => sendVerification(environmentId, playerId, to, target)),
      transaction,
      Effect.catchTag("IdentityConflict", ({ reason }) =>
        reason === "provider-linked"
          ? Effect.fail(new EmailAlreadyLinked())
          : Effect.andThen(requireFree(player, email), Effect.fail(new IdentityAlreadyLinked()))
      )
    )
    return Option.isSome(linked) ? playerView(linked.value) : yield* new NotFound()
  })

  return { link, signUp }
})

/** Login and password change. */
const makePasswordChecks = Effect.gen(function* () {
  const identities = yield* IdentityRepository
  const passwords = yield* Passwords
  const sessions = yield* Sessions
  const codes = yield* SingleUseCodes
  const transaction = yield* makeTransaction

  /**
   * Logs in. Fails with one error after the same work for an unknown address and for a wrong password.
   * Reports a ban only after the password check.
   */
  const login = Effect.fn("EmailAccounts.login")(function* (
    { environmentId }: EnvironmentCaller,
    { email, password }: Credentials
  ) {
    const found = Option.getOrUndefined(
      yield* identities.findByEmail({ environmentId, forms: emailForms(email) })
    )
    const from = found?.passwordHash ?? null
    const isCorrect = yield* passwords.verify(password, from)
    if (!isCorrect || found === undefined || from === null) return yield* new InvalidCredentials()
    const { playerId } = found
    const to = passwords.isOutdated(from) ? yield* passwords.hash(password) : from
    return yield* Effect.gen(function* () {
      yield* identities.lockPlayer({ environmentId, playerId })
      const isReplaced = yield* identities.replacePassword({ environmentId, playerId, from, to })
      return isReplaced
        ? yield* sessions.signIn(environmentId, playerId)
        : yield* invalidCredentials
    }).pipe(
      transaction,
      Effect.catchTag("player_not_found", () => invalidCredentials)
    )
  })

  /** Changes the password, revokes all other sessions and voids reset links. */
  const changePassword = Effect.fn("EmailAccounts.changePassword")(function* (
    { environmentId, playerId }: PlayerCaller,
    currentPassword: string,
    newPassword: string,
    refreshToken: string
  ) {
    const device = yield* sessions.authenticate(environmentId, refreshToken)
    if (device.playerId !== playerId) return yield* new InvalidRefreshToken()
    const all = yield* identities.ofPlayer({ environmentId, playerId })
    const from = all.find(({ provider }) => provider === "email")?.passwordHash ?? null
    const isCorrect = yield* passwords.verify(currentPassword, from)
    if (!isCorrect || from === null) return yield* wrongPassword
    const to = yield* passwords.hash(newPassword)
    yield* transaction(
      Effect.gen(function* () {
        yield* identities.lockPlayer({ environmentId, playerId })
        const isReplaced = yield* identities.replacePassword({ environmentId, playerId, from, to })
        if (!isReplaced) return yield* wrongPassword
        yield* codes.revoke(environmentId, playerId, "reset")
        yield* sessions.revokeAll(environmentId, playerId, device.sessionId)
      })
    )
  })

  return { changePassword, login }
})

const invalidCredentials = Effect.fail(new InvalidCredentials())
const wrongPassword = Effect.fail(new InvalidCredentials({ message: "The password is wrong." }))
