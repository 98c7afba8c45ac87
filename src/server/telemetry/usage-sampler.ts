/**
 * Samples the open connections of this node and what its entities use, such as the members of its voice
 * calls, for the meter of usage. A sample counts for the whole seconds since the one before it, on a monotonic clock.
 */
import { Clock, Effect, Layer, Schedule, Schema } from "effect"
import { EnvironmentId } from "#rpc/ids"
import { entitiesOnNode } from "#entities/registry"
import { Settings } from "#server/platform/settings/settings"
import { Gateway } from "#server/gateway/gateway"
import { Meter, meterMillis } from "#server/platform/meter"

const isEnvironmentId = Schema.is(EnvironmentId)

const nanosPerSecond = 1_000_000_000n

export const UsageSampler = Layer.effectDiscard(
  Effect.gen(function* () {
    const { enabled } = (yield* Settings).money
    if (!enabled) return
    const { sockets } = yield* Gateway
    const entities = yield* entitiesOnNode
    const meter = yield* Meter
    let last = yield* Clock.monotonicTimeNanos
    const sample = Effect.gen(function* () {
      const seconds = ((yield* Clock.monotonicTimeNanos) - last) / nanosPerSecond
      last += seconds * nanosPerSecond
      const elapsed = Number(seconds)
      for (const { admission } of sockets) {
        if (admission !== undefined && isEnvironmentId(admission.environmentId)) {
          meter.add(admission.environmentId, "connectionSeconds", elapsed)
        }
      }
      for (const { component, environmentId, perSecond } of entities.flatMap((it) => [
        ...it.usage()
      ])) {
        if (isEnvironmentId(environmentId)) meter.add(environmentId, component, perSecond * elapsed)
      }
    })
    yield* sample.pipe(Effect.repeat(Schedule.spaced(meterMillis)), Effect.forkScoped)
    yield* Effect.addFinalizer(() => sample)
  })
)
