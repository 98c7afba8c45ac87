/**
 * Transactional outbox for mails. A request for a mail is a row, written in the caller's transaction and
 * sent after its commit. The caller does not wait, and a crash loses no mail: each process sends its
 * own mails at once. It polls for mails of other processes when they are due, when the list of runners
 * changes, and every few minutes. A process claims a mail before it sends it.
 *
 * The sender creates the code of a link just before it sends the mail. So the outbox never holds a
 * working link, and a request for a reset link takes the same time whether or not the account exists.
 * For the same reason the sender takes the recipient's permit for a reset mail.
 */
import { Clock, Context, DateTime, Effect, Layer, Option, Queue, Schema } from "effect"
import { SecureRandom } from "effect/crypto"
import { SqlClient } from "effect/sql"
import { MailUnavailable, type RateLimited } from "#rpc/errors/codes"
import { type EnvironmentId, newId, type PlayerId } from "#rpc/ids"
import { secondsPerHour } from "#rpc/units"
import { IdentityRepository } from "#sql/identities"
import { type ClaimedMail, type MailPurpose, MailRepository } from "#sql/mail"
import { emailForms } from "../email-forms.ts"
import { sweepHourly } from "../database.ts"
import { Invalidation } from "../invalidation.ts"
import { Secrets, sha256 } from "../secrets.ts"
import { Settings } from "../settings/settings.ts"
import { SingleUseCodes } from "../single-use-codes.ts"
import { Throttles } from "../throttles.ts"
import { type LinkPurpose, renderMail, linkSeconds } from "./templates.ts"
import { type Mail, MailDeliveryError, mailLimits, makeSmtp, type Smtp } from "./transport.ts"

export const mailThrottles = {
  /** Mails to one address; both limits apply. */
  mailsPerMinute: { burst: 1, seconds: 60 },
  mailsPerHour: { burst: 5, seconds: secondsPerHour },
  /** Mails to one address from all projects of one developer. */
  mailsPerDeveloper: { burst: 20, seconds: secondsPerHour }
} as const

/**
 * Target of a link: the caller's page, or the service's own page, which calls the API with the
 * environment's publishable key.
 */
const Target = Schema.Struct({ redirectUrl: Schema.NullOr(Schema.String), key: Schema.String })

/** A request for a mail with a link. */
export interface MailRequest extends Readonly<typeof Target.Type> {
  readonly environmentId: EnvironmentId
  readonly purpose: MailPurpose
  /** Player of the mail; null if the caller does not know whether the address has an account. */
  readonly playerId: PlayerId | null
  readonly to: string
}

const Payload = Schema.fromJsonString(Schema.Struct({ to: Schema.String, ...Target.fields }))

/** A mail that is stored instead of sent, as `/dev/mail` shows it. */
const Stored = Schema.fromJsonString(
  Schema.Struct({
    to: Schema.String,
    subject: Schema.String,
    text: Schema.String,
    html: Schema.String
  })
)

export interface StoredMail extends Readonly<typeof Stored.Type> {
  readonly createdAt: DateTime.Utc
}

const sealPurpose = "mail"

/** Path of the page that shows the stored mails of development. */
export const devMailPath = "/dev/mail"

/** Accepts mails and sends them in the background. */
export class Mailer extends Context.Service<
  Mailer,
  {
    /** Fails if the service cannot send mails. */
    readonly available: Effect.Effect<void, MailUnavailable>
    /**
     * Counts a verification mail against the limits of its recipient. Call it after `enqueue` in one
     * transaction, so that only a mail that is written takes a permit.
     */
    readonly limitRecipient: (
      environmentId: EnvironmentId,
      to: string
    ) => Effect.Effect<void, RateLimited>
    /** Stores a mail to send. Within a transaction, the service sends it after the commit. */
    readonly enqueue: (order: MailRequest) => Effect.Effect<void, MailUnavailable>
    /**
     * Sends a mail to a developer who waits for it. Without a mail server, development logs its text.
     */
    readonly sendNow: (mail: Mail) => Effect.Effect<void, MailUnavailable>
    /** Mails stored because there is no mail server, newest first. */
    readonly stored: Effect.Effect<ReadonlyArray<StoredMail>>
  }
>()("server/platform/mail/outbox/Mails") {
  static readonly layer = Layer.effect(
    Mailer,
    Effect.gen(function* () {
      const repository = yield* MailRepository
      const sql = yield* SqlClient.SqlClient
      const secrets = yield* Secrets
      const invalidation = yield* Invalidation
      const limitRecipient = yield* makeLimitRecipient
      const { mail, production } = yield* Settings
      const random = yield* SecureRandom.SecureRandom
      const wake = yield* Queue.sliding<void>(1)
      const wakeUp = Effect.asVoid(Queue.offer(wake, undefined))
      // A runner that has died may have left mails.
      yield* invalidation.subscribe(({ kind }) => (kind === "runners" ? wakeUp : Effect.void))
      const isAvailable = mail.smtpUrl !== undefined || !production
      const smtp = mail.smtpUrl === undefined ? undefined : yield* makeSmtp(mail.smtpUrl, mail.from)
      if (isAvailable) yield* Effect.forkScoped(yield* makeSender(wake, smtp))
      yield* sweepHourly("Mails", repository.sweep)
      return Mailer.of({
        available: isAvailable ? Effect.void : Effect.fail(new MailUnavailable()),
        limitRecipient: (environmentId, to) => limitRecipient("verify", environmentId, to),
        enqueue: Effect.fn("Mailer.enqueue")(
          function* ({ environmentId, playerId, purpose, ...payload }) {
            const createdAt = yield* DateTime.now
            const text = yield* Effect.orDie(Schema.encodeEffect(Payload)(payload))
            const stored = yield* repository.insert({
              id: yield* newId.mail,
              environmentId,
              playerId,
              purpose,
              sealed: yield* secrets.seal(text, sealPurpose),
              createdAt,
              expiresAt: DateTime.add(createdAt, { seconds: linkSeconds[purpose] }),
              limit: mailLimits.waitingMax
            })
            if (!stored) {
              yield* Effect.logWarning("Refused a mail: the outbox is full")
              return yield* new MailUnavailable()
            }
            yield* sql.afterCommit(wakeUp)
          },
          Effect.provideService(SecureRandom.SecureRandom, random)
        ),
        sendNow: (content) =>
          smtp === undefined
            ? Effect.logInfo(`Without SMTP_URL a mail is not sent:\n${content.text}`)
            : smtp(content).pipe(
                Effect.tapError(({ reason }) =>
                  Effect.logWarning("Failed to send a mail to a developer", reason)
                ),
                Effect.mapError(() => new MailUnavailable())
              ),
        stored: Effect.flatMap(
          repository.stored(mailLimits.storedMax),
          Effect.forEach(({ createdAt, sealed }) =>
            Effect.map(openAs(secrets, Stored, sealed), (mail) => ({ ...mail, createdAt }))
          )
        )
      })
    })
  )
}

const openAs = <A>(secrets: Secrets["Service"], codec: Schema.Codec<A, string>, sealed: string) =>
  Effect.orDie(Effect.flatMap(secrets.open(sealed, sealPurpose), Schema.decodeEffect(codec)))

/**
 * Counts a mail against its recipient's limits. Each purpose has its own, so none blocks another. All
 * projects of a developer share one, so many environments are not many mails to one address.
 */
const makeLimitRecipient = Effect.gen(function* () {
  const repository = yield* MailRepository
  const throttles = yield* Throttles
  return Effect.fnUntraced(function* (
    purpose: MailPurpose,
    environmentId: EnvironmentId,
    to: string
  ) {
    const recipient = `${purpose}:${sha256(`${environmentId}/${to}`)}`
    yield* throttles.take(mailThrottles.mailsPerMinute, `mail-minute:${recipient}`)
    yield* throttles.take(mailThrottles.mailsPerHour, `mail-hour:${recipient}`)
    const ownerId = yield* repository.ownerOf(environmentId)
    const ofOwner = `${purpose}:${sha256(`${ownerId}/${to}`)}`
    yield* throttles.take(mailThrottles.mailsPerDeveloper, `mail-developer:${ofOwner}`)
  })
})

/** The URL of a link; the token is in the fragment, which no server receives. */
const makeLinkOf = Effect.map(
  Settings,
  ({ baseUrl }) =>
    (purpose: LinkPurpose, { key, redirectUrl }: typeof Target.Type, token: string): string =>
      redirectUrl === null || purpose === "disown"
        ? `${baseUrl}/-/${purpose}#svc_${purpose}=${token}&svc_key=${key}`
        : `${redirectUrl}#svc_${purpose}=${token}`
)

/**
 * Renders a mail with new codes. Returns undefined if the address has no account, or another
 * player's, or if a reset mail exceeds the limits of its recipient.
 */
const makeCompose = Effect.gen(function* () {
  const identities = yield* IdentityRepository
  const secrets = yield* Secrets
  const codes = yield* SingleUseCodes
  const limitRecipient = yield* makeLimitRecipient
  const linkOf = yield* makeLinkOf

  /**
   * Consumes the permit of a reset mail at the first attempt, since only now the account is known.
   */
  const isPermitted = Effect.fnUntraced(function* (claimed: ClaimedMail, to: string) {
    const { attempts, environmentId, purpose } = claimed
    if (purpose !== "reset" || attempts > 1) return true
    if (yield* Effect.isSuccess(limitRecipient(purpose, environmentId, to))) return true
    yield* Effect.logInfo("Skipped a reset mail: its recipient's limit is exceeded")
    return false
  })

  return Effect.fnUntraced(function* (claimed: ClaimedMail) {
    const { environmentId, id, projectName, purpose, sealed } = claimed
    const { to: email, ...target } = yield* openAs(secrets, Payload, sealed)
    const found = yield* identities.findByEmail({ environmentId, forms: emailForms(email) })
    if (Option.isNone(found)) return undefined
    const { emailVerified, playerId, subject: to } = found.value
    const isOver = emailVerified || playerId !== claimed.playerId
    if (purpose === "verify" && isOver) return undefined
    if (!(yield* isPermitted(claimed, to))) return undefined
    const issueLink = Effect.fnUntraced(function* (purpose: LinkPurpose) {
      const seconds = linkSeconds[purpose]
      const token = yield* codes.issue({ environmentId, playerId, purpose, seconds, data: to })
      return linkOf(purpose, target, token)
    })
    const link = yield* issueLink(purpose)
    const disownLink = purpose === "verify" ? yield* issueLink("disown") : undefined
    const content = renderMail(purpose, projectName, link, disownLink)
    return { playerId, mail: { ...content, id, to, fromName: projectName } }
  })
})

/** Stores mails instead of sending them; logs that once. */
const makeStore = Effect.gen(function* () {
  const repository = yield* MailRepository
  const secrets = yield* Secrets
  const { baseUrl } = yield* Settings
  let hasLogged = false
  return Effect.fnUntraced(function* (playerId: PlayerId, { html, id, subject, text, to }: Mail) {
    const encoded = yield* Effect.orDie(Schema.encodeEffect(Stored)({ to, subject, text, html }))
    const sealed = yield* secrets.seal(encoded, sealPurpose)
    yield* repository.store({ id, playerId, sealed }, mailLimits.storedMax)
    if (hasLogged) return
    hasLogged = true
    yield* Effect.logInfo(
      `Without SMTP_URL mails are not sent; read them at ${baseUrl}${devMailPath}`
    )
  })
})

const retryAfter = (attempts: number): number =>
  Math.min(mailLimits.retrySeconds * 2 ** (attempts - 1), mailLimits.retrySecondsMax)

/** Attempts to send a mail once, and schedules a retry if that fails. */
const makeDeliver = Effect.fnUntraced(function* (smtp: Smtp | undefined) {
  const repository = yield* MailRepository
  const compose = yield* makeCompose
  const store = yield* makeStore

  const attempt = Effect.fnUntraced(function* (claimed: ClaimedMail) {
    const composed = yield* compose(claimed)
    if (composed === undefined) return yield* repository.remove(claimed.id)
    if (smtp === undefined) return yield* store(composed.playerId, composed.mail)
    yield* smtp(composed.mail)
    yield* repository.remove(claimed.id)
  })

  const failed = Effect.fnUntraced(function* (claimed: ClaimedMail, failure: MailDeliveryError) {
    const { attempts, expiresAt, id } = claimed
    const dueAt = DateTime.add(yield* DateTime.now, { seconds: retryAfter(attempts) })
    const isLast =
      failure.final ||
      attempts >= mailLimits.attemptsMax ||
      DateTime.isGreaterThanOrEqualTo(dueAt, expiresAt)
    const next = isLast ? "giving up" : "will retry"
    yield* Effect.logWarning(`Failed to send a mail; ${next}`, { id, reason: failure.reason })
    yield* isLast ? repository.remove(id) : repository.postpone({ id, dueAt })
  })

  return (claimed: ClaimedMail): Effect.Effect<void> =>
    attempt(claimed).pipe(
      // The log has the cause of a defect; the mail is retried as if the server had refused it.
      Effect.catchDefect((defect) =>
        Effect.andThen(
          Effect.logError("Failed to send a mail", defect),
          Effect.fail(new MailDeliveryError({ reason: "an internal error", final: false }))
        )
      ),
      Effect.catchTag("MailDeliveryError", (failure) => failed(claimed, failure)),
      // Then another attempt follows when the claim expires.
      Effect.catchDefect((defect) => Effect.logWarning("Failed to reschedule a mail", defect)),
      // A process that stops releases its claim at once.
      Effect.onInterrupt(() =>
        Effect.flatMap(DateTime.now, (dueAt) => repository.postpone({ id: claimed.id, dueAt }))
      )
    )
})

const pollMillis = mailLimits.pollSeconds * 1000
const retryMillis = mailLimits.retrySeconds * 1000
/** A mail that is due may be claimed by another process: do not poll in a tight loop. */
const shortestMillis = 100

/**
 * Sends due mails, several at a time, so that a slow server delays only its own mail. `wake` signals that
 * a mail was stored or that an attempt has ended.
 */
const makeSender = Effect.fnUntraced(function* (wake: Queue.Queue<void>, smtp: Smtp | undefined) {
  const repository = yield* MailRepository
  const deliver = yield* makeDeliver(smtp)
  const inFlight = new Set<ClaimedMail>()
  const delivered = (claimed: ClaimedMail) =>
    Effect.ensuring(
      deliver(claimed),
      Effect.suspend(() => {
        inFlight.delete(claimed)
        return Queue.offer(wake, undefined)
      })
    )
  const round = Effect.gen(function* () {
    const now = yield* DateTime.now
    const until = DateTime.add(now, { seconds: mailLimits.claimSeconds })
    const limit = mailLimits.concurrency - inFlight.size
    const busy = Array.from(inFlight, ({ environmentId }) => environmentId)
    const claimed = yield* repository.claim({ now, until, limit, busy })
    for (const mail of claimed) inFlight.add(mail)
    yield* Effect.forEach(claimed, (mail) => Effect.forkChild(delivered(mail)), { discard: true })
  })
  /** Time until the next unclaimed mail is due. */
  const idleMillis = Effect.gen(function* () {
    if (inFlight.size >= mailLimits.concurrency) return pollMillis
    const next = yield* repository.nextDue
    if (next === null) return pollMillis
    const millis = next.epochMilliseconds - (yield* Clock.currentTimeMillis)
    return Math.min(Math.max(millis, shortestMillis), pollMillis)
  })
  return Effect.andThen(round, idleMillis).pipe(
    Effect.catchDefect((defect) =>
      Effect.as(Effect.logWarning("Failed to poll the mail outbox", defect), retryMillis)
    ),
    Effect.flatMap((millis) => Effect.timeoutOption(Queue.take(wake), millis)),
    Effect.forever
  )
})
