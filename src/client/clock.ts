/**
 * The service's clock, estimated on this device. Of the measurements of the last minutes the one with
 * the shortest round trip counts, since half of it bounds the error.
 */
import type { Timers } from "./timers.ts"

/** A measurement is replaced by a worse one after this long, because clocks drift. */
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

export class ServerClock implements GameClock {
  readonly #timers: Timers
  /** Server time minus the monotonic clock. */
  #offset: number | undefined
  #roundTrip = Infinity
  #measuredAt = 0
  #latency: number | null = null

  constructor(timers: Timers) {
    this.#timers = timers
  }

  /** The last round trip in milliseconds; null before the first. */
  get latency(): number | null {
    return this.#latency
  }

  now(): number {
    return this.#offset === undefined
      ? this.#timers.now()
      : Math.round(this.#offset + this.#timers.elapsed())
  }

  /** Takes the service's time from a reply that has just arrived. */
  measured(serverTime: number, roundTripMillis: number): void {
    const elapsed = this.#timers.elapsed()
    this.#latency = roundTripMillis
    if (roundTripMillis > this.#roundTrip && elapsed - this.#measuredAt < trustMillis) return
    this.#roundTrip = roundTripMillis
    this.#measuredAt = elapsed
    this.#offset = serverTime + roundTripMillis / 2 - elapsed
  }
}
