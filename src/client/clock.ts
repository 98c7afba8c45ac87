/**
 * The service's clock, estimated on this device. Of the measurements of the last minutes the one with
 * the shortest round trip counts, since half of it bounds the error.
 */
import type { Timers } from "./timers.ts"

/**
 * Lifetime in milliseconds of a measurement, after which a worse one replaces it, because clocks
 * drift.
 */
const trustMillis = 5 * 60_000

export interface GameClock {
  /**
   * The service's time in Unix milliseconds: the same for all players, within half the round trip. The
   * time of this device until the client has connected.
   *
   * @example
   * room.setState({ startsAt: client.clock.now() + 3000 })
   */
  now(): number
}

/** The clock with its source. */
export interface ServerClock extends GameClock {
  /** The last round trip in whole milliseconds; null before the first. */
  readonly latency: number | null
  /** Updates the estimate of the service's time from a reply that has just arrived. */
  measured(serverTime: number, roundTripMillis: number): void
}

export const makeClock = (timers: Timers): ServerClock => {
  /** Server time minus the monotonic clock. */
  let offset: number | undefined
  let shortest = Infinity
  let measuredAt = 0
  let latency: number | null = null
  return {
    get latency() {
      return latency
    },
    now: () => (offset === undefined ? timers.now() : Math.round(offset + timers.elapsed())),
    measured: (serverTime, roundTripMillis) => {
      const elapsed = timers.elapsed()
      latency = Math.round(roundTripMillis)
      if (roundTripMillis > shortest && elapsed - measuredAt < trustMillis) return
      shortest = roundTripMillis
      measuredAt = elapsed
      offset = serverTime + roundTripMillis / 2 - elapsed
    }
  }
}
