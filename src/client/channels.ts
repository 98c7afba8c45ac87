/**
 * Realtime channels: joining, creating, and the channels of the player. The client rejoins them after a
 * disconnect.
 */
import { Effect, Schedule } from "effect"
import { channelCreate, ChannelEvent, channelJoin } from "#rpc/channels"
import type { ServerEvent } from "#rpc/realtime"
import type { Channel } from "./channel.ts"
import type { ConnectionStatus } from "./connection.ts"
import { ServiceError, TimedOut } from "./errors.ts"
import type { FramePayload } from "./frames.ts"
import { LiveChannel } from "./live-channel.ts"
import type { RoomHost } from "./live-room.ts"
import type { Closed } from "./socket.ts"

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
  create(channel?: FramePayload<typeof channelCreate>): Promise<Channel>
}

/** A channel that moves to another runner cannot be joined for a moment. */
const rejoinRetry = Schedule.exponential("250 millis")
const rejoinTimeout = "20 seconds"
const rejoinableErrors: ReadonlySet<string> = new Set(["unavailable", "rate_limited"])

const channelEvents: ReadonlySet<string> = new Set(
  ChannelEvent.members.map(({ fields }) => fields.t.literal)
)

/** Rooms have a `player_updated`, too, without a channel. */
const isChannelEvent = (event: ServerEvent): event is ChannelEvent =>
  channelEvents.has(event.t) && "channel" in event

const nameOf = ({ channel }: ChannelEvent): string =>
  typeof channel === "string" ? channel : channel.name

export class LiveChannels implements Channels {
  readonly #host: RoomHost
  readonly #channels = new Map<string, LiveChannel>()
  #wasDisconnected = false

  constructor(host: RoomHost) {
    this.#host = host
  }

  get current(): ReadonlyArray<Channel> {
    const channels = Array.from(this.#channels.values())
    for (const channel of channels) this.#scheduleFlush(channel)
    return channels
  }

  join(name: string) {
    return this.#enter(this.#host.connection.request(channelJoin, { channel: name }))
  }

  create(channel: FramePayload<typeof channelCreate> = {}) {
    return this.#enter(this.#host.connection.request(channelCreate, channel))
  }

  /** Handles an event of the service. */
  receive(event: ServerEvent): void {
    if (!isChannelEvent(event)) return
    const name = nameOf(event)
    const known = this.#channels.get(name)
    if (known !== undefined) known.receive(event)
    else if (event.t === "channel_joined") this.#open(event)
  }

  /** Runs when a socket is authenticated: rejoins all channels before any waiting call. */
  welcomed(): Effect.Effect<void> {
    return Effect.suspend(() =>
      Effect.forEach(Array.from(this.#channels.values()), (channel) => this.#rejoin(channel), {
        concurrency: "unbounded",
        discard: true
      })
    )
  }

  /** Handles a change of the connection's status. */
  status(status: ConnectionStatus, closed: Closed | undefined): void {
    const channels = Array.from(this.#channels.values())
    if (status === "closed") {
      for (const channel of channels) channel.end(closed ?? { reason: "closed" })
    } else if (status === "connecting") {
      this.#wasDisconnected = closed !== undefined
      if (closed !== undefined) for (const channel of channels) channel.emit("disconnected", closed)
    } else if (this.#wasDisconnected) {
      this.#wasDisconnected = false
      for (const channel of channels) channel.emit("reconnected", channel)
    }
  }

  #open(joined: Extract<ChannelEvent, { readonly t: "channel_joined" }>): void {
    const channel = new LiveChannel(this.#host, joined, (ended) => {
      if (this.#channels.get(ended.name) === ended) this.#channels.delete(ended.name)
    })
    this.#channels.set(channel.name, channel)
  }

  #rejoin(channel: LiveChannel): Effect.Effect<void> {
    const timedOut = new TimedOut({ message: "Failed to rejoin the channel in time." })
    return this.#host.connection.transport.call(channelJoin, { channel: channel.name }).pipe(
      Effect.retry({ schedule: rejoinRetry, while: ({ _tag }) => rejoinableErrors.has(_tag) }),
      Effect.timeoutOrElse({ duration: rejoinTimeout, orElse: () => Effect.fail(timedOut) }),
      Effect.catch((error) =>
        Effect.sync(() => {
          if (error._tag === "disconnected") return
          channel.end({ reason: error.code })
        })
      ),
      Effect.asVoid
    )
  }

  async #enter<E>(entered: Effect.Effect<{ readonly channel: string }, E>): Promise<Channel> {
    const { channel: name } = await this.#host.run(entered)
    // The service sends the snapshot before the reply.
    const channel = this.#channels.get(name)
    if (channel === undefined) {
      const message = "Failed to join the channel: the reply came without a snapshot."
      throw new ServiceError({ code: "unreadable_reply", message })
    }
    this.#scheduleFlush(channel)
    return channel
  }

  /** Delivers buffered events after the caller's code could add listeners. */
  #scheduleFlush(channel: LiveChannel): void {
    setTimeout(() => channel.flush(), 0)
  }
}
