/**
 * The checks of a report that need nobody else (spec section 2.2, decisions 3.4.5-6): stats that are
 * declared, `maxPerSubmit`, and the ranges of `integrity.stats.rules` while `statsVerification` is on.
 */
import { Function } from "effect"
import type { EnvironmentConfig } from "#rpc/config-document/document"
import type { Rejection, RejectionReason } from "#rpc/stats"

type Aggregation = EnvironmentConfig["stats"][number]["aggregation"]

/** What holds for one stat. */
interface StatRule {
  readonly aggregation: Aggregation
  /** The first check that a value fails, in this order. */
  readonly checks: ReadonlyArray<readonly [RejectionReason, (value: number) => boolean]>
}

export type StatRules = ReadonlyMap<string, StatRule>

/** A value that passed, and how it combines with what is stored. */
export interface AcceptedValue {
  readonly stat: string
  readonly value: number
  readonly aggregation: Aggregation
}

/** The rules of a config, read once for each. */
export const rulesOf: (config: EnvironmentConfig) => StatRules = Function.memoize(
  ({ features, integrity, stats }: EnvironmentConfig): StatRules => {
    const ranges = features.statsVerification ? integrity.stats.rules : []
    const ruleOf = ({ aggregation, key, maxPerSubmit }: (typeof stats)[number]): StatRule => {
      const own = ranges.filter(({ stat }) => stat === key)
      const most = maxPerSubmit ?? Infinity
      const min = Math.max(-Infinity, ...own.map((rule) => rule.min ?? -Infinity))
      const max = Math.min(Infinity, ...own.map((rule) => rule.max ?? Infinity))
      return {
        aggregation,
        checks: [
          ["above_max_per_submit", (value) => value > most],
          ["below_min", (value) => value < min],
          ["above_max", (value) => value > max]
        ]
      }
    }
    return new Map(stats.map((stat) => [stat.key, ruleOf(stat)]))
  }
)

/** A report, sorted by what the rules say of each value. */
export const checkValues = (
  rules: StatRules,
  values: Readonly<Record<string, number>>
): {
  readonly accepted: ReadonlyArray<AcceptedValue>
  readonly rejected: ReadonlyArray<Rejection>
} => {
  const accepted: Array<AcceptedValue> = []
  const rejected: Array<Rejection> = []
  for (const [stat, value] of Object.entries(values)) {
    const rule = rules.get(stat)
    const reason =
      rule === undefined ? "unknown_stat" : rule.checks.find(([, isBroken]) => isBroken(value))?.[0]
    if (rule === undefined || reason !== undefined) {
      rejected.push({ stat, value, reason: reason ?? "unknown_stat" })
    } else {
      accepted.push({ stat, value, aggregation: rule.aggregation })
    }
  }
  return { accepted, rejected }
}
