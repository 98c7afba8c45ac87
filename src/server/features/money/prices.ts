/**
 * Prices of usage. Pure, in whole micro-USD: a component costs its price for each full share of `per` units,
 * rounded down. A month is charged in whole cents, and what is left is carried into the next one.
 */
import { type UsageComponent, usageUnits } from "#rpc/money"
import type { PriceList } from "#server/platform/settings/money"

const microUsdPerCent = 10_000n

export interface RatedComponent {
  readonly component: string
  readonly quantity: bigint
  readonly unit: string
  readonly microUsd: bigint
}

const isComponent = (name: string): name is UsageComponent => name in usageUnits

const unitOf = (component: string): string =>
  isComponent(component) ? usageUnits[component] : "units"

/** The cost of each component. */
export const rate = (
  totals: ReadonlyArray<{ readonly component: string; readonly quantity: bigint }>,
  prices: PriceList
): ReadonlyArray<RatedComponent> =>
  totals.map(({ component, quantity }) => {
    const price = prices[component]
    const microUsd =
      price === undefined ? 0n : (quantity * BigInt(price.microUsd)) / BigInt(price.per)
    return { component, quantity, unit: unitOf(component), microUsd }
  })

/** Whole cents of a cost, and what is left of it. */
export const chargeOf = (microUsd: bigint) => ({
  cents: microUsd / microUsdPerCent,
  carried: microUsd % microUsdPerCent
})
