/** Amounts of money as people read them: cents, and micro-USD, of which a cent has 10,000. */

const centForm = new Intl.NumberFormat("en", { style: "currency", currency: "USD" })
const microForm = new Intl.NumberFormat("en", {
  style: "currency",
  currency: "USD",
  maximumFractionDigits: 6
})

/** `$25.00` of 2500. */
export const cents = (value: number): string => centForm.format(value / 100)

/** `$0.000020` of 20: no digit of a price is lost. */
export const microUsd = (value: number): string => microForm.format(value / 1_000_000)

/** Micro-USD in whole cents, for a glance: `< $0.01` of 20. */
export const aboutCents = (value: number): string =>
  value > 0 && value < 10_000 ? `< ${cents(1)}` : cents(Math.floor(value / 10_000))

/** Cents of an amount in dollars, which a person typed; fractions stay, and the service refuses them. */
export const centsOf = (dollars: string): number => Number((Number(dollars) * 100).toFixed(4))
