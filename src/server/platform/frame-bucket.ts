/** Token bucket that limits the frames of one connection: a rate per second, with a burst. */
import { socketLimits } from "./socket-limits.ts"

export class FrameBucket {
  readonly #perMilli: number
  readonly #burst: number
  #tokens: number
  #at: number
  #drops = 0
  #dropsSince = 0

  constructor(
    now: number,
    perSecond: number = socketLimits.framesPerSecond,
    burst: number = socketLimits.framesBurst
  ) {
    this.#perMilli = perSecond / 1000
    this.#burst = burst
    this.#tokens = burst
    this.#at = now
  }

  /**
   * Consumes the tokens of a frame. Returns false when there are too few, and the caller must drop
   * the frame.
   */
  take(now: number, cost = 1): boolean {
    this.#tokens = Math.min(this.#burst, this.#tokens + (now - this.#at) * this.#perMilli)
    this.#at = now
    if (this.#tokens < cost) return false
    this.#tokens -= cost
    return true
  }

  /** Counts a dropped frame; true when so many were dropped lately that it is abuse. */
  drop(now: number): boolean {
    if (now - this.#dropsSince > socketLimits.dropsWindowSeconds * 1000) {
      this.#dropsSince = now
      this.#drops = 0
    }
    this.#drops++
    return this.#drops >= socketLimits.dropsUntilAbuse
  }

  /** Seconds until there is a token for a frame, rounded up, at least 1. */
  get retryAfterSeconds(): number {
    return Math.max(1, Math.ceil((1 - this.#tokens) / this.#perMilli / 1000))
  }
}
