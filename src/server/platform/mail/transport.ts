/**
 * Sends mails to the SMTP server of `SMTP_URL` over pooled connections. Nodemailer reads the TLS options
 * from the scheme and query of the URL.
 */
import { Data, Effect, Predicate, Redacted } from "effect"
import { createTransport } from "nodemailer"
import type { MailId } from "#rpc/ids"
import { mail as limits } from "#rpc/limits"
import type { MailContent } from "./templates.ts"

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
        maxConnections: limits.concurrency,
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
        duration: limits.attemptSeconds * 1000,
        orElse: () => Effect.fail(new MailDeliveryError({ reason: "no answer", final: false }))
      })
    )
})

/** Sends one mail. */
export type Smtp = Effect.Success<ReturnType<typeof makeSmtp>>
