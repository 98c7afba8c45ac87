/**
 * Changes to apply to what is alive. A change that fails, for instance while the database is away,
 * is repeated until it is applied. A ban or a disabled feature must not be forgotten.
 */
import { Effect, Schedule } from "effect"

const retrySchedule = Schedule.spaced("1 second")

/** Applies changes. It repeats a failed one in the background, once for each key. */
export const makePendingChanges = Effect.gen(function* () {
  const scope = yield* Effect.scope
  const pending = new Set<string>()
  return (key: string, apply: Effect.Effect<void>): Effect.Effect<void> =>
    Effect.catchDefect(apply, (defect) => {
      // The change that is pending reads the latest state.
      if (pending.has(key)) return Effect.void
      pending.add(key)
      const repeated = Effect.catchDefect(apply, Effect.fail).pipe(
        Effect.retry(retrySchedule),
        Effect.ignore,
        Effect.ensuring(Effect.sync(() => pending.delete(key)))
      )
      return Effect.logError("Failed to apply a change; will retry", defect).pipe(
        Effect.annotateLogs({ of: key }),
        Effect.andThen(Effect.forkIn(repeated, scope)),
        Effect.asVoid
      )
    })
})

/** Applies changes together. If that fails, each is applied alone, so that one holds up no other. */
export const makePendingBatches = Effect.map(
  makePendingChanges,
  (applyUntilDone) =>
    <Key extends string>(
      keys: ReadonlyArray<Key>,
      apply: (keys: ReadonlyArray<Key>) => Effect.Effect<void>
    ): Effect.Effect<void> =>
      Effect.catchDefect(apply(keys), () =>
        Effect.forEach(keys, (key) => applyUntilDone(key, apply([key])), { discard: true })
      )
)
