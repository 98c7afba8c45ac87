/**
 * Sends mails to the SMTP server of `SMTP_URL` over pooled connections. Nodemailer reads the TLS options
 * from the scheme and query of the URL.
 */
import { Data, Effect, Predicate, Redacted } from "effect"
import { createTransport } from "nodemailer"
import type { MailId } from "#rpc/ids"
import { secondsPerHour } from "#rpc/units"
import type { MailContent } from "./templates.ts"

/** The mail outbox. */
export const mailLimits = {
  /**
   * Queued mails; beyond it 503 `mail_unavailable`. The projects of one developer get no more
   * places than remain free: alone they have half of them.
   */
  waitingMax: 10_000,
  /** Mails that one process sends at a time. */
  concurrency: 5,
  attemptsMax: 10,
  /** Delay before the second attempt. It doubles with each further attempt, up to `retrySecondsMax`. */
  retrySeconds: 30,
  retrySecondsMax: secondsPerHour,
  /** Timeout of one attempt. Another process takes the mail over after `claimSeconds`. */
  attemptSeconds: 60,
  claimSeconds: 120,
  /** Longest time between two polls of the outbox. */
  pollSeconds: 300,
  /** Mails that development keeps for display instead of sending them. */
  storedMax: 200
} as const

/** A mail with its addresses. */
export interface Mail extends MailContent {
  readonly id: MailId
  readonly to: string
  /** Display name of the sender. */
  readonly fromName: string
}

/** The server did not accept a mail; `reason` contains no address. */
export class MailDeliveryError extends Data.TaggedError("MailDeliveryError")<{
  readonly reason: string
  /** A retry would fail too. */
  readonly final: boolean
}> {}

/** Milliseconds. */
const timeouts = {
  dnsTimeout: 10_000,
  connectionTimeout: 10_000,
  greetingTimeout: 10_000,
  socketTimeout: 30_000
} as const

/** Code and status of the error; its text may contain addresses. */
const deliveryError = (error: unknown): MailDeliveryError => {
  const code = Predicate.hasProperty(error, "code") ? String(error.code) : "unknown"
  const status = Predicate.hasProperty(error, "responseCode") ? Number(error.responseCode) : 0
  const aboutTheMail = code === "EENVELOPE" || code === "EMESSAGE"
  return new MailDeliveryError({
    reason: status === 0 ? code : `${code} ${status}`,
    final: aboutTheMail && (status === 0 || status >= 500)
  })
}

/** Sends mails through a server until the scope ends. */
export const makeSmtp = Effect.fnUntraced(function* (url: Redacted.Redacted, from: string) {
  const pool = yield* Effect.acquireRelease(
    Effect.sync(() =>
      createTransport({
        pool: true,
        url: Redacted.value(url),
        maxConnections: mailLimits.concurrency,
        maxRequeues: 1,
        disableFileAccess: true,
        disableUrlAccess: true,
        ...timeouts
      })
    ),
    (transport) => Effect.sync(() => transport.close())
  )
  return ({
    fromName,
    html,
    id,
    subject,
    text,
    to
  }: Mail): Effect.Effect<void, MailDeliveryError> =>
    Effect.tryPromise({
      try: (signal) =>
        pool.sendMail({
          from: { name: fromName, address: from },
          // As an object: a text could list several recipients.
          to: { name: "", address: to },
          subject,
          text,
          html,
          // The same for every attempt, so that clients recognize a duplicate.
          messageId: `<${id}@${from.slice(from.lastIndexOf("@") + 1)}>`,
          headers: { "Auto-Submitted": "auto-generated" },
          signal
        }),
      catch: deliveryError
    }).pipe(
      Effect.asVoid,
      Effect.timeoutOrElse({
        duration: mailLimits.attemptSeconds * 1000,
        orElse: () => Effect.fail(new MailDeliveryError({ reason: "no answer", final: false }))
      })
    )
})

/** Sends one mail. */
export type Smtp = Effect.Success<ReturnType<typeof makeSmtp>>
