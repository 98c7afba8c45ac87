/**
 * Presence events of a channel. A small channel sends one event per join or leave. A large one
 * sends one combined event per second, because each event costs a write to every socket. It sends a
 * leave even if it sent no join: a player who joined in between may know of the member.
 */
import type { ChannelEvent, ChannelLeaveReason } from "#rpc/channels/frames"
import { channelLimits } from "#rpc/channels/limits"
import { type ChannelState, type Emission, type Member, memberOf, playerView } from "./model.ts"

type Change =
  | { readonly kind: "joined"; readonly member: Member }
  | { readonly kind: "left"; readonly reason: ChannelLeaveReason }

type PresenceEmission = Extract<Emission, { readonly kind: "joined" | "left" }>

export class Presence {
  readonly #channel: string
  #changes = new Map<string, Change>()
  #sentAt = Number.NEGATIVE_INFINITY

  constructor(channel: string) {
    this.#channel = channel
  }

  /** Records a join or leave; returns the event to send now, if any. */
  eventOf(emission: PresenceEmission, audience: number): ChannelEvent | undefined {
    return emission.kind === "joined"
      ? this.joined(emission.member, audience)
      : this.left(emission.playerId, emission.reason, audience)
  }

  /** Records a join; returns the event to send now, if any. */
  joined(member: Member, audience: number): ChannelEvent | undefined {
    if (this.#combines(audience)) return this.#record(member.id, { kind: "joined", member })
    return { t: "channel_player_joined", channel: this.#channel, player: playerView(member) }
  }

  /** Records a leave; returns the event to send now, if any. */
  left(playerId: string, reason: ChannelLeaveReason, audience: number): ChannelEvent | undefined {
    if (this.#combines(audience)) return this.#record(playerId, { kind: "left", reason })
    return { t: "channel_player_left", channel: this.#channel, playerId, reason }
  }

  /** Time at which the combined event is due, Unix milliseconds; infinite when there is none. */
  get dueAt(): number {
    return this.#changes.size === 0
      ? Number.POSITIVE_INFINITY
      : this.#sentAt + channelLimits.presenceMillis
  }

  /** Returns the combined event, if it is due, with the members as they are by now. */
  take(now: number, state: ChannelState | undefined): ChannelEvent | undefined {
    if (now < this.dueAt) return undefined
    const joined: Array<ReturnType<typeof playerView>> = []
    const left: Array<{ readonly playerId: string; readonly reason: ChannelLeaveReason }> = []
    for (const [playerId, change] of this.#changes) {
      if (change.kind === "joined") {
        joined.push(playerView((state && memberOf(state, playerId)) ?? change.member))
      } else left.push({ playerId, reason: change.reason })
    }
    this.#changes = new Map()
    this.#sentAt = now
    return { t: "channel_players", channel: this.#channel, joined, left }
  }

  /** Drops the recorded changes: all nodes are about to receive snapshots. */
  forget(): void {
    this.#changes = new Map()
  }

  #combines(audience: number): boolean {
    return audience > channelLimits.largeAudience || this.#changes.size > 0
  }

  #record(playerId: string, change: Change): undefined {
    this.#changes.delete(playerId)
    this.#changes.set(playerId, change)
  }
}
