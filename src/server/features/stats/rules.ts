/**
 * Local checks of a report. The stat must be declared, and the value at most `maxPerSubmit`. While
 * `statsVerification` is on, the value must also be in the ranges of `integrity.stats.rules`.
 */
import { Function } from "effect"
import type { EnvironmentConfig } from "#rpc/config-document/document"
import type { Rejection, RejectionReason } from "#rpc/stats"

type Aggregation = EnvironmentConfig["stats"][number]["aggregation"]

/** Aggregation and checks of one stat. */
interface StatRule {
  readonly aggregation: Aggregation
  /**
   * Checks in order. Each function returns whether the value breaks it, and the first broken check
   * counts.
   */
  readonly checks: ReadonlyArray<readonly [RejectionReason, (value: number) => boolean]>
}

export type StatRules = ReadonlyMap<string, StatRule>

/** A value that passed the checks; `aggregation` combines it with the stored value. */
export interface AcceptedValue {
  readonly stat: string
  readonly value: number
  readonly aggregation: Aggregation
}

/** Returns the rules of a config; cached per config object. */
export const rulesOf: (config: EnvironmentConfig) => StatRules = Function.memoize(
  ({ features, integrity, stats }: EnvironmentConfig): StatRules => {
    const ranges = features.statsVerification ? integrity.stats.rules : []
    const ruleOf = ({ aggregation, key, maxPerSubmit }: (typeof stats)[number]): StatRule => {
      const own = ranges.filter(({ stat }) => stat === key)
      const limit = maxPerSubmit ?? Infinity
      const min = Math.max(-Infinity, ...own.map((rule) => rule.min ?? -Infinity))
      const max = Math.min(Infinity, ...own.map((rule) => rule.max ?? Infinity))
      return {
        aggregation,
        checks: [
          ["above_max_per_submit", (value) => value > limit],
          ["below_min", (value) => value < min],
          ["above_max", (value) => value > max]
        ]
      }
    }
    return new Map(stats.map((stat) => [stat.key, ruleOf(stat)]))
  }
)

/** Splits the values of a report into accepted and rejected ones. */
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
