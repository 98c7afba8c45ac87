/**
 * Confirmation of a developer's address by a link in a mail. It makes pending invite credit usable. The
 * service sends the mail within the request and returns a failure to the developer.
 */
import { Context, DateTime, Effect, Layer, Option, Schema, Semaphore } from "effect"
import { SecureRandom } from "effect/crypto"
import type { DeveloperCaller } from "#rpc/auth"
import {
  InvalidToken,
  type MailUnavailable,
  type RateLimited,
  Unavailable
} from "#rpc/errors/codes"
import { DeveloperId, newId } from "#rpc/ids"
import { paths } from "#rpc/paths"
import { DeveloperEmailRepository } from "#sql/developers/emails"
import { DeveloperRepository, type DeveloperRow } from "#sql/developers/repository"
import { makeTransaction, sweepDaily } from "#server/platform/database"
import { Mailer, mailThrottles } from "#server/platform/mail/outbox"
import { renderMail, verificationLinkSeconds } from "#server/platform/mail/templates"
import { mailLimits } from "#server/platform/mail/transport"
import { randomSecret, sha256 } from "#server/platform/secrets"
import { Settings } from "#server/platform/settings/settings"
import { type Keep, type RepeatError, SpentResponses } from "#server/platform/spent-responses"
import { Throttles } from "#server/platform/throttles"
import { Ledger } from "../money/ledger.ts"
import { spendingOf } from "./kept-session.ts"

/** Marks an address as confirmed, and makes pending credit usable. */
export const makeConfirmEmail = Effect.gen(function* () {
  const emails = yield* DeveloperEmailRepository
  const ledger = yield* Ledger
  const transaction = yield* makeTransaction
  return Effect.fnUntraced(function* (developerId: DeveloperCaller["developerId"], email: string) {
    const verifiedAt = yield* DateTime.now
    const isOwn = yield* emails.confirm({ developerId, email, verifiedAt })
    if (isOwn) yield* ledger.confirmInvite(developerId)
    return isOwn
  }, transaction)
})

/** Sends and redeems the links. */
export class EmailConfirmation extends Context.Service<
  EmailConfirmation,
  {
    /** Sends a link to the developer's address; does nothing if it is confirmed. */
    readonly request: (
      caller: DeveloperCaller
    ) => Effect.Effect<void, MailUnavailable | RateLimited | Unavailable>
    /** Confirms the address that received a link. A repeat with the same key succeeds, too. */
    readonly confirm: (
      token: string,
      key: string | undefined
    ) => Effect.Effect<DeveloperRow, InvalidToken | RepeatError>
  }
>()("server/features/developers/email-confirmation/EmailConfirmation") {
  static readonly layer = Layer.effect(
    EmailConfirmation,
    Effect.suspend(() => makeEmailConfirmation)
  )
}

const invalid = new InvalidToken({ message: "The link was used or has expired." })

/** What a repeated request needs. */
const Kept = Schema.Struct({ developerId: DeveloperId })

const makeEmailConfirmation = Effect.gen(function* () {
  const responses = yield* SpentResponses
  const confirmEmail = yield* makeConfirmEmail
  const developers = yield* DeveloperRepository
  const emails = yield* DeveloperEmailRepository
  const mailer = yield* Mailer
  const throttles = yield* Throttles
  const transaction = yield* makeTransaction
  const random = yield* SecureRandom.SecureRandom
  const { baseUrl } = yield* Settings
  const sending = yield* Semaphore.make(mailLimits.concurrency)
  yield* sweepDaily("Links of developers' mails", emails.sweep)

  const send = Effect.fnUntraced(
    function* ({ developerId, email }: DeveloperCaller) {
      const token = yield* randomSecret
      const expiresAt = DateTime.add(yield* DateTime.now, {
        seconds: verificationLinkSeconds
      })
      yield* emails.insert({ hash: sha256(token), developerId, email, expiresAt })
      const fromName = new URL(baseUrl).host
      const link = `${baseUrl}${paths.confirm}#svc_confirm=${token}`
      const content = renderMail("verify", fromName, link)
      yield* mailer.sendNow({ ...content, id: yield* newId.mail, to: email, fromName })
    },
    Effect.provideService(SecureRandom.SecureRandom, random)
  )

  const developerOf = Effect.fnUntraced(function* (developerId: DeveloperId) {
    const found = Option.getOrUndefined(yield* developers.find(developerId))
    return found ?? (yield* invalid)
  })

  const confirm = Effect.fnUntraced(function* (token: string, keep: Keep<typeof Kept.Type>) {
    const now = yield* DateTime.now
    const link = Option.getOrUndefined(yield* emails.take({ hash: sha256(token), now }))
    if (link === undefined) return yield* invalid
    const { developerId } = link
    if (!(yield* confirmEmail(developerId, link.email))) return yield* invalid
    yield* keep({ developerId })
    return yield* developerOf(developerId)
  }, transaction)

  return EmailConfirmation.of({
    request: Effect.fn("EmailConfirmation.request")(function* (caller: DeveloperCaller) {
      const found = Option.getOrUndefined(yield* developers.find(caller.developerId))
      if (found === undefined || found.emailVerifiedAt !== null) return
      yield* mailer.available
      const key = `developer-mail:${caller.developerId}`
      yield* throttles.take(mailThrottles.mailsPerMinute, `${key}:minute`)
      yield* throttles.take(mailThrottles.mailsPerHour, `${key}:hour`)
      const sent = yield* sending.withPermitsIfAvailable(1)(send(caller))
      if (Option.isNone(sent)) return yield* new Unavailable()
    }),
    confirm: Effect.fn("EmailConfirmation.confirm")(function* (
      token: string,
      key: string | undefined
    ) {
      const request = spendingOf("POST /v1/developers/email/verify", token, token, key)
      return yield* responses.once(request, Kept, {
        spend: (keep) => confirm(token, keep),
        repeat: ({ developerId }) => developerOf(developerId)
      })
    })
  })
})
