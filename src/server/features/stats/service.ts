/**
 * Reports of stats (spec section 4.3, decisions 3.4.4-7): the pace of a player, the rules, the
 * developer's webhook, and then one statement that stores what passed and notes what did not.
 */
import { Context, DateTime, Effect, Layer, Option } from "effect"
import type { EnvironmentCaller, PlayerCaller } from "#rpc/auth"
import { NotFound, type RateLimited } from "#rpc/errors/codes"
import { stats as limits } from "#rpc/limits"
import type { PeriodValues, Rejection, StatsReported } from "#rpc/stats"
import { StatRepository } from "#sql/stats"
import { sweepHourly } from "#server/platform/database"
import { Throttles } from "#server/platform/throttles"
import { Configs } from "../config/service.ts"
import { makePeriods } from "./periods.ts"
import { type AcceptedValue, checkValues, rulesOf } from "./rules.ts"
import { type RejectionOf, Verification } from "./verification.ts"

/** Values that a player reports. */
export interface StatSubmission {
  readonly environment: EnvironmentCaller
  readonly player: PlayerCaller
  readonly values: Readonly<Record<string, number>>
}

/** A report whose values have been judged. */
interface CheckedValues {
  readonly accepted: ReadonlyArray<AcceptedValue>
  readonly rejected: ReadonlyArray<Rejection>
}

/** What players report, and what it came to. */
export class StatReports extends Context.Service<
  StatReports,
  {
    /** Takes one report of the player's minute; whatever else is throttled, this always is. */
    readonly checkRateLimit: (submitted: StatSubmission) => Effect.Effect<void, RateLimited>
    /** Judges the values; the effect in the answer stores them, at once and together. */
    readonly prepare: (
      submitted: StatSubmission
    ) => Effect.Effect<Effect.Effect<StatsReported, NotFound>>
    /** The player's values for all time, of the stats that the config has. */
    readonly totals: (player: PlayerCaller) => Effect.Effect<Readonly<Record<string, number>>>
  }
>()("server/features/stats/service/StatReports") {
  static readonly layer = Layer.effect(
    StatReports,
    Effect.gen(function* () {
      const rows = yield* StatRepository
      const configs = yield* Configs
      const throttles = yield* Throttles
      yield* sweepHourly("Rejected stats", (now) =>
        rows.sweep(DateTime.subtract(now, { days: limits.signalDays }))
      )
      return StatReports.of({
        checkRateLimit: Effect.fnUntraced(function* ({ player: { environmentId, playerId } }) {
          const { config } = yield* configs.current(environmentId)
          const burst = config.integrity.stats.maxSubmitsPerMinute
          yield* throttles.take({ burst, seconds: 60 }, `stats:${playerId}`)
        }),
        prepare: yield* makePrepare,
        totals: Effect.fnUntraced(function* ({ environmentId, playerId }) {
          const rules = rulesOf((yield* configs.current(environmentId)).config)
          const totals = yield* rows.totals(environmentId, playerId)
          const declared = totals.filter(({ stat }) => rules.has(stat))
          return Object.fromEntries(declared.map(({ stat, total }) => [stat, total]))
        })
      })
    })
    // The cap is a rule of the game, not a throttle that an operator lifts.
  ).pipe(Layer.provide(Throttles.on))
}

/** The values that somebody else has judged, sorted. */
const applyRejections = (
  { accepted, rejected }: CheckedValues,
  verdict: RejectionOf
): CheckedValues => {
  const refused = accepted.flatMap(({ stat, value }) => {
    const reason = verdict(stat)
    return reason === undefined ? [] : [{ stat, value, reason }]
  })
  if (refused.length === 0) return { accepted, rejected }
  return {
    accepted: accepted.filter(({ stat }) => verdict(stat) === undefined),
    rejected: [...rejected, ...refused]
  }
}

const makePrepare = Effect.gen(function* () {
  const rows = yield* StatRepository
  const configs = yield* Configs
  const verification = yield* Verification
  const periodsOf = makePeriods()

  const store = Effect.fnUntraced(function* (
    { environmentId, playerId }: PlayerCaller,
    { accepted, rejected }: CheckedValues,
    zone: string
  ) {
    const now = yield* DateTime.now
    // What the config does not know says something about the game's code, not about the player.
    const signals = rejected.filter(({ reason }) => reason !== "unknown_stat")
    const stats: Record<string, PeriodValues> = {}
    if (accepted.length > 0 || signals.length > 0) {
      const periods = periodsOf(zone, DateTime.toEpochMillis(now))
      const owner = { environmentId, playerId }
      const combined = yield* rows.report({ ...owner, ...periods, values: accepted, signals, now })
      if (Option.isNone(combined)) return yield* new NotFound()
      for (const { daily, monthly, stat, total, weekly } of combined.value) {
        stats[stat] = { all: total, daily, weekly, monthly }
      }
    }
    return { stats, rejected, unlocked: [] } satisfies StatsReported
  })

  return Effect.fnUntraced(function* ({ environment, player, values }: StatSubmission) {
    const { config } = yield* configs.current(player.environmentId)
    const checked = checkValues(rulesOf(config), values)
    const { webhook } = config.integrity.stats
    if (!config.features.statsVerification || checked.accepted.length === 0) {
      return store(player, checked, config.resetTimeZone)
    }
    const { playerId } = player
    const verdict = yield* verification.verify(webhook, {
      environment,
      playerId,
      values: checked.accepted
    })
    return store(player, applyRejections(checked, verdict), config.resetTimeZone)
  })
})
