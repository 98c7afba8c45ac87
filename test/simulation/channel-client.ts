/**
 * The channels of a virtual player, as the typed client keeps them. Views are built from received frames
 * alone, and after a drop the client rejoins each channel by itself. A frame that it cannot apply is a
 * violation.
 */
import type { ChannelEvent } from "#rpc/channels/frames"
import type { Reply } from "#rpc/realtime"
import { applyEvent, type View } from "../support/channel-views.ts"
import type { ChannelRules, Sentence } from "./channel-rules.ts"
import type { Simulator } from "./simulator.ts"

/** Frames of a channel that a member received, from one `channel_joined` to the next. */
export interface ChannelTranscript {
  readonly playerId: string
  readonly connectionId: string
  readonly channel: string
  readonly frames: Array<string>
}

/** The state at the time of a request, which its reply is checked against. */
interface Asked {
  readonly t: string
  readonly channel: string
  /** How often `channel_joined` has arrived so far. */
  readonly joins: number
  /** What forbids the request. */
  readonly sentence: Sentence | undefined
}

/** The player as its channels see it. */
interface Host {
  readonly id: string
  readonly simulator: Simulator
  readonly connectionId: string | undefined
  readonly fault: (what: string) => void
  readonly left: (channel: string) => void
  readonly ask: (t: string, payload: Readonly<Record<string, unknown>>) => void
}

/** How long and how often the client tries to rejoin. */
const patienceMillis = 20_000
const againMillis = 250

const nameOf = ({ channel }: ChannelEvent): string =>
  typeof channel === "string" ? channel : channel.name

const retried = new Set(["unavailable", "rate_limited"])

export class ChannelClient {
  /** Channels that this socket has joined. */
  readonly views = new Map<string, View>()
  /** Channels to rejoin, and the deadline of each. */
  readonly #wanted = new Map<string, number>()
  readonly #transcripts = new Map<string, ChannelTranscript>()
  readonly #asked = new Map<string, Asked>()
  readonly #joins = new Map<string, number>()
  /** The last message number of each sender, by channel. */
  readonly #numbers = new Map<string, number>()
  readonly #host: Host
  readonly #rules: ChannelRules

  constructor(host: Host, rules: ChannelRules) {
    this.#host = host
    this.#rules = rules
  }

  /** Whether nothing is pending for the channels. */
  get settled(): boolean {
    return this.#wanted.size === 0 && this.#asked.size === 0
  }

  /** The last number received from a sender. */
  heard(channel: string, from: string): number {
    return this.#numbers.get(`${channel} ${from}`) ?? 0
  }

  /** Handles the end of the socket. */
  dropped(): void {
    const until = this.#host.simulator.now + patienceMillis
    for (const name of this.views.keys()) this.#wanted.set(name, until)
    this.views.clear()
    this.#transcripts.clear()
    this.#asked.clear()
  }

  /** Handles a new socket: rejoins all channels before anything else. */
  welcomed(): void {
    for (const name of this.#wanted.keys()) this.#host.ask("channelJoin", { channel: name })
  }

  /** Records a request. */
  asks(rid: string, t: string, name: unknown): void {
    if (!t.startsWith("channel")) return
    // Only the reply contains the generated name of a channel.
    const channel = typeof name === "string" ? name : ""
    this.#asked.set(rid, {
      t,
      channel,
      joins: this.#joins.get(channel) ?? 0,
      sentence: this.#sentence(t, channel)
    })
  }

  /** What must forbid this request, as far as the server knows. */
  #sentence(t: string, channel: string): Sentence | undefined {
    if (t === "channelSend") return this.#rules.sentence("muted", channel, this.#host.id)
    if (t === "channelJoin") return this.#rules.sentence("banned", channel, this.#host.id)
    return undefined
  }

  answered({ data, error, ok, rid }: Reply): void {
    const asked = this.#asked.get(rid)
    if (asked === undefined) return
    this.#asked.delete(rid)
    const { channel, sentence, t } = asked
    const code = error?.code ?? ""
    if (sentence !== undefined && this.#sentence(t, channel) === sentence) {
      if (ok) this.#host.fault(`${t} in ${channel} is ok, against a sentence`)
      if (code === "send_forbidden") this.#host.fault(`is muted in ${channel} and got no notice`)
    }
    if (t === "channelLeave" && ok) this.#leave(channel)
    if (t === "channelCreate" && ok) this.#cameInto(asked, String(Object(data).channel))
    if (t !== "channelJoin") return
    if (ok) this.#cameInto(asked, channel)
    else this.#refused(channel, code)
  }

  #leave(channel: string): void {
    this.#host.left(channel)
    this.views.delete(channel)
    this.#transcripts.delete(channel)
    this.#wanted.delete(channel)
  }

  /** Whether the channel arrived before the reply. */
  #cameInto({ joins, t }: Asked, channel: string): void {
    const before = t === "channelCreate" ? 0 : joins
    this.#wanted.delete(channel)
    if ((this.#joins.get(channel) ?? 0) <= before) {
      this.#host.fault(`${t} is ok before channel_joined of ${channel}`)
    }
  }

  #refused(channel: string, code: string): void {
    const until = this.#wanted.get(channel)
    if (until === undefined) return
    const { connectionId, simulator } = this.#host
    if (!retried.has(code) || simulator.now > until) {
      this.#wanted.delete(channel)
      return
    }
    simulator.after(againMillis, () => {
      if (this.#host.connectionId !== connectionId || !this.#wanted.has(channel)) return
      this.#host.ask("channelJoin", { channel })
    })
  }

  hear(event: ChannelEvent, text: string, transcripts: Array<ChannelTranscript>): void {
    const name = nameOf(event)
    const { connectionId = "none", id: playerId } = this.#host
    if (event.t === "channel_joined") {
      this.#joins.set(name, (this.#joins.get(name) ?? 0) + 1)
      const transcript = { playerId, connectionId, channel: name, frames: [] }
      this.#transcripts.set(name, transcript)
      transcripts.push(transcript)
    }
    const view = this.views.get(name)
    if (view === undefined && event.t !== "channel_joined") {
      return this.#host.fault(`is not in ${name} and receives ${text}`)
    }
    this.#transcripts.get(name)?.frames.push(text)
    if (event.t === "channel_message") this.#inOrder(name, event.from, Object(event.data).n)
    this.#follow(name, view, event, text)
  }

  #follow(name: string, view: View | undefined, event: ChannelEvent, text: string): void {
    try {
      const next = applyEvent(view, event)
      if (next === undefined) {
        this.#host.left(name)
        this.views.delete(name)
        this.#transcripts.delete(name)
      } else {
        this.views.set(name, next)
        if (!next.members.has(this.#host.id)) this.#host.fault(`does not see itself in ${name}`)
      }
    } catch (error) {
      this.#host.fault(`cannot apply ${text}: ${String(error)}`)
    }
  }

  /** Messages of a sender keep their order, and none arrives twice. */
  #inOrder(name: string, from: string, number: unknown): void {
    const n = Number(number)
    const last = this.heard(name, from)
    if (n <= last) this.#host.fault(`receives ${n} of ${from} in ${name} after ${last}`)
    this.#numbers.set(`${name} ${from}`, n)
  }
}
