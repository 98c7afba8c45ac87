/**
 * Players whom this activation of a channel has removed. A node whose stream broke may have missed that: it
 * still names the player when it attaches again, which must not undo a kick. Who has left waits for the reply
 * to that, and who stayed away for longer than its grace may come back.
 */
import type { ChannelLeaveReason } from "#rpc/channels/frames"
import { channelLimits } from "#rpc/channels/limits"
import type { Emission } from "./model.ts"

export type RemovalReason = Exclude<ChannelLeaveReason, "left" | "timeout">

export class Removals {
  readonly #reasons = new Map<string, RemovalReason>()

  /** Records the start or end of a membership; forgets the oldest removal beyond the bound. */
  record(change: Extract<Emission, { readonly kind: "joined" | "left" }>): void {
    if (change.kind === "joined") return void this.#reasons.delete(change.member.id)
    const { playerId, reason } = change
    if (reason === "left" || reason === "timeout") return
    this.#reasons.set(playerId, reason)
    const [oldest] = this.#reasons.keys()
    if (this.#reasons.size > channelLimits.removalsMax && oldest !== undefined) {
      this.#reasons.delete(oldest)
    }
  }

  /** Why the player was removed; undefined unless it was, and has not joined since. */
  reasonOf(playerId: string): RemovalReason | undefined {
    return this.#reasons.get(playerId)
  }
}
