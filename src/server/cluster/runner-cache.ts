/**
 * Cache of the runner list, which Effect Cluster reads ten times a second. Read again when a runner
 * announces a change, and every second, since the entry of a dead runner expires without one.
 */
import { Clock, Effect, Layer } from "effect"
import { RunnerStorage } from "effect/cluster"
import { Invalidation } from "#server/platform/invalidation"

const maxAgeMillis = 1000
const publishMillis = 500

type Storage = RunnerStorage.RunnerStorage["Service"]

const make = Effect.gen(function* () {
  const storage = yield* RunnerStorage.RunnerStorage
  const invalidation = yield* Invalidation
  const clock = yield* Clock.Clock
  let list: Effect.Success<Storage["getRunners"]> = []
  let expiresAt = 0
  /** Counts invalidations: a read that began before the last one is stale. */
  let version = 0

  const invalidate = Effect.sync(() => {
    expiresAt = 0
    version += 1
  })

  /** Best effort: a runner that misses the announcement reads the list within a second. */
  const announce = invalidation
    .publish({ kind: "runners", id: "" })
    .pipe(Effect.timeoutOption(publishMillis), Effect.ignoreCause, Effect.andThen(invalidate))

  yield* invalidation.subscribe(({ id, kind }) =>
    (kind === "runners" && id === "") || kind === "everything" ? invalidate : Effect.void
  )

  return RunnerStorage.RunnerStorage.of({
    ...storage,
    getRunners: Effect.suspend(() => {
      const now = clock.currentTimeMillisUnsafe()
      if (now < expiresAt) return Effect.succeed(list)
      const readVersion = version
      return Effect.map(storage.getRunners, (read) => {
        if (readVersion === version) {
          list = read
          expiresAt = now + maxAgeMillis
        }
        return read
      })
    }),
    register: (runner, healthy) => Effect.tap(storage.register(runner, healthy), () => announce),
    unregister: (address) => Effect.tap(storage.unregister(address), () => announce),
    setRunnerHealth: (address, healthy) =>
      Effect.tap(storage.setRunnerHealth(address, healthy), () => announce)
  })
})

/** Wraps the runner storage below it. */
export const RunnerCache = Layer.effect(RunnerStorage.RunnerStorage, make)
