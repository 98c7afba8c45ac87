/**
 * Stats reports. A report passes the player's rate limit, the config's rules and the developer's
 * webhook. Then one statement stores the accepted values and logs the rejected ones.
 */
import { Context, DateTime, Effect, Layer, Option } from "effect"
import type { EnvironmentCaller, PlayerCaller } from "#rpc/auth"
import { NotFound, type RateLimited, type Unavailable } from "#rpc/errors/codes"
import type { PeriodValues, Rejection, StatsReported } from "#rpc/stats"
import { StatRepository } from "#sql/stats"
import { sweepHourly } from "#server/platform/database"
import { Throttles } from "#server/platform/throttles"
import { Configs } from "../config/service.ts"
import { makePeriods } from "./periods.ts"
import { type AcceptedValue, checkValues, rulesOf } from "./rules.ts"
import { type RejectionOf, Verification } from "./verification.ts"

/** Days for which rejected values are kept, at most `signalsPerEnvironment` of them. */
const signalDays = 30

/** Reported values of a player, by stat. */
export interface StatSubmission {
  readonly environment: EnvironmentCaller
  readonly player: PlayerCaller
  readonly values: Readonly<Record<string, number>>
}

/** Values of a report after the checks. */
interface CheckedValues {
  readonly accepted: ReadonlyArray<AcceptedValue>
  readonly rejected: ReadonlyArray<Rejection>
}

/** Checks and stores the stats reports of players. */
export class StatReports extends Context.Service<
  StatReports,
  {
    /** Enforces `maxSubmitsPerMinute` of the config, even with `SVC_THROTTLES` off. */
    readonly checkRateLimit: (submission: StatSubmission) => Effect.Effect<void, RateLimited>
    /** Checks the values. The returned effect stores them in one statement. */
    readonly prepare: (
      submission: StatSubmission
    ) => Effect.Effect<Effect.Effect<StatsReported, NotFound>, RateLimited | Unavailable>
    /** Returns the player's all-time values of the stats that the config declares. */
    readonly totals: (player: PlayerCaller) => Effect.Effect<Readonly<Record<string, number>>>
  }
>()("server/features/stats/service/StatReports") {
  static readonly layer = Layer.effect(
    StatReports,
    Effect.gen(function* () {
      const repository = yield* StatRepository
      const configs = yield* Configs
      const throttles = yield* Throttles
      yield* sweepHourly("Rejected stats", (now) =>
        repository.sweep(DateTime.subtract(now, { days: signalDays }))
      )
      return StatReports.of({
        checkRateLimit: Effect.fnUntraced(function* ({ player: { environmentId, playerId } }) {
          const { config } = yield* configs.current(environmentId)
          const limit = config.integrity.stats.maxSubmitsPerMinute
          yield* throttles.take({ limit, seconds: 60 }, `stats:${playerId}`)
        }),
        prepare: yield* makePrepare,
        totals: Effect.fnUntraced(function* ({ environmentId, playerId }) {
          const rules = rulesOf((yield* configs.current(environmentId)).config)
          const totals = yield* repository.totals(environmentId, playerId)
          const declared = totals.filter(({ stat }) => rules.has(stat))
          return Object.fromEntries(declared.map(({ stat, total }) => [stat, total]))
        })
      })
    })
    // The limit is part of the config, so `SVC_THROTTLES=off` does not lift it.
  ).pipe(Layer.provide(Throttles.on))
}

/** Moves the values that the webhook rejected from `accepted` to `rejected`. */
const applyRejections = (
  { accepted, rejected }: CheckedValues,
  rejectionOf: RejectionOf
): CheckedValues => {
  const refused = accepted.flatMap(({ stat, value }) => {
    const reason = rejectionOf(stat)
    return reason === undefined ? [] : [{ stat, value, reason }]
  })
  if (refused.length === 0) return { accepted, rejected }
  return {
    accepted: accepted.filter(({ stat }) => rejectionOf(stat) === undefined),
    rejected: [...rejected, ...refused]
  }
}

const makePrepare = Effect.gen(function* () {
  const repository = yield* StatRepository
  const configs = yield* Configs
  const verification = yield* Verification
  const periodsOf = makePeriods()

  const store = Effect.fnUntraced(function* (
    { environmentId, playerId }: PlayerCaller,
    { accepted, rejected }: CheckedValues,
    zone: string
  ) {
    const now = yield* DateTime.now
    // An unknown stat points to a mistake in the game's code, not to a cheating player: do not log it.
    const signals = rejected.filter(({ reason }) => reason !== "unknown_stat")
    const stats: Record<string, PeriodValues> = {}
    const overflown: Array<Rejection> = []
    if (accepted.length > 0 || signals.length > 0) {
      const periods = periodsOf(zone, DateTime.toEpochMillis(now))
      const owner = { environmentId, playerId }
      const combined = yield* repository.report({
        ...owner,
        ...periods,
        values: accepted,
        signals,
        now
      })
      if (Option.isNone(combined)) return yield* new NotFound()
      for (const { daily, monthly, stat, total, weekly } of combined.value) {
        stats[stat] = { all: total, daily, weekly, monthly }
      }
      for (const { stat, value } of accepted) {
        if (!Object.hasOwn(stats, stat)) overflown.push({ stat, value, reason: "overflow" })
      }
    }
    return { stats, rejected: [...rejected, ...overflown], unlocked: [] } satisfies StatsReported
  })

  return Effect.fnUntraced(function* ({ environment, player, values }: StatSubmission) {
    const { config } = yield* configs.current(player.environmentId)
    const checked = checkValues(rulesOf(config), values)
    const { webhook } = config.integrity.stats
    if (!config.features.statsVerification || checked.accepted.length === 0) {
      return store(player, checked, config.resetTimeZone)
    }
    const { playerId } = player
    const rejectionOf = yield* verification.verify(webhook, {
      environment,
      playerId,
      values: checked.accepted
    })
    return store(player, applyRejections(checked, rejectionOf), config.resetTimeZone)
  })
})
