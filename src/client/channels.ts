/**
 * Realtime channels: joining, creating, and the channels of the player. The client rejoins them after a
 * disconnect.
 */
import type { Channel } from "./channel.ts"
import type { Module } from "./compose.ts"
import type { ConnectionStatus } from "./connection.ts"
import type { Core } from "./core.ts"
import { isError } from "./errors.ts"
import { type FramePayload, unreadableReply, type ServerEvent } from "./frames.ts"
import { LiveChannel } from "./live-channel.ts"
import { rejoin } from "./rejoin.ts"
import type { Closed } from "./socket.ts"
import { isVoiceEvent } from "./voice.ts"
import type { ChannelEvent } from "./wire.ts"

/** The settings with which a player creates a channel. */
export type ChannelTerms = Omit<FramePayload<"channelCreate">, "channel">

/** Realtime channels of the player. */
export interface Channels {
  /**
   * The channels that the player has joined, at most eight.
   *
   * @example
   * for (const channel of client.channels.current) channel.send("status", "away")
   */
  readonly current: ReadonlyArray<Channel>

  /**
   * Joins a channel and returns it with its members. Rejects with `channel_not_found`,
   * `channel_forbidden`, `channel_banned`, `channel_full` or `too_many_channels`.
   *
   * @example
   * const lobby = await client.channels.join("lobby")
   */
  join(name: string): Promise<Channel>

  /**
   * Creates a channel and joins it as its owner. A given name begins with `@`; without one, the service
   * generates it. Rejects with `channel_exists`, `channel_forbidden`, `voice_too_large` or
   * `too_many_channels`.
   *
   * @example
   * const party = await client.channels.create({ join: "invited", maxMembers: 8 })
   * invite(friend, party.name)
   */
  create(channel?: FramePayload<"channelCreate">): Promise<Channel>

  /**
   * Joins a channel that players agree on by its name, such as the chat of a room. The first of them
   * creates it with `settings`. Rejects as `join` and `create` do.
   *
   * @example
   * const chat = await client.channels.joinOrCreate(`@chat-${room.code.toLowerCase()}`)
   */
  joinOrCreate(name: string, settings?: ChannelTerms): Promise<Channel>
}

/** Whether the event is one of a channel or its calls, which have the field `channel`. */
const isChannelEvent = (event: ServerEvent): event is ChannelEvent =>
  "channel" in event && !event.t.startsWith("voice_")

const nameOf = ({ channel }: ChannelEvent): string =>
  typeof channel === "string" ? channel : channel.name

type ChannelJoined = Extract<ChannelEvent, { readonly t: "channel_joined" }>

class LiveChannels implements Channels {
  readonly #core: Core
  readonly #channels = new Map<string, LiveChannel>()

  constructor(core: Core) {
    this.#core = core
  }

  get current(): ReadonlyArray<Channel> {
    const channels = Array.from(this.#channels.values())
    for (const channel of channels) this.#scheduleFlush(channel)
    return channels
  }

  join(name: string) {
    return this.#enter(this.#core.connection.request("channelJoin", { channel: name }))
  }

  create(channel: FramePayload<"channelCreate"> = {}) {
    return this.#enter(this.#core.connection.request("channelCreate", channel))
  }

  async joinOrCreate(name: string, settings?: ChannelTerms): Promise<Channel> {
    try {
      return await this.join(name)
    } catch (error) {
      if (!isError(error, "channel_not_found")) throw error
    }
    try {
      return await this.create({ ...settings, channel: name })
    } catch (error) {
      if (!isError(error, "channel_exists")) throw error
      // Another player was faster.
      return this.join(name)
    }
  }

  /** Handles an event of the service. */
  receive(event: ServerEvent): void {
    if (isVoiceEvent(event)) return this.#channels.get(event.channel)?.voice.receive(event)
    if (!isChannelEvent(event)) return
    const known = this.#channels.get(nameOf(event))
    if (known !== undefined) known.receive(event)
    else if (event.t === "channel_joined") this.#open(event)
  }

  /** Runs when a socket is authenticated: rejoins all channels before any waiting call. */
  async welcomed(): Promise<void> {
    await Promise.all(
      Array.from(this.#channels.values(), (channel) =>
        rejoin(this.#core, "channelJoin", { channel: channel.name }, channel)
      )
    )
  }

  /** Handles a change of the connection's status. */
  status(status: ConnectionStatus, closed: Closed | undefined): void {
    const channels = Array.from(this.#channels.values())
    if (status === "offline") {
      for (const channel of channels) channel.end(closed ?? { reason: "closed" })
    } else if (closed !== undefined && status === "connecting") {
      for (const channel of channels) channel.emit("disconnected", closed)
    } else if (closed !== undefined) {
      for (const channel of channels) {
        channel.emit("reconnected", channel)
        channel.voice.reconnected()
      }
    }
  }

  #open(joined: ChannelJoined): void {
    const channel = new LiveChannel(this.#core, joined, (ended) => {
      if (this.#channels.get(ended.name) === ended) this.#channels.delete(ended.name)
    })
    this.#channels.set(channel.name, channel)
  }

  async #enter(entered: Promise<{ readonly channel: string }>): Promise<Channel> {
    const { channel: name } = await entered
    // The service sends the snapshot before the reply.
    const channel = this.#channels.get(name)
    if (channel === undefined) throw unreadableReply()
    this.#scheduleFlush(channel)
    return channel
  }

  /** Delivers buffered events after the caller's code could add listeners. */
  #scheduleFlush(channel: LiveChannel): void {
    setTimeout(() => channel.flush(), 0)
  }
}

export const channels: Module<Channels> = (core) => {
  const live = new LiveChannels(core)
  core.connection.listen(live)
  return live
}
