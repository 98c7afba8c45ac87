/**
 * Realtime channels (spec section 4.5): coming in, making them, and those that the player is in, into
 * which the client comes again after a drop without the game's doing.
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

export interface Channels {
  /**
   * The channels that the player is in, eight at most.
   *
   * @example
   * for (const channel of client.channels.current) channel.send("status", "away")
   */
  readonly current: ReadonlyArray<Channel>

  /**
   * Comes into a channel. Rejects with `channel_not_found`, `channel_forbidden`, `channel_banned`,
   * `channel_full` or `too_many_channels`.
   *
   * @example
   * const lobby = await client.channels.join("lobby")
   */
  join(name: string): Promise<Channel>

  /**
   * Makes a channel and comes into it as its owner; its name begins with `@` and is made up when none
   * is given. Rejects with `channel_exists`, `channel_forbidden`, `voice_too_large` or
   * `too_many_channels`.
   *
   * @example
   * const party = await client.channels.create({ join: "invited", maxMembers: 8 })
   * invite(friend, party.name)
   */
  create(channel?: FramePayload<typeof channelCreate>): Promise<Channel>
}

/** While a channel moves to another machine nobody can come in; that takes a moment. */
const rejoinRetry = Schedule.exponential("250 millis")
const rejoinTimeout = "20 seconds"
const rejoinableErrors: ReadonlySet<string> = new Set(["unavailable", "rate_limited"])

const channelEvents: ReadonlySet<string> = new Set(
  ChannelEvent.members.map(({ fields }) => fields.t.literal)
)

const isChannelEvent = (event: ServerEvent): event is ChannelEvent => channelEvents.has(event.t)

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

  /** The service has told something. */
  receive(event: ServerEvent): void {
    if (!isChannelEvent(event)) return
    const name = nameOf(event)
    const known = this.#channels.get(name)
    if (known !== undefined) known.receive(event)
    else if (event.t === "channel_joined") this.#open(event)
  }

  /** A socket stands again: the client comes into its channels before anything else. */
  welcomed(): Effect.Effect<void> {
    return Effect.suspend(() =>
      Effect.forEach(Array.from(this.#channels.values()), (channel) => this.#rejoin(channel), {
        concurrency: "unbounded",
        discard: true
      })
    )
  }

  /** The connection has changed. */
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
    const timedOut = new TimedOut({ message: "The channel did not answer." })
    return this.#host.connection.transport.call(channelJoin, { channel: channel.name }).pipe(
      Effect.retry({ schedule: rejoinRetry, while: ({ _tag }) => rejoinableErrors.has(_tag) }),
      Effect.timeoutOrElse({ duration: rejoinTimeout, orElse: () => Effect.fail(timedOut) }),
      Effect.catch((error) =>
        Effect.sync(() => {
          if (error._tag === "disconnected") return
          channel.end({ reason: error instanceof ServiceError ? error.code : error._tag })
        })
      ),
      Effect.asVoid
    )
  }

  async #enter<E>(entered: Effect.Effect<{ readonly channel: string }, E>): Promise<Channel> {
    const { channel: name } = await this.#host.run(entered)
    // The snapshot has come before the reply (spec section 6).
    const channel = this.#channels.get(name)
    if (channel === undefined) {
      const message = "The snapshot of the channel did not come."
      throw new ServiceError({ code: "unreadable_reply", message })
    }
    this.#scheduleFlush(channel)
    return channel
  }

  /** What has come meanwhile is told once the code that gets the channel has had its turn to listen. */
  #scheduleFlush(channel: LiveChannel): void {
    setTimeout(() => channel.flush(), 0)
  }
}
