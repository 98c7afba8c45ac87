/**
 * Usage of Functions by the hour: requests, CPU time and bytes. A node sums the reports of the runtime
 * and writes them every ten seconds, and at its stop. A crash loses unwritten sums.
 */
import { DateTime, Effect, Latch, Layer } from "effect"
import { functionUsage } from "#rpc/functions/limits"
import type { EnvironmentId } from "#rpc/ids"
import { FunctionsRecordRepository } from "#sql/functions/records"
import { sweepDaily } from "#server/platform/database"
import { Meter } from "#server/platform/meter"
import { type FunctionUsage, FunctionsUsage } from "./control-plane.ts"

const add = (a: FunctionUsage, b: FunctionUsage): FunctionUsage => ({
  requests: a.requests + b.requests,
  cpuMillis: a.cpuMillis + b.cpuMillis,
  bytes: a.bytes + b.bytes
})

export const FunctionsUsageLive = Layer.effect(
  FunctionsUsage,
  Effect.gen(function* () {
    const meter = yield* Meter
    const repository = yield* FunctionsRecordRepository
    const nonEmpty = yield* Latch.make(false)
    let pending = new Map<EnvironmentId, FunctionUsage>()
    const addAll = (environmentId: EnvironmentId, usage: FunctionUsage): void => {
      const before = pending.get(environmentId)
      pending.set(environmentId, before === undefined ? usage : add(before, usage))
      nonEmpty.openUnsafe()
    }
    const write = Effect.gen(function* () {
      const hour = DateTime.startOf(yield* DateTime.now, "hour")
      nonEmpty.closeUnsafe()
      const taken = pending
      pending = new Map()
      const rows = [...taken].map(([environmentId, { bytes, cpuMillis, requests }]) => ({
        environmentId,
        hour,
        requests: Math.round(requests),
        cpuMillis: Math.round(cpuMillis),
        bytes: Math.round(bytes)
      }))
      if (rows.length === 0) return
      yield* Effect.onError(repository.addUsage(rows), () =>
        Effect.sync(() => taken.forEach((usage, environmentId) => addAll(environmentId, usage)))
      )
    })
    const tryWrite = Effect.exit(
      Effect.tapDefect(write, (defect) =>
        Effect.logWarning("Failed to write the usage of functions", defect)
      )
    )
    yield* Effect.addFinalizer(() => tryWrite)
    yield* nonEmpty.await.pipe(
      Effect.andThen(Effect.sleep(functionUsage.flushMillis)),
      Effect.andThen(tryWrite),
      Effect.forever,
      Effect.forkScoped
    )
    yield* sweepDaily("Usage of functions", (now) =>
      repository.sweepUsage(DateTime.subtract(now, { days: functionUsage.keptDays }))
    )
    return FunctionsUsage.of({
      add: (environmentId, usage) =>
        Effect.sync(() => {
          addAll(environmentId, usage)
          meter.add(environmentId, "functionRequests", Math.round(usage.requests))
          meter.add(environmentId, "functionCpuMillis", Math.round(usage.cpuMillis))
        })
    })
  })
)
