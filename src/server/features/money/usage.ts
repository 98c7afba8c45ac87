/**
 * Usage of a developer's projects in a month, and its charge. An open month is an estimate at today's
 * prices. The service closes a month an hour after its end, in one transaction with its charge. A
 * closed month never changes.
 */
import { Context, DateTime, Effect, Layer, Option, Schema } from "effect"
import type { DeveloperId } from "#rpc/ids"
import { UsageReport } from "#rpc/money"
import { LedgerRepository } from "#sql/money/ledger"
import { MeteringRepository } from "#sql/money/usage"
import { makeTransaction, sweepHourly } from "#server/platform/database"
import { Meter } from "#server/platform/meter"
import { oldestOpen, periodOf } from "#server/platform/months"
import { Settings } from "#server/platform/settings/settings"
import { Ledger } from "./ledger.ts"
import { chargeUsage } from "./postings.ts"
import { chargeOf, rate } from "./prices.ts"

/** Maximum number of months that one run closes. The next run closes more. */
const closedMax = 10_000

const StoredReport = Schema.fromJsonString(UsageReport)
const decodeReport = Schema.decodeEffect(StoredReport)
const encodeReport = Schema.encodeSync(StoredReport)

interface ReportRequest {
  readonly developerId: DeveloperId
  /** Month of the report; the current month by default. */
  readonly period: string | undefined
  /** Whether to store the counts of this node first. */
  readonly refresh: boolean
}

export class UsageReports extends Context.Service<
  UsageReports,
  {
    readonly read: (request: ReportRequest) => Effect.Effect<UsageReport>
    /** Measures stored data, and charges ended months. */
    readonly run: (now: DateTime.Utc) => Effect.Effect<void>
  }
>()("server/features/money/usage/UsageReports") {
  static readonly layer = Layer.effect(
    UsageReports,
    Effect.gen(function* () {
      const { enabled } = (yield* Settings).money
      const read = yield* makeRead
      if (!enabled) {
        return UsageReports.of({
          read: ({ period }) =>
            Effect.map(DateTime.now, (now) => emptyReport(period ?? periodOf(now), now)),
          run: () => Effect.void
        })
      }
      const run = yield* makeRun
      yield* sweepHourly("Usage", run)
      return UsageReports.of({ read, run })
    })
  )
}

const emptyReport = (period: string, now: DateTime.Utc): UsageReport => ({
  period,
  currency: "usd",
  components: [],
  totalMicroUsd: 0,
  carriedMicroUsd: 0,
  chargedCents: 0,
  estimate: true,
  refreshedAt: DateTime.formatIso(now)
})

/** Estimates the report of an open month from its stored usage, with its exact cost. */
const makeEstimate = Effect.gen(function* () {
  const repository = yield* MeteringRepository
  const { prices } = (yield* Settings).money
  return Effect.fnUntraced(function* (developerId: DeveloperId, period: string) {
    const totals = yield* repository.totals({ developerId, period })
    const carried = yield* repository.carriedInto({ developerId, period })
    const components = rate(totals, prices)
    const cost = components.reduce((sum, { microUsd }) => sum + microUsd, 0n)
    const report: UsageReport = {
      ...emptyReport(period, yield* DateTime.now),
      components: components.map(({ microUsd, quantity, ...component }) => ({
        ...component,
        quantity: Number(quantity),
        microUsd: Number(microUsd)
      })),
      totalMicroUsd: Number(cost),
      carriedMicroUsd: Number(carried)
    }
    return { report, due: cost + carried }
  })
})

const makeRead = Effect.gen(function* () {
  const repository = yield* MeteringRepository
  const meter = yield* Meter
  const estimate = yield* makeEstimate
  return Effect.fn("UsageReports.read")(function* ({
    developerId,
    period: asked,
    refresh
  }: ReportRequest) {
    const now = yield* DateTime.now
    const period = asked ?? periodOf(now)
    const closed = yield* repository.find({ developerId, period })
    if (Option.isSome(closed)) return yield* Effect.orDie(decodeReport(closed.value.report))
    if (refresh && period >= oldestOpen(now)) {
      yield* meter.flush
      yield* repository.setActivePlayers({ period, developerId })
    }
    return (yield* estimate(developerId, period)).report
  })
})

const makeRun = Effect.gen(function* () {
  const repository = yield* MeteringRepository
  const postings = yield* LedgerRepository
  const ledger = yield* Ledger
  const transaction = yield* makeTransaction
  const estimate = yield* makeEstimate

  const close = Effect.fnUntraced(function* (developerId: DeveloperId, period: string) {
    yield* postings.lock(developerId)
    if (Option.isSome(yield* repository.find({ developerId, period }))) return
    const { due, report } = yield* estimate(developerId, period)
    const { carried, cents } = chargeOf(due)
    const final = { ...report, estimate: false, chargedCents: Number(cents) }
    yield* repository.close({
      developerId,
      period,
      report: encodeReport(final),
      carriedMicroUsd: carried,
      closedAt: yield* DateTime.now
    })
    yield* ledger.post({
      developerId,
      kind: "usage",
      source: `usage:${developerId}:${period}`,
      description: `Usage of ${period}`,
      movement: chargeUsage(cents)
    })
  })

  return Effect.fn("UsageReports.run")(function* (now: DateTime.Utc) {
    const current = periodOf(now)
    const open = oldestOpen(now)
    const hour = DateTime.formatIso(now).slice(0, "2026-11-22T20".length)
    yield* repository.addStorage({ id: `storage:${hour}`, period: current, createdAt: now })
    for (const period of new Set([open, current])) {
      yield* repository.setActivePlayers({ period, developerId: null })
    }
    for (const due of yield* repository.listOpen({ before: open, limit: closedMax })) {
      yield* transaction(close(due.developerId, due.period))
    }
  })
})
