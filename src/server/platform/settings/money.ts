/** Settings of prepaid money: whether it is in use, the prices of usage, and the payment provider. */
import { type Redacted, Schema } from "effect"
import { type UsageComponent, usageUnits } from "#rpc/money"
import { listOf } from "./values.ts"

/** The price of `per` units of a component, in micro-USD. */
const Price = Schema.Struct({
  microUsd: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1_000_000_000_000 })),
  per: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }))
})

const isComponent = (name: string): name is UsageComponent => name in usageUnits

/** Prices by component; a component without one is free. */
const PriceList = Schema.Record(Schema.String, Price).check(
  Schema.makeFilter((prices) =>
    Object.keys(prices)
      .filter((name) => !isComponent(name))
      .map((name) => ({
        path: [name],
        issue: `is not metered; expected one of ${Object.keys(usageUnits).join(", ")}`
      }))
  )
)
export type PriceList = typeof PriceList.Type

export interface MoneySettings {
  /** Whether the service meters and charges usage and takes payments. */
  readonly enabled: boolean
  readonly prices: PriceList
  readonly stripe:
    | {
        readonly secretKey: Redacted.Redacted
        /** Secrets of the webhook; any of them may sign an event. */
        readonly webhookSecrets: ReadonlyArray<Redacted.Redacted>
      }
    | undefined
}

export const moneyVariables = {
  SVC_BILLING: Schema.Literals(["on", "off"]),
  SVC_PRICES: Schema.fromJsonString(PriceList),
  SVC_STRIPE_SECRET_KEY: Schema.optionalKey(
    Schema.RedactedFromValue(
      Schema.String.check(
        Schema.isPattern(/^[sr]k_(?:test|live)_\w{8,}$/, {
          message: "Expected a secret or restricted key of Stripe: sk_live_..."
        })
      )
    )
  ),
  SVC_STRIPE_WEBHOOK_SECRETS: listOf(
    Schema.RedactedFromValue(
      Schema.String.check(
        Schema.isPattern(/^whsec_\S{8,}$/, {
          message: "Expected a signing secret of Stripe: whsec_..."
        })
      )
    )
  )
}

const Variables = Schema.Struct(moneyVariables)
type Variables = typeof Variables.Type

export const moneyOf = (env: Variables): MoneySettings => ({
  enabled: env.SVC_BILLING === "on",
  prices: env.SVC_PRICES,
  stripe:
    env.SVC_STRIPE_SECRET_KEY === undefined
      ? undefined
      : {
          secretKey: env.SVC_STRIPE_SECRET_KEY,
          webhookSecrets: env.SVC_STRIPE_WEBHOOK_SECRETS
        }
})

/** Returns what is missing for payments, or undefined. */
export const moneyIssue = (env: Variables) =>
  (env.SVC_STRIPE_SECRET_KEY === undefined) === (env.SVC_STRIPE_WEBHOOK_SECRETS.length === 0)
    ? undefined
    : {
        path: [
          env.SVC_STRIPE_SECRET_KEY === undefined
            ? "SVC_STRIPE_SECRET_KEY"
            : "SVC_STRIPE_WEBHOOK_SECRETS"
        ],
        issue: "is required for payments: one starts them, the other verifies their events"
      }
