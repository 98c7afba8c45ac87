/**
 * A runner's own view of its lease on an environment. It counts from the start of the last renewal that
 * succeeded, on two clocks: one may stand still while the machine sleeps, the other may be set back. So the
 * runner stops before the database lets another one begin. Pure.
 */
import { functionLeases as limits } from "#rpc/function-runtime-limits"

/** Milliseconds of the clocks, in one order. */
export type Times = ReadonlyArray<number>

export class RunnerLease {
  readonly epoch: number
  #renewedAt: Times

  constructor(epoch: number, acquiredAt: Times) {
    this.epoch = epoch
    this.#renewedAt = acquiredAt
  }

  /** `startedAt`: when the renewal was sent. */
  renewed(startedAt: Times): void {
    this.#renewedAt = startedAt
  }

  /** Whether another runner may hold the lease soon. */
  isOver(now: Times): boolean {
    return now.some((time, i) => time - (this.#renewedAt[i] ?? time) >= limits.fenceMillis)
  }
}
