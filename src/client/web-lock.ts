/**
 * Runs an effect under a Web Lock, so that tabs of one origin exclude each other. Without Web Locks, or
 * when the lock is not granted within five seconds (browsers sometimes lose locks), the effect runs
 * anyway: the service answers `refresh_race` to the slower tab.
 */
import { Effect } from "effect"

const lockTimeout = "5 seconds"

/** Acquires the lock and returns its release. */
const acquire = (locks: LockManager, name: string) =>
  Effect.callback<() => void>((resume, signal) => {
    const onGranted = () => new Promise<void>((release) => resume(Effect.succeed(() => release())))
    // The request fails in frames without an origin, and when the timeout aborts it.
    locks.request(name, { signal }, onGranted).catch(() => resume(Effect.succeed(() => undefined)))
  })

export const withWebLock =
  (name: string) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> => {
    const locks = globalThis.navigator?.locks
    if (locks === undefined) return effect
    return Effect.acquireUseRelease(
      Effect.timeoutOption(acquire(locks, name), lockTimeout),
      () => effect,
      (release) => Effect.sync(() => release._tag === "Some" && release.value())
    )
  }
