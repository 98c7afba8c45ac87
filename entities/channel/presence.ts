/**
 * How it is told who comes and goes. Few hear of each at once; in a channel of many sockets all that
 * happens within a second is told together, since each piece of news costs as much as there are
 * sockets. A leave is always told, also of one whose coming was not: somebody who came in between may
 * know of it.
 */
import type { ChannelEvent, ChannelLeaveReason } from "#rpc/channels"
import { channels as limits } from "#rpc/limits"
import { type Member, playerView } from "./model.ts"

type News =
  | { readonly kind: "joined"; readonly member: Member }
  | { readonly kind: "left"; readonly reason: ChannelLeaveReason }

export class Presence {
  readonly #channel: string
  #news = new Map<string, News>()
  #toldAt = Number.NEGATIVE_INFINITY

  constructor(channel: string) {
    this.#channel = channel
  }

  /** Somebody came in; answers what is to be told now. */
  joined(member: Member, audience: number): ChannelEvent | undefined {
    if (this.#gathers(audience)) return this.#note(member.id, { kind: "joined", member })
    return { t: "channel_player_joined", channel: this.#channel, player: playerView(member) }
  }

  /** Somebody went out; answers what is to be told now. */
  left(playerId: string, reason: ChannelLeaveReason, audience: number): ChannelEvent | undefined {
    if (this.#gathers(audience)) return this.#note(playerId, { kind: "left", reason })
    return { t: "channel_player_left", channel: this.#channel, playerId, reason }
  }

  /** When the news is due, Unix milliseconds; infinite when there is none. */
  get dueAt(): number {
    return this.#news.size === 0 ? Number.POSITIVE_INFINITY : this.#toldAt + limits.presenceMillis
  }

  /** The news, if it is due. */
  take(now: number): ChannelEvent | undefined {
    if (now < this.dueAt) return undefined
    const joined: Array<ReturnType<typeof playerView>> = []
    const left: Array<{ readonly playerId: string; readonly reason: ChannelLeaveReason }> = []
    for (const [playerId, news] of this.#news) {
      if (news.kind === "joined") joined.push(playerView(news.member))
      else left.push({ playerId, reason: news.reason })
    }
    this.#news = new Map()
    this.#toldAt = now
    return { t: "channel_players", channel: this.#channel, joined, left }
  }

  /** Everybody is about to be told who is in. */
  forget(): void {
    this.#news = new Map()
  }

  #gathers(audience: number): boolean {
    return audience > limits.largeAudience || this.#news.size > 0
  }

  #note(playerId: string, news: News): undefined {
    this.#news.delete(playerId)
    this.#news.set(playerId, news)
  }
}
