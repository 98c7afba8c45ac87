/**
 * Runner's view of its own lease on an environment. It counts from the start of the last successful
 * renewal on two clocks. One clock may stop while the machine sleeps, and an operator may set back the
 * other. So the runner stops before the database lets another one begin. Pure.
 */
import { functionLeases } from "#rpc/functions/runtime-limits"

/** Milliseconds of the clocks, in a fixed order. */
export type Times = ReadonlyArray<number>

export class RunnerLease {
  readonly epoch: number
  #renewedAt: Times

  constructor(epoch: number, acquiredAt: Times) {
    this.epoch = epoch
    this.#renewedAt = acquiredAt
  }

  /** Records a renewal. `startedAt` holds the times at which the runner sent it. */
  renewed(startedAt: Times): void {
    this.#renewedAt = startedAt
  }

  /** Whether another runner may soon hold the lease. */
  isOver(now: Times): boolean {
    return now.some((time, i) => time - (this.#renewedAt[i] ?? time) >= functionLeases.fenceMillis)
  }
}
