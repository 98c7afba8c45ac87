/**
 * Runs a task under a Web Lock, so that tabs of one origin exclude each other. Without Web Locks, or
 * when the lock is not granted within five seconds (browsers sometimes lose locks), the task runs
 * anyway: the service answers `refresh_race` to the slower tab.
 */
import type { Timers } from "./timers.ts"

const lockMillis = 5000

/** Acquires the lock and returns its release. */
const acquire = (locks: LockManager, name: string, timers: Timers): Promise<() => void> =>
  new Promise((resolve) => {
    const aborter = new AbortController()
    const withoutLock = () => resolve(() => undefined)
    const cancel = timers.after(lockMillis, () => {
      aborter.abort()
      withoutLock()
    })
    const onGranted = () => {
      cancel()
      return new Promise<void>((release) => resolve(() => release()))
    }
    // The request fails in frames without an origin, and when the timeout aborts it.
    locks.request(name, { signal: aborter.signal }, onGranted).catch(() => {
      cancel()
      withoutLock()
    })
  })

export const withWebLock = async <A>(
  name: string,
  timers: Timers,
  task: () => Promise<A>
): Promise<A> => {
  const locks = globalThis.navigator?.locks
  if (locks === undefined) return task()
  const release = await acquire(locks, name, timers)
  try {
    return await task()
  } finally {
    release()
  }
}
