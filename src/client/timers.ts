/** Clock, timers and randomness of the client: those of the host, or virtual ones in tests. */

export interface Timers {
  /** Wall clock in Unix milliseconds. */
  now(): number
  /** Monotonic clock in milliseconds, for durations. */
  elapsed(): number
  /** A number in [0, 1). */
  random(): number
  /** Runs once after this many milliseconds, unless the returned function cancels it. */
  after(millis: number, run: () => void): () => void
}

export const systemTimers: Timers = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
  random: () => Math.random(),
  after: (millis, run) => {
    const timer = setTimeout(run, millis)
    return () => clearTimeout(timer)
  }
}

/** Waits. */
export const pause = (timers: Timers, millis: number): Promise<void> =>
  new Promise((resolve) => void timers.after(millis, resolve))

/** Settles like the promise, or fails with an error after this many milliseconds. */
export const withTimeout = <A>(
  timers: Timers,
  promise: Promise<A>,
  millis: number,
  timedOut: () => Error
): Promise<A> =>
  new Promise((resolve, reject) => {
    const cancel = timers.after(millis, () => reject(timedOut()))
    promise.then(resolve, reject).finally(cancel)
  })

/** Retries with growing delays as long as the error is transient and time is left. */
export const retry = async <A>(
  timers: Timers,
  attempt: () => Promise<A>,
  isTransient: (error: unknown) => boolean,
  firstMillis: number,
  timeoutMillis: number
): Promise<A> => {
  const end = timers.elapsed() + timeoutMillis
  for (let delay = firstMillis; ; delay *= 2) {
    try {
      return await attempt()
    } catch (error) {
      if (!isTransient(error) || timers.elapsed() + delay > end) throw error
    }
    await pause(timers, delay)
  }
}
