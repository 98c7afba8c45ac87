/**
 * Runs a task under a Web Lock, so that tabs of one origin exclude each other. The task also runs
 * without Web Locks, or when the lock is not granted within five seconds: browsers sometimes lose
 * locks. The service then answers `refresh_race` to the slower tab.
 */
import type { Timers } from "./timers.ts"

const lockMillis = 5000

export const withWebLock = async <A>(
  name: string,
  timers: Timers,
  task: () => Promise<A>
): Promise<A> => {
  const locks = globalThis.navigator?.locks
  let result: Promise<A> | undefined
  const run = () => (result ??= task())
  if (locks !== undefined) {
    const aborter = new AbortController()
    const cancel = timers.after(lockMillis, () => aborter.abort())
    const granted = () => {
      cancel()
      return run()
    }
    // The request fails in frames without an origin, when the timeout aborts it, and with the task.
    await locks.request(name, { signal: aborter.signal }, granted).catch(cancel)
  }
  return run()
}
