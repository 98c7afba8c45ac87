/**
 * The outbox of mails (decisions 3.2.5): an order is a row, written in the transaction of what it is
 * about, and it leaves when that is committed. Who has ordered does not wait, and a crash loses no
 * mail: each process sends what it has stored at once, and what others have left when it is due, when
 * the list of runners changes, and every few minutes. A mail that a process has claimed is left alone
 * by the others until the claim ends.
 *
 * The code in a link is made when the mail is about to leave, by the sender: the outbox never holds a
 * link that works, and to order a reset link is the same work whether or not anybody has the address.
 */
import { Clock, Context, DateTime, Effect, Layer, Option, Queue, Schema } from "effect"
import { SecureRandom } from "effect/crypto"
import { SqlClient } from "effect/sql"
import { MailUnavailable, type RateLimited } from "#rpc/errors/codes"
import { type EnvironmentId, newId, type PlayerId } from "#rpc/ids"
import { mail as limits, throttles as paces } from "#rpc/limits"
import { IdentityRepository } from "#sql/identities"
import { type ClaimedMail, type MailPurpose, MailRepository } from "#sql/mail"
import { sweepHourly } from "../database.ts"
import { Invalidation } from "../invalidation.ts"
import { Secrets, sha256 } from "../secrets.ts"
import { Settings } from "../settings/settings.ts"
import { SingleUseCodes } from "../single-use-codes.ts"
import { Throttles } from "../throttles.ts"
import { renderMail, linkSeconds } from "./templates.ts"
import { type Mail, makeSmtp, MailDeliveryError } from "./transport.ts"

/**
 * Where a link leads: to the caller's page, or to the service's own, which needs the environment's
 * publishable key to ask the API as any page does.
 */
const Target = Schema.Struct({ redirectUrl: Schema.NullOr(Schema.String), key: Schema.String })

/** A mail with a link, to be. */
export interface MailRequest extends Readonly<typeof Target.Type> {
  readonly environmentId: EnvironmentId
  readonly purpose: MailPurpose
  /** Null where it is not known whether anybody has the address. */
  readonly playerId: PlayerId | null
  readonly to: string
}

const Ordered = Schema.fromJsonString(Schema.Struct({ to: Schema.String, ...Target.fields }))

/** A mail that stays here, as `/dev/mail` shows it. */
const Kept = Schema.fromJsonString(
  Schema.Struct({
    to: Schema.String,
    subject: Schema.String,
    text: Schema.String,
    html: Schema.String
  })
)

export interface StoredMail extends Readonly<typeof Kept.Type> {
  readonly createdAt: DateTime.Utc
}

const sealedFor = "mail"

/** The page that shows the mails of development. */
export const devMailPath = "/dev/mail"

/** Takes orders for mails. */
export class Mailer extends Context.Service<
  Mailer,
  {
    /** Refuses where no mail can be sent. */
    readonly available: Effect.Effect<void, MailUnavailable>
    /** Takes one of the mails that an address may get. */
    readonly limitRecipient: (
      environmentId: EnvironmentId,
      to: string
    ) => Effect.Effect<void, RateLimited>
    /** Stores a mail; it leaves at once, from within a transaction at its commit. */
    readonly enqueue: (order: MailRequest) => Effect.Effect<void, MailUnavailable>
    /** Mails that were not sent for want of a server, newest first. */
    readonly stored: Effect.Effect<ReadonlyArray<StoredMail>>
  }
>()("server/platform/mail/outbox/Mails") {
  static readonly layer = Layer.effect(
    Mailer,
    Effect.gen(function* () {
      const rows = yield* MailRepository
      const sql = yield* SqlClient.SqlClient
      const secrets = yield* Secrets
      const invalidation = yield* Invalidation
      const throttles = yield* Throttles
      const { mail, production } = yield* Settings
      const random = yield* SecureRandom.SecureRandom
      const wake = yield* Queue.sliding<void>(1)
      const wakeUp = Effect.asVoid(Queue.offer(wake, undefined))
      // A runner that has gone may have left mails.
      yield* invalidation.subscribe(({ kind }) => (kind === "runners" ? wakeUp : Effect.void))
      const isAvailable = mail.smtpUrl !== undefined || !production
      if (isAvailable) yield* Effect.forkScoped(yield* makeSender(wake))
      yield* sweepHourly("Mails", rows.sweep)
      return Mailer.of({
        available: isAvailable ? Effect.void : Effect.fail(new MailUnavailable()),
        limitRecipient: Effect.fnUntraced(function* (environmentId, to) {
          const whose = sha256(`${environmentId}/${to}`)
          yield* throttles.take(paces.mailsPerMinute, `mail-minute:${whose}`)
          yield* throttles.take(paces.mailsPerHour, `mail-hour:${whose}`)
        }),
        enqueue: Effect.fn("Mails.order")(
          function* ({ environmentId, playerId, purpose, ...ordered }) {
            const createdAt = yield* DateTime.now
            const text = yield* Effect.orDie(Schema.encodeEffect(Ordered)(ordered))
            const stored = yield* rows.insert({
              id: yield* newId.mail,
              environmentId,
              playerId,
              purpose,
              sealed: yield* secrets.seal(text, sealedFor),
              createdAt,
              expiresAt: DateTime.add(createdAt, { seconds: linkSeconds[purpose] }),
              most: limits.waitingMax
            })
            if (!stored) {
              yield* Effect.logWarning("Too many mails wait to be sent")
              return yield* new MailUnavailable()
            }
            yield* sql.afterCommit(wakeUp)
          },
          Effect.provideService(SecureRandom.SecureRandom, random)
        ),
        stored: Effect.flatMap(
          rows.kept(limits.storedMax),
          Effect.forEach(({ createdAt, sealed }) =>
            Effect.map(openAs(secrets, Kept, sealed), (mail) => ({ ...mail, createdAt }))
          )
        )
      })
    })
  )
}

const openAs = <A>(secrets: Secrets["Service"], codec: Schema.Codec<A, string>, sealed: string) =>
  Effect.orDie(Effect.flatMap(secrets.open(sealed, sealedFor), Schema.decodeEffect(codec)))

/** The address of a link, with the token where no server sees it. */
const makeLinkOf = Effect.map(
  Settings,
  ({ baseUrl }) =>
    (purpose: MailPurpose, { key, redirectUrl }: typeof Target.Type, token: string): string =>
      redirectUrl === null
        ? `${baseUrl}/-/${purpose}#svc_${purpose}=${token}&svc_key=${key}`
        : `${redirectUrl}#svc_${purpose}=${token}`
)

/** The mail of an order, with a new code; none when nobody, or somebody else by now, has the address. */
const makeCompose = Effect.gen(function* () {
  const identities = yield* IdentityRepository
  const secrets = yield* Secrets
  const codes = yield* SingleUseCodes
  const linkOf = yield* makeLinkOf
  return Effect.fnUntraced(function* (claimed: ClaimedMail) {
    const { environmentId, id, projectName, purpose, sealed } = claimed
    const { to, ...target } = yield* openAs(secrets, Ordered, sealed)
    const found = yield* identities.find({ environmentId, provider: "email", subject: to })
    if (Option.isNone(found)) return undefined
    const { emailVerified, playerId } = found.value
    const isOver = emailVerified || playerId !== claimed.playerId
    if (purpose === "verify" && isOver) return undefined
    const seconds = linkSeconds[purpose]
    const token = yield* codes.issue({ environmentId, playerId, purpose, seconds, data: to })
    const letter = renderMail(purpose, projectName, linkOf(purpose, target, token))
    return { playerId, mail: { ...letter, id, to, fromName: projectName } }
  })
})

/** Keeps mails instead of sending them, and says so once. */
const makeKeep = Effect.gen(function* () {
  const rows = yield* MailRepository
  const secrets = yield* Secrets
  const { baseUrl } = yield* Settings
  let told = false
  return Effect.fnUntraced(function* (playerId: PlayerId, { html, id, subject, text, to }: Mail) {
    const kept = yield* Effect.orDie(Schema.encodeEffect(Kept)({ to, subject, text, html }))
    const sealed = yield* secrets.seal(kept, sealedFor)
    yield* rows.keep({ id, playerId, sealed }, limits.storedMax)
    if (told) return
    told = true
    yield* Effect.logInfo(`Without SMTP_URL mails stay here: ${baseUrl}${devMailPath}`)
  })
})

const retryAfter = (attempts: number): number =>
  Math.min(limits.retrySeconds * 2 ** (attempts - 1), limits.retrySecondsMax)

/** One attempt at a mail: it leaves, or it is known when to try again. */
const makeDeliver = Effect.gen(function* () {
  const rows = yield* MailRepository
  const compose = yield* makeCompose
  const keep = yield* makeKeep
  const { mail: settings } = yield* Settings
  const { from, smtpUrl } = settings
  const smtp = smtpUrl === undefined ? undefined : yield* makeSmtp(smtpUrl, from)

  const attempt = Effect.fnUntraced(function* (claimed: ClaimedMail) {
    const composed = yield* compose(claimed)
    if (composed === undefined) return yield* rows.remove(claimed.id)
    if (smtp === undefined) return yield* keep(composed.playerId, composed.mail)
    yield* smtp(composed.mail)
    yield* rows.remove(claimed.id)
  })

  const failed = Effect.fnUntraced(function* (claimed: ClaimedMail, failure: MailDeliveryError) {
    const { attempts, expiresAt, id } = claimed
    const dueAt = DateTime.add(yield* DateTime.now, { seconds: retryAfter(attempts) })
    const isLast =
      failure.final ||
      attempts >= limits.attemptsMax ||
      DateTime.isGreaterThanOrEqualTo(dueAt, expiresAt)
    const then = isLast ? "given up" : "tried again"
    yield* Effect.logWarning(`A mail was not sent and is ${then}`, { id, reason: failure.reason })
    yield* isLast ? rows.remove(id) : rows.postpone({ id, dueAt })
  })

  return (claimed: ClaimedMail): Effect.Effect<void> =>
    attempt(claimed).pipe(
      // Of a fault the log has the cause; the mail is tried again as if the server had refused it.
      Effect.catchDefect((defect) =>
        Effect.andThen(
          Effect.logError("A mail could not be sent", defect),
          Effect.fail(new MailDeliveryError({ reason: "a fault", final: false }))
        )
      ),
      Effect.catchTag("MailDeliveryError", (failure) => failed(claimed, failure)),
      // Then it is tried again when the claim ends.
      Effect.catchDefect((defect) => Effect.logWarning("A mail was not put back", defect)),
      // A process that stops leaves it to the others at once.
      Effect.onInterrupt(() =>
        Effect.flatMap(DateTime.now, (dueAt) => rows.postpone({ id: claimed.id, dueAt }))
      )
    )
})

const lookMillis = limits.pollSeconds * 1000
const retryMillis = limits.retrySeconds * 1000
/** Another process may be claiming what is due. */
const shortestMillis = 100

/**
 * Sends whatever is due, for ever, a few at a time, so that a mail whose server does not answer holds
 * nobody up. `wake` says that there is something to do: a mail was stored, or one is through.
 */
const makeSender = Effect.fnUntraced(function* (wake: Queue.Queue<void>) {
  const rows = yield* MailRepository
  const deliver = yield* makeDeliver
  let underWay = 0
  const delivered = (claimed: ClaimedMail) =>
    Effect.ensuring(
      deliver(claimed),
      Effect.suspend(() => {
        underWay -= 1
        return Queue.offer(wake, undefined)
      })
    )
  const round = Effect.gen(function* () {
    const now = yield* DateTime.now
    const until = DateTime.add(now, { seconds: limits.claimSeconds })
    const claimed = yield* rows.claim({ now, until, most: limits.concurrency - underWay })
    underWay += claimed.length
    yield* Effect.forEach(claimed, (mail) => Effect.forkChild(delivered(mail)), { discard: true })
  })
  /** Until the next mail is due, of those that nobody tries right now. */
  const restMillis = Effect.gen(function* () {
    if (underWay >= limits.concurrency) return lookMillis
    const next = yield* rows.nextDue
    if (next === null) return lookMillis
    const millis = next.epochMilliseconds - (yield* Clock.currentTimeMillis)
    return Math.min(Math.max(millis, shortestMillis), lookMillis)
  })
  return Effect.andThen(round, restMillis).pipe(
    Effect.catchDefect((defect) =>
      Effect.as(Effect.logWarning("Mails were not looked for", defect), retryMillis)
    ),
    Effect.flatMap((millis) => Effect.timeoutOption(Queue.take(wake), millis)),
    Effect.forever
  )
})
