/**
 * The list of runners, kept in memory: the library reads it ten times a second. It is read anew when
 * some runner says that it has changed it, and every second, since a runner that is silent falls off
 * it by itself.
 */
import { Clock, Effect, Layer } from "effect"
import { RunnerStorage } from "effect/cluster"
import { Invalidation } from "#server/platform/invalidation"

const keepMillis = 1000
const publishMillis = 500

type Storage = RunnerStorage.RunnerStorage["Service"]

const make = Effect.gen(function* () {
  const storage = yield* RunnerStorage.RunnerStorage
  const invalidation = yield* Invalidation
  const clock = yield* Clock.Clock
  let list: Effect.Success<Storage["getRunners"]> = []
  let until = 0
  /** Counts the news; a list that was asked for before the last is old. */
  let news = 0

  const forget = Effect.sync(() => {
    until = 0
    news += 1
  })

  /** Who does not hear of it reads the list again soon enough. */
  const tell = invalidation
    .publish({ kind: "runners", id: "" })
    .pipe(Effect.timeoutOption(publishMillis), Effect.ignoreCause, Effect.andThen(forget))

  yield* invalidation.subscribe(({ id, kind }) =>
    (kind === "runners" && id === "") || kind === "everything" ? forget : Effect.void
  )

  return RunnerStorage.RunnerStorage.of({
    ...storage,
    getRunners: Effect.suspend(() => {
      const now = clock.currentTimeMillisUnsafe()
      if (now < until) return Effect.succeed(list)
      const asked = news
      return Effect.map(storage.getRunners, (read) => {
        if (asked === news) {
          list = read
          until = now + keepMillis
        }
        return read
      })
    }),
    register: (runner, healthy) => Effect.tap(storage.register(runner, healthy), () => tell),
    unregister: (address) => Effect.tap(storage.unregister(address), () => tell),
    setRunnerHealth: (address, healthy) =>
      Effect.tap(storage.setRunnerHealth(address, healthy), () => tell)
  })
})

/** Decorates the storage below it. */
export const RunnerCache = Layer.effect(RunnerStorage.RunnerStorage, make)
