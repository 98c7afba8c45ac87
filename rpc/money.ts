/**
 * Prepaid money of a developer: balances, the ledger, checkouts and usage. Amounts are integer cents,
 * prices and costs integer micro-USD (10,000 to a cent). Only a developer session may read or move money:
 * a key of an environment gets 404 on each of these paths.
 *
 * With `SVC_BILLING=off` the reads answer zeros and empty lists, and a checkout `payments_unavailable`.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, OpenApi } from "effect/http-api"
import { BodyMaxBytes, DeveloperSession, KeepsBodyText, SessionOnly, Requests } from "./auth.ts"
import {
  IdempotencyInProgress,
  IdempotencyKeyReused,
  InvalidAmount,
  InvalidIdempotencyKey,
  NotFound,
  PaymentsUnavailable,
  wire
} from "./errors/codes.ts"
import { feature, group } from "./feature.ts"
import { CheckoutId, LedgerEntryId } from "./ids.ts"
import { PageLimit } from "./pages.ts"
import { Timestamp } from "./text.ts"
import { KiB } from "./units.ts"

const returnUrlMaxCharacters = 2048

/** An event of the payment provider. */
const eventMaxBytes = 256 * KiB

/** The only currency of balances and prices. */
export const Currency = Schema.Literal("usd")

/**
 * Account of a developer, in cents. `balance` is prepaid money, `owed` the unpaid amount. `invite`
 * is the credit of an invitation, for usage only; `pending` credit waits for a confirmed email
 * address.
 */
export const PrepaidBalance = Schema.Struct({
  balance: Schema.Int,
  owed: Schema.Int,
  invite: Schema.NullOr(
    Schema.Struct({ granted: Schema.Int, remaining: Schema.Int, pending: Schema.Int })
  )
}).annotate({
  identifier: "PrepaidBalance",
  description: "Prepaid money, what is owed, and the credit of an invitation, in cents."
})
export type PrepaidBalance = typeof PrepaidBalance.Type

/**
 * An entry of the ledger, which only grows. The entries of the account `prepaid` add up to `balance`,
 * those of `invite` to `invite.remaining`, and those of `owed` to minus `owed`.
 */
export const LedgerEntry = Schema.Struct({
  id: LedgerEntryId,
  kind: Schema.Literals(["topup", "invite", "usage", "refund", "adjustment"]),
  account: Schema.Literals(["prepaid", "owed", "invite"]),
  amount: Schema.Int,
  /** The sum of the account after this entry. */
  balanceAfter: Schema.Int,
  description: Schema.String,
  createdAt: Timestamp
}).annotate({
  identifier: "LedgerEntry",
  description: "A change of an account, in cents. `owed` is negative while something is owed."
})
export type LedgerEntry = typeof LedgerEntry.Type

/** A payment at the hosted page of the payment provider. `url` is where the developer pays. */
export const Checkout = Schema.Struct({
  id: CheckoutId,
  url: Schema.String,
  status: Schema.Literals(["open", "paid", "expired", "failed"]),
  amount: Schema.Int,
  currency: Currency,
  expiresAt: Timestamp
}).annotate({
  identifier: "Checkout",
  description: "A payment at the payment provider. The amount is credited once it is `paid`."
})
export type Checkout = typeof Checkout.Type

const CheckoutResponse = Schema.Struct({ checkout: Checkout }).annotate({
  identifier: "CheckoutResponse",
  description: "One checkout."
})

/** A page to return to: `https`, or `http` on the developer's own machine. */
const ReturnUrl = Schema.String.check(
  Schema.isMaxLength(returnUrlMaxCharacters),
  Schema.makeFilter(
    (text) => {
      // A parser ignores spaces around a URL; the payment provider does not.
      const url = /\s/.test(text) ? null : URL.parse(text)
      if (url === null || url.username !== "" || url.password !== "") return false
      const isOwn = ["localhost", "127.0.0.1", "[::1]"].includes(url.hostname)
      return url.protocol === "https:" || (url.protocol === "http:" && isOwn)
    },
    { message: "Expected an https URL, or an http URL of localhost" }
  )
)

/** An amount in cents; its range is checked by the handler. */
export const NewCheckout = Schema.Struct({
  amount: Schema.Finite,
  successUrl: ReturnUrl,
  cancelUrl: ReturnUrl
})
export type NewCheckout = typeof NewCheckout.Type

/** Metered components with their units. A client must tolerate unknown ones. */
export const usageUnits = {
  /** Players active on a day, for each day. */
  activePlayers: "player-days",
  /** Open realtime connections. */
  connectionSeconds: "seconds",
  /** Saves and files of deployments, measured each hour. */
  storageMibHours: "MiB-hours",
  /** Bodies of hosted files. */
  egressBytes: "bytes",
  /** Members of voice calls. */
  voiceSeconds: "seconds",
  functionRequests: "requests",
  functionCpuMillis: "milliseconds"
} as const
export type UsageComponent = keyof typeof usageUnits

/**
 * Usage of all the developer's projects in a month (UTC). `estimate`: the month is not charged yet. A charge
 * is whole cents; `carriedMicroUsd` is the rest of the months before, which the charge includes.
 */
export const UsageReport = Schema.Struct({
  period: Schema.String,
  currency: Currency,
  components: Schema.Array(
    Schema.Struct({
      component: Schema.String,
      quantity: Schema.Int,
      unit: Schema.String,
      microUsd: Schema.Int
    })
  ),
  totalMicroUsd: Schema.Int,
  carriedMicroUsd: Schema.Int,
  chargedCents: Schema.Int,
  estimate: Schema.Boolean,
  refreshedAt: Timestamp
}).annotate({
  identifier: "UsageReport",
  description: "Usage of a month by component, its cost in micro-USD and the charge in cents."
})
export type UsageReport = typeof UsageReport.Type

const Period = Schema.String.check(
  Schema.isPattern(/^20\d\d-(?:0[1-9]|1[0-2])$/, { message: "Expected a month: YYYY-MM" })
)

const Cursor = Schema.String.check(
  Schema.isPattern(/^led_[0-9A-HJKMNP-TV-Z]{26}$/, {
    message: "Expected the nextCursor of a previous response"
  })
)

/** `/v1/money`: prepaid money of the signed-in developer. */
export class MoneyApi extends group(
  "money",
  "developers",
  "Money",
  "Prepaid money of the signed-in developer: balance, ledger, checkouts and usage."
)
  .add(
    HttpApiEndpoint.get("balance", "/prepaid", { success: PrepaidBalance }).annotate(
      OpenApi.Summary,
      "Read the prepaid balance"
    ),
    HttpApiEndpoint.get("ledger", "/prepaid/ledger", {
      query: { limit: Schema.optionalKey(PageLimit), cursor: Schema.optionalKey(Cursor) },
      success: Schema.Struct({
        entries: Schema.Array(LedgerEntry),
        nextCursor: Schema.NullOr(Schema.String)
      }).annotate({ identifier: "LedgerPage", description: "Entries of the ledger, newest first." })
    }).annotate(OpenApi.Summary, "List the entries of the ledger, newest first"),
    HttpApiEndpoint.post("checkout", "/prepaid/checkout", {
      headers: { "idempotency-key": Schema.optionalKey(Schema.String) },
      payload: NewCheckout,
      success: CheckoutResponse,
      error: [
        wire(InvalidAmount),
        wire(PaymentsUnavailable),
        wire(InvalidIdempotencyKey),
        wire(IdempotencyKeyReused),
        wire(IdempotencyInProgress)
      ]
    }).annotate(OpenApi.Summary, "Start a payment; with the same Idempotency-Key only one"),
    HttpApiEndpoint.get("readCheckout", "/prepaid/checkouts/:checkoutId", {
      params: { checkoutId: Schema.String.annotate({ description: "Id of the checkout." }) },
      success: CheckoutResponse,
      error: wire(NotFound)
    }).annotate(OpenApi.Summary, "Read a checkout"),
    HttpApiEndpoint.get("usage", "/usage", {
      query: {
        /** The current month by default. */
        period: Schema.optionalKey(Period),
        /** Counts first what this node has not stored yet. */
        refresh: Schema.optionalKey(Schema.Literals(["true", "false"]))
      },
      success: UsageReport
    }).annotate(OpenApi.Summary, "Read the usage of a month and its cost")
  )
  .prefix("/v1/money")
  .middleware(Requests)
  .middleware(DeveloperSession)
  .middleware(SessionOnly) {}

/** An event of the payment provider. */
const ProviderEvent = Schema.Record(Schema.String, Schema.Json).annotate({
  identifier: "PaymentEvent",
  description: "An event of the payment provider, signed by its header `Stripe-Signature`."
})

/** `/v1/payments`: events of the payment provider, authenticated by their signature. */
export class PaymentsApi extends group(
  "payments",
  "developers",
  "Payment events",
  "Events of the payment provider, authenticated by their signature."
)
  .add(
    HttpApiEndpoint.post("stripe", "/stripe", {
      headers: { "stripe-signature": Schema.optionalKey(Schema.String) },
      payload: ProviderEvent,
      success: Schema.Struct({ received: Schema.Literal(true) }).annotate({
        identifier: "PaymentEventReceived",
        description: "The event is applied, or none of this service's."
      }),
      error: [wire(PaymentsUnavailable), wire(NotFound)]
    })
      .annotate(OpenApi.Summary, "Receive an event of Stripe")
      .annotate(BodyMaxBytes, eventMaxBytes)
      .annotate(KeepsBodyText, true)
  )
  .prefix("/v1/payments")
  .middleware(Requests) {}

export const moneyFeature = feature({
  word: "money",
  groups: [MoneyApi, PaymentsApi]
})
