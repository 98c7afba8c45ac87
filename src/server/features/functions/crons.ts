/**
 * Crons of Functions. Each node claims due crons at the start of a minute, and after a deployment. It
 * locks them, moves them to their next time, and commits before it calls the code. So a tick fires once
 * over all nodes. A tick that no running node saw fires once, late.
 */
import { DateTime, Effect, Layer } from "effect"
import { Unavailable } from "#rpc/errors/codes"
import { functions } from "#rpc/functions/limits"
import { type DueCron, FunctionsRepository } from "#sql/functions/settings"
import { makeTransaction } from "#server/platform/database"
import { FairSemaphore } from "#server/platform/fair-semaphore"
import { Tenant } from "#server/platform/tenant"
import { nextTime } from "./deployments.ts"
import { FunctionsRuntime } from "./runtime.ts"

/** Number of crons that one transaction claims. */
const batch = 50

const minuteMillis = 60_000

/** Claims due crons and calls them; returns the number of claimed crons. */
export const makeFireDue = Effect.gen(function* () {
  const repository = yield* FunctionsRepository
  const runtime = yield* FunctionsRuntime
  const transaction = yield* makeTransaction
  const claim = Effect.gen(function* () {
    const now = yield* DateTime.now
    const due = yield* repository.lockDue(now, batch)
    yield* Effect.forEach(due, (row) =>
      repository.postpone({ ...row, dueAt: nextTime(row.cron, now) })
    )
    return due
  })
  const permits = new FairSemaphore({
    ...functions.cronCalls,
    refuse: Effect.fail(new Unavailable())
  })
  const fire = ({ cron, dueAt, environmentId }: DueCron) =>
    permits
      .withPermit(environmentId)(
        runtime.scheduled(environmentId, cron, DateTime.toEpochMillis(dueAt))
      )
      .pipe(
        // The runtime writes what the code has thrown to the logs of the environment.
        Effect.catch(({ _tag }) =>
          Effect.logInfo("Failed to run a cron of functions").pipe(
            Effect.annotateLogs({ environmentId, cron, code: _tag })
          )
        ),
        Effect.provideService(Tenant, environmentId)
      )
  return Effect.gen(function* () {
    const due = yield* transaction(claim)
    yield* Effect.forEach(due, fire, { concurrency: "unbounded", discard: true })
    return due.length
  })
})

/** Fires crons for as long as the node runs. */
export const FunctionsCrons = Layer.effectDiscard(
  Effect.gen(function* () {
    const { unavailable } = yield* FunctionsRuntime
    if (unavailable !== undefined) return
    const fireDue = yield* makeFireDue
    const fireAll = Effect.repeat(fireDue, { until: (count) => count < batch }).pipe(
      Effect.tapDefect((defect) => Effect.logWarning("Failed to fire crons of functions", defect)),
      Effect.exit
    )
    const untilNextMinute = Effect.flatMap(DateTime.now, (now) =>
      Effect.sleep(minuteMillis - (DateTime.toEpochMillis(now) % minuteMillis))
    )
    // A slow call must not delay the next minute.
    yield* Effect.forkScoped(fireAll).pipe(
      Effect.andThen(untilNextMinute),
      Effect.forever,
      Effect.forkScoped
    )
  })
)
