/**
 * Prices of usage. Pure, in whole micro-USD. A component costs its price for each full share of `per`
 * units, rounded down. A month's charge is in whole cents, and the remainder carries over into the next
 * month.
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

/** Returns the cost of each component. */
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

/** Returns the whole cents of a cost, and the remainder. */
export const chargeOf = (microUsd: bigint) => ({
  cents: microUsd / microUsdPerCent,
  carried: microUsd % microUsdPerCent
})
