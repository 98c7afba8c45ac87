/**
 * Cache of the runner list, which Effect Cluster reads ten times a second. Read again when a runner
 * announces a change, and every second, since the entry of a dead runner expires without one.
 */
import { Clock, Effect, Layer } from "effect"
import { RunnerStorage } from "effect/cluster"
import { Invalidation } from "#server/platform/invalidation"
import { monotonicMillis } from "#server/platform/monotonic"
import { Membership } from "./membership.ts"

const maxAgeMillis = 1000
const publishMillis = 500

type Storage = RunnerStorage.RunnerStorage["Service"]

const make = Effect.gen(function* () {
  const storage = yield* RunnerStorage.RunnerStorage
  const invalidation = yield* Invalidation
  const now = monotonicMillis(yield* Clock.Clock)
  let list: Effect.Success<Storage["getRunners"]> = []
  let expiresAt = -Infinity
  /** Counts invalidations: a read that began before the last one is stale. */
  let version = 0

  const invalidate = Effect.sync(() => {
    expiresAt = -Infinity
    version += 1
  })

  /** Best effort: a runner that misses the announcement reads the list within a second. */
  const announce = invalidation
    .publish({ kind: "runners", id: "" })
    .pipe(Effect.timeoutOption(publishMillis), Effect.ignoreCause, Effect.andThen(invalidate))

  yield* invalidation.subscribe(({ kind }) =>
    kind === "runners" || kind === "everything" ? invalidate : Effect.void
  )

  return RunnerStorage.RunnerStorage.of({
    ...storage,
    getRunners: Effect.suspend(() => {
      const readAt = now()
      if (readAt < expiresAt) return Effect.succeed(list)
      const readVersion = version
      return Effect.tap(storage.getRunners, (read) =>
        Effect.sync(() => {
          if (readVersion !== version) return
          list = read
          expiresAt = readAt + maxAgeMillis
        })
      )
    }),
    register: (runner, healthy) => Effect.tap(storage.register(runner, healthy), () => announce),
    unregister: (address) => Effect.tap(storage.unregister(address), () => announce)
  })
})

/** Wraps the runner storage below it. */
export const RunnerCache = Layer.effect(RunnerStorage.RunnerStorage, make)

/** The runner list with the verdict of {@link Membership}, alike on all runners, on who is healthy. */
export const HealthFromMembership = Layer.effect(
  RunnerStorage.RunnerStorage,
  Effect.gen(function* () {
    const storage = yield* RunnerStorage.RunnerStorage
    const { isEvicted } = yield* Membership
    return RunnerStorage.RunnerStorage.of({
      ...storage,
      getRunners: Effect.map(storage.getRunners, (list) =>
        list.map(([runner]) => [runner, !isEvicted(runner.address)] as const)
      ),
      setRunnerHealth: () => Effect.void
    })
  })
)
