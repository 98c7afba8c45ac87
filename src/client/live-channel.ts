/**
 * Implementation of {@link Channel}: applies events to the view, calls the listeners, and sends the
 * member's actions as frames.
 */
import { BufferedEmitter } from "./buffered-emitter.ts"
import { applyChannelEvent, type ChannelView, viewOf } from "./channel-view.ts"
import type { Channel, ChannelClosed, ChannelEventName, ChannelEvents } from "./channel.ts"
import type { Connection } from "./connection.ts"
import { ClientError } from "./errors.ts"
import type { Frame, FramePayload } from "./frames.ts"
import { LiveChannelVoice } from "./live-channel-voice.ts"
import type { Timers } from "./timers.ts"
import type { ChannelEvent, Moderation } from "./wire.ts"

const message = (channel: string, type: string, data: unknown) => ({
  channel,
  type,
  ...(data === undefined ? {} : { data })
})

/** `channel_message` as `message`, as in a room; so with joins and leaves of one player. */
const nameOf = ({ t }: ChannelEvent) =>
  t.replace(/^channel_(?=message|player_)/, "") as ChannelEventName

export class LiveChannel extends BufferedEmitter<ChannelEvents> implements Channel {
  readonly name: string
  readonly confirmed: Channel["confirmed"] = {
    send: (type, data) => this.#request("channelSend", message(this.name, type, data))
  }
  readonly voice: LiveChannelVoice
  readonly #connection: Connection
  #view: ChannelView
  readonly #onEnd: (channel: LiveChannel) => void
  #closed: ChannelClosed | undefined

  constructor(
    { connection, timers }: { readonly connection: Connection; readonly timers: Timers },
    joined: Extract<ChannelEvent, { readonly t: "channel_joined" }>,
    ended: (channel: LiveChannel) => void
  ) {
    super()
    this.name = joined.channel.name
    this.#connection = connection
    this.#view = viewOf(joined)
    this.#onEnd = ended
    this.voice = new LiveChannelVoice(this, connection, timers)
  }

  get settings() {
    return this.#view.settings
  }

  get members() {
    return this.#view.members
  }

  get isOwner() {
    return this.settings.ownerId !== null && this.settings.ownerId === this.#connection.playerId
  }

  get canSend() {
    return this.#view.canSend
  }

  get mutedUntil() {
    return this.#view.mutedUntil
  }

  get closed() {
    return this.#closed
  }

  send(type: string, data?: unknown): void {
    if (this.#closed === undefined) {
      this.#connection.notify("channelSend", message(this.name, type, data))
    } else {
      this.emit("warn", {
        t: "warn",
        code: "not_in_channel",
        message: "The message was not sent: the channel is closed."
      })
    }
  }

  moderate(act: Moderation): Promise<void> {
    return this.#request("channelModerate", { channel: this.name, ...act })
  }

  async leave(): Promise<void> {
    await this.#request("channelLeave", { channel: this.name })
    this.end({ reason: "left" })
  }

  /** Handles an event of this channel. */
  receive(event: ChannelEvent): void {
    if (this.#closed !== undefined) return
    const before = this.#view
    this.#view = applyChannelEvent(before, event)
    this.emit(nameOf(event), event)
    if (this.#view !== before) this.emit("change", this)
    if (event.t === "channel_closed") this.end({ reason: event.reason })
  }

  /** Closes the channel for this client. */
  end(closed: ChannelClosed): void {
    if (this.#closed !== undefined) return
    this.#closed = closed
    this.#onEnd(this)
    this.voice.end(closed)
    this.emit("closed", closed)
  }

  async #request<F extends Frame>(frame: F, payload: FramePayload<F>): Promise<void> {
    if (this.#closed !== undefined) {
      const message = "This channel is closed: join it again."
      throw new ClientError("not_in_channel", message)
    }
    await this.#connection.request(frame, payload)
  }
}
