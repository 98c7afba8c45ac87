/**
 * Wait after a move, in which the nodes bring their members back. Until it ends, the list of members is not
 * whole: the channel sends no snapshots to nodes that attach, and no presence events.
 */
import { channelLimits } from "#rpc/channels/limits"

export class RejoinWait {
  #hasBegun = false
  #endsAt = Number.POSITIVE_INFINITY

  /** Starts the wait, once for each activation. Returns whether this was the first call. */
  begin(now: number): boolean {
    if (this.#hasBegun) return false
    this.#hasBegun = true
    this.#endsAt = now + channelLimits.rejoinMillis
    return true
  }

  get isUnderWay(): boolean {
    return this.#endsAt !== Number.POSITIVE_INFINITY
  }

  /** The end in Unix milliseconds; infinite when the wait is not under way. */
  get endsAt(): number {
    return this.#endsAt
  }

  end(): void {
    this.#endsAt = Number.POSITIVE_INFINITY
  }
}
