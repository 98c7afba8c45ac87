/** Settings of prepaid money: whether it is in use, the prices of usage, and the payment provider. */
import { Schema } from "effect"
import { type UsageComponent, usageUnits } from "#rpc/money"
import { type EnvironmentOf, type Issue, optional, setting, valuesOf } from "./table.ts"
import { listOf, OnOff, textLike } from "./values.ts"

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

export const money = {
  enabled: setting("SVC_BILLING", OnOff, "off")`
    \`on\` meters the usage of projects, charges it to their developers and takes payments. See [money](money.md).`,
  prices: setting("SVC_PRICES", Schema.fromJsonString(PriceList), "{}")`
    Prices of usage in micro-USD, as JSON. What is not in it is free. See [prices](money.md#prices).`,
  secretKey: optional(
    "SVC_STRIPE_SECRET_KEY",
    Schema.RedactedFromValue(
      textLike(/^[sr]k_(?:test|live)_\w{8,}$/, "a secret or restricted key of Stripe: sk_live_...")
    )
  )`
    The secret key of Stripe, \`sk_live_...\`. Without it nobody can pay, and [the operator
    credits](money.md#credit-by-the-operator).`,
  webhookSecrets: setting(
    "SVC_STRIPE_WEBHOOK_SECRETS",
    listOf(
      Schema.RedactedFromValue(textLike(/^whsec_\S{8,}$/, "a signing secret of Stripe: whsec_..."))
    ),
    ""
  )`
    The signing secrets of Stripe's webhook, \`whsec_...\`, comma-separated: two while you replace one. Required with
    the key.`
}

type Environment = EnvironmentOf<typeof money>

export const moneyOf = (env: Environment) => {
  const { enabled, prices, secretKey, webhookSecrets } = valuesOf(money, env)
  return { enabled, prices, stripe: secretKey && { secretKey, webhookSecrets } }
}

export const moneyIssues = (env: Environment): ReadonlyArray<Issue> => {
  const { SVC_STRIPE_SECRET_KEY: key, SVC_STRIPE_WEBHOOK_SECRETS: secrets } = env
  if ((key === undefined) === (secrets.length === 0)) return []
  const absent = key === undefined ? "SVC_STRIPE_SECRET_KEY" : "SVC_STRIPE_WEBHOOK_SECRETS"
  const issue = "is required for payments: one starts them, the other verifies their events"
  return [{ path: [absent], issue }]
}
