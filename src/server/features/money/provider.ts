/**
 * Payment provider Stripe. The first payment or event loads its SDK. This module decodes the provider's
 * data to facts about a checkout.
 */
import { Clock, Context, Effect, Layer, Redacted, Schema } from "effect"
import type { Stripe } from "stripe"
import { type InvalidRequest, PaymentsUnavailable } from "#rpc/errors/codes"
import type { CheckoutRow } from "#sql/money/checkouts"
import { invalidField } from "#server/platform/invalid-request"
import { Settings } from "#server/platform/settings/settings"

/** Age at which a signed event is refused. */
const eventToleranceSeconds = 300
const providerMillis = 10_000

/** Events and open checkouts that one reconciliation reads, of each. */
export const reconciledMax = 10_000

/** State of a checkout's session at the provider. */
export interface SessionFact {
  readonly kind: "session"
  readonly sessionId: string
  /** Id of the checkout; null for a session that this service did not create. */
  readonly checkoutId: string | null
  readonly state: "open" | "paid" | "expired" | "failed"
  readonly amount: bigint
  readonly currency: string
  readonly paymentId: string | null
}

/** Refund or dispute of a payment. `isTaken` means that the provider takes the money back. */
export interface ReturnFact {
  readonly kind: "refund" | "dispute"
  readonly id: string
  readonly paymentId: string
  readonly amount: bigint
  readonly isTaken: boolean
  readonly isFinal: boolean
}

export type PaymentFact = SessionFact | ReturnFact

const Amount = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

/** Id, or the object that contains it. */
const Reference = Schema.NullOr(Schema.Union([Schema.String, Schema.Struct({ id: Schema.String })]))

const idOf = (reference: typeof Reference.Type | undefined): string | null =>
  typeof reference === "string" ? reference : (reference?.id ?? null)

const Session = Schema.Struct({
  id: Schema.String,
  client_reference_id: Schema.optionalKey(Schema.NullOr(Schema.String)),
  status: Schema.optionalKey(Schema.NullOr(Schema.String)),
  payment_status: Schema.String,
  amount_total: Schema.NullOr(Amount),
  currency: Schema.NullOr(Schema.String),
  payment_intent: Schema.optionalKey(Reference)
})

const Returned = Schema.Struct({
  id: Schema.String,
  amount: Amount,
  status: Schema.NullOr(Schema.String),
  payment_intent: Schema.optionalKey(Reference)
})

const Event = Schema.Struct({
  id: Schema.String,
  type: Schema.String,
  data: Schema.Struct({ object: Schema.Unknown })
})

const decodeEvent = Schema.decodeUnknownEffect(Event)
const decodeSession = Schema.decodeUnknownEffect(Session)
const decodeReturned = Schema.decodeUnknownEffect(Returned)

const sessionFact = (
  { id, ...session }: typeof Session.Type,
  type: string | undefined
): SessionFact => {
  const isFailed = type === "checkout.session.async_payment_failed"
  const unpaid = session.status === "expired" ? "expired" : isFailed ? "failed" : "open"
  return {
    kind: "session",
    sessionId: id,
    checkoutId: session.client_reference_id ?? null,
    state: session.payment_status === "paid" ? "paid" : unpaid,
    amount: BigInt(session.amount_total ?? 0),
    currency: session.currency ?? "",
    paymentId: idOf(session.payment_intent)
  }
}

/** States of a refund or dispute in which the developer has the money. */
const givenBack: ReadonlyArray<string | null> = [
  "failed",
  "canceled",
  "won",
  "prevented",
  "warning_needs_response",
  "warning_under_review",
  "warning_closed"
]
/** Final states. `lost` is not one, since an appeal can win a lost dispute. */
const final: ReadonlyArray<string | null> = [
  "failed",
  "canceled",
  "won",
  "prevented",
  "warning_closed"
]

const returnFact = (
  kind: ReturnFact["kind"],
  { amount, id, payment_intent: payment, status }: typeof Returned.Type
): ReturnFact | undefined => {
  const paymentId = idOf(payment)
  if (paymentId === null) return undefined
  const isTaken = !givenBack.includes(status)
  return { kind, id, paymentId, amount: BigInt(amount), isTaken, isFinal: final.includes(status) }
}

/** Types of the events that a payment can cause. A webhook needs no others. */
export const eventTypes = [
  "checkout.session.completed",
  "checkout.session.async_payment_succeeded",
  "checkout.session.async_payment_failed",
  "checkout.session.expired",
  "refund.created",
  "refund.updated",
  "refund.failed",
  "charge.dispute.created",
  "charge.dispute.updated",
  "charge.dispute.closed"
] as const satisfies ReadonlyArray<Stripe.Event["type"]>

/** Decodes an event to a fact; undefined for an event without a meaning for this service. */
export const factOf = Effect.fnUntraced(function* (given: unknown) {
  const { data, type } = yield* decodeEvent(given)
  if (type.startsWith("checkout.session.")) {
    return sessionFact(yield* decodeSession(data.object), type)
  }
  if (type.startsWith("refund.")) return returnFact("refund", yield* decodeReturned(data.object))
  if (type.startsWith("charge.dispute.")) {
    return returnFact("dispute", yield* decodeReturned(data.object))
  }
  return undefined
})

export interface CreatedSession {
  readonly sessionId: string
  readonly url: string
}

/** Payment provider; undefined in a deployment that takes no payments. */
export class PaymentProvider extends Context.Service<
  PaymentProvider,
  | {
      /** Creates the session of a checkout. A repeated call returns the same session. */
      readonly createSession: (
        checkout: CheckoutRow,
        email: string
      ) => Effect.Effect<CreatedSession, PaymentsUnavailable>
      readonly readSession: (sessionId: string) => Effect.Effect<SessionFact, PaymentsUnavailable>
      /** Returns undecoded events since a time in Unix seconds, newest first. */
      readonly listEvents: (
        since: number
      ) => Effect.Effect<ReadonlyArray<unknown>, PaymentsUnavailable>
      /** Verifies a signed request and returns its event. */
      readonly verify: (
        body: string,
        signature: string
      ) => Effect.Effect<unknown, InvalidRequest | PaymentsUnavailable>
    }
  | undefined
>()("server/features/money/provider/PaymentProvider") {
  static readonly layer = Layer.effect(
    PaymentProvider,
    Effect.suspend(() => make)
  )
}

const unavailable = new PaymentsUnavailable({
  message: "The payment provider does not respond. Retry with the same Idempotency-Key."
})

const notSigned = invalidField(
  "headers.stripe-signature",
  `Expected the signature of this body, dated at most ${eventToleranceSeconds} seconds from now`
)

/**
 * Whether a signature is dated in the future beyond the tolerance. Stripe's SDK refuses only old ones, but
 * a signature that comes early could be sent again for as long as it is ahead.
 */
const isEarly = (signature: string, nowMillis: number): boolean =>
  Array.from(signature.matchAll(/(?:^|,)\s*t=(\d+)/g)).some(
    ([, seconds]) => Number(seconds) - nowMillis / 1000 > eventToleranceSeconds
  )

/** Base URL in place of that of Stripe's API: tests provide that of their simulator. */
export const PaymentBaseUrl = Context.Reference<URL | undefined>(
  "server/features/money/provider/PaymentBaseUrl",
  { defaultValue: () => undefined }
)

/** Loads the SDK with the first call. */
const makeSdk = (secretKey: Redacted.Redacted, url: URL | undefined) =>
  Effect.cached(
    Effect.promise(async () => {
      const { Stripe: Sdk } = await import("stripe")
      return new Sdk(Redacted.value(secretKey), {
        timeout: providerMillis,
        maxNetworkRetries: 2,
        telemetry: false,
        ...(url === undefined
          ? {}
          : {
              host: url.hostname,
              port: url.port,
              protocol: url.protocol === "http:" ? "http" : "https"
            })
      })
    })
  )

const make = Effect.gen(function* () {
  const { stripe: settings } = (yield* Settings).money
  if (settings === undefined) return undefined
  const { secretKey, webhookSecrets } = settings
  const sdk = yield* makeSdk(secretKey, yield* PaymentBaseUrl)
  const call = <A>(what: string, ask: (stripe: Stripe) => Promise<A>) =>
    Effect.flatMap(sdk, (stripe) => Effect.tryPromise(() => ask(stripe))).pipe(
      Effect.tapError(({ cause }) => Effect.logWarning(`Failed to ${what} at Stripe`, cause)),
      Effect.mapError(() => unavailable)
    )
  return PaymentProvider.of({
    createSession: Effect.fnUntraced(function* (checkout, email) {
      const created = yield* call("create a checkout", (stripe) =>
        stripe.checkout.sessions.create(requestOf(checkout, email), {
          idempotencyKey: checkout.id
        })
      )
      if (created.url === null) return yield* unavailable
      return { sessionId: created.id, url: created.url }
    }),
    readSession: (id) =>
      Effect.flatMap(
        call("read a checkout", (stripe) => stripe.checkout.sessions.retrieve(id)),
        (session) =>
          Effect.orDie(Effect.map(decodeSession(session), (it) => sessionFact(it, undefined)))
      ),
    listEvents: (since) =>
      call("list events", (stripe) =>
        stripe.events
          .list({ types: [...eventTypes], created: { gte: since }, limit: 100 })
          .autoPagingToArray({ limit: reconciledMax })
      ),
    verify: Effect.fnUntraced(function* (body, signature) {
      const stripe = yield* sdk
      const now = yield* Clock.currentTimeMillis
      if (isEarly(signature, now)) return yield* notSigned
      for (const secret of webhookSecrets) {
        const event = yield* Effect.option(
          Effect.try(() =>
            stripe.webhooks.constructEvent(
              body,
              signature,
              Redacted.value(secret),
              eventToleranceSeconds,
              undefined,
              now
            )
          )
        )
        if (event._tag === "Some") return event.value
      }
      return yield* notSigned
    })
  })
})

/** Returns the request for a session. It is always the same for a checkout. */
const requestOf = (
  { amount, cancelUrl, developerId, expiresAt, id, successUrl }: CheckoutRow,
  email: string
): Stripe.Checkout.SessionCreateParams => ({
  mode: "payment",
  client_reference_id: id,
  customer_email: email,
  metadata: { checkout: id, developer: developerId },
  payment_intent_data: { metadata: { checkout: id, developer: developerId } },
  line_items: [
    {
      quantity: 1,
      price_data: {
        currency: "usd",
        unit_amount: Number(amount),
        product_data: { name: "Prepaid balance" }
      }
    }
  ],
  payment_method_options: { card: { request_three_d_secure: "challenge" } },
  success_url: successUrl,
  cancel_url: cancelUrl,
  expires_at: Math.floor(expiresAt.epochMilliseconds / 1000)
})
