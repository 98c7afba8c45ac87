/**
 * The way out for mails: an SMTP server (`SMTP_URL`), over connections that are kept for a while. The
 * URL's scheme and query say what of TLS there is, as nodemailer reads them.
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
  /** What stands beside our address. */
  readonly fromName: string
}

/** The server has not taken a mail; `reason` names nobody. */
export class MailDeliveryError extends Data.TaggedError("MailDeliveryError")<{
  readonly reason: string
  /** It never will. */
  readonly final: boolean
}> {}

/** Inactivity of a connection, and how long one may take to be made. */
const timeouts = {
  dnsTimeout: 10_000,
  connectionTimeout: 10_000,
  greetingTimeout: 10_000,
  socketTimeout: 30_000
} as const

/** What the server said or the network did, without the text, in which addresses may stand. */
const notSent = (error: unknown): MailDeliveryError => {
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
          // Not as text, in which several may stand.
          to: { name: "", address: to },
          subject,
          text,
          html,
          // The same at every attempt, so that a mail that came twice is known for one.
          messageId: `<${id}@${from.slice(from.lastIndexOf("@") + 1)}>`,
          headers: { "Auto-Submitted": "auto-generated" },
          signal
        }),
      catch: notSent
    }).pipe(
      Effect.asVoid,
      Effect.timeoutOrElse({
        duration: limits.attemptSeconds * 1000,
        orElse: () => Effect.fail(new MailDeliveryError({ reason: "no answer", final: false }))
      })
    )
})
