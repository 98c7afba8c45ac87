/**
 * A Web Lock around an effect, so that tabs of one origin take turns (spec section 5, rule 4). Where
 * there are no Web Locks, and when one is not granted in time (browsers have been seen to lose them),
 * the effect runs without: the service answers `refresh_race` to a tab that comes second.
 */
import { Effect } from "effect"

const lockTimeout = "5 seconds"

/** Answers the release, once the lock is held. */
const acquire = (locks: LockManager, name: string) =>
  Effect.callback<() => void>((resume, signal) => {
    const onGranted = () => new Promise<void>((release) => resume(Effect.succeed(() => release())))
    // Refused to frames without an origin, and aborted when waiting was too long.
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
