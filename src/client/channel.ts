/**
 * A channel as its member sees it: live view, events and actions. The object survives reconnects, until
 * the channel is closed.
 */
import type { ListenerOptions, Unsubscribe } from "./emitter.ts"
import type { ChannelVoice } from "./voice-call.ts"
import type { ChannelEvent, ChannelPlayer, ChannelSettings, Moderation, Warn } from "./wire.ts"

/** The events that a room has, too, have the same name here: `channel_message` is `message`. */
export type ChannelEventName<T extends string = ChannelEvent["t"]> =
  T extends `channel_${infer Name extends "message" | "player_joined" | "player_left"}` ? Name : T

/** Events of the service, by name. */
type ServiceEvents = {
  readonly [T in ChannelEvent["t"] as ChannelEventName<T>]: Extract<ChannelEvent, { readonly t: T }>
}

/** A message of a channel. `from` is the sender's id, or `server`. */
export type ChannelMessage = ServiceEvents["message"]

/**
 * Reason for the end of a channel for this client. `code` is present when the connection ended it.
 */
export interface ChannelClosed {
  /**
   * `left`, the reason of `channel_closed` (`deleted`, `empty`, `kicked`, `banned`, `feature_disabled`,
   * `lost`), the error of a failed rejoin (`channel_not_found`), or the reason of the socket's close.
   */
  readonly reason: string
  readonly code?: number
}

/** Events of a channel: those of the service by name, and those of the client. */
export interface ChannelEvents extends ServiceEvents {
  /** The view has changed. The channel already shows the change. */
  readonly change: Channel
  /**
   * The connection is lost, and the client is reconnecting. The service keeps the membership for 30
   * seconds.
   */
  readonly disconnected: { readonly code: number; readonly reason: string }
  /** The client has rejoined, and the view is up to date. Messages sent meanwhile are lost. */
  readonly reconnected: Channel
  /** The channel has ended for this client. No further events come, and every call fails. */
  readonly closed: ChannelClosed
  /** The service refused a message, or the client could not send it. */
  readonly warn: Warn
}

/** A channel that the player has joined. */
export interface Channel {
  readonly name: string

  /** The current settings of the channel. */
  readonly settings: ChannelSettings

  /** The members, without anonymous listeners. */
  readonly members: ReadonlyArray<ChannelPlayer>

  /** Whether this client's player owns the channel. */
  readonly isOwner: boolean

  /** Whether this client's player may send now: not muted, and allowed by the channel's settings. */
  readonly canSend: boolean

  /** End of this player's mute (ISO 8601 UTC); null without a mute, or when it has no end. */
  readonly mutedUntil: string | null

  /** The voice calls of the channel, with microphone and sound. Needs a browser. */
  readonly voice: ChannelVoice

  /** Reason for the end of the channel; undefined while it is open. */
  readonly closed: ChannelClosed | undefined

  /**
   * Adds a listener and returns a function that removes it, as does aborting the option `signal`. When
   * a listener runs, the view already includes the event. Listeners added right after `await` receive
   * every event since the join.
   *
   * @example
   * const channel = await client.channels.join("lobby")
   * channel.on("message", ({ from, type, data }) => show(from, type, data))
   * channel.on("channel_self", ({ canSend }) => (input.disabled = !canSend))
   * channel.on("closed", ({ reason }) => hide(reason))
   */
  on<Name extends keyof ChannelEvents>(
    name: Name,
    listener: (event: ChannelEvents[Name]) => void,
    options?: ListenerOptions
  ): Unsubscribe

  /**
   * Adds a listener for the messages of one type. The event `message` has those of all types.
   *
   * @example
   * channel.onMessage("chat", ({ data, from }) => show(from, data))
   */
  onMessage(
    type: string,
    listener: (message: ChannelMessage) => void,
    options?: ListenerOptions
  ): Unsubscribe

  /**
   * Sends a message to every member, including the sender, without a reply. While disconnected the
   * message is dropped. Failures arrive as the event `warn`. `type` has up to 64 characters, `data` up
   * to 16 KiB of JSON. The limit is ten messages a second, with bursts of twenty.
   *
   * @example
   * channel.send("chat", "Hello!")
   */
  send(type: string, data?: unknown): void

  /**
   * Sends a message and waits for the reply. Rejects with `muted`, `send_forbidden`, `rate_limited` or
   * `payload_too_large`.
   *
   * @example
   * await channel.confirmed.send("chat", "Hello?")
   */
  readonly confirmed: { send(type: string, data?: unknown): Promise<void> }

  /**
   * Moderates a player, as the owner. `op` is `invite`, `uninvite`, `allowSend`, `disallowSend`, `mute`,
   * `unmute`, `kick`, `ban` or `unban`; `seconds` limits a mute or ban. The player need not be a member.
   * Rejects with `owner_only` or `channel_list_full`.
   *
   * @example
   * await channel.moderate({ op: "mute", playerId: from, seconds: 60 })
   */
  moderate(act: Moderation): Promise<void>

  /**
   * Leaves the channel, which closes it for this client with reason `left`.
   *
   * @example
   * await channel.leave()
   */
  leave(): Promise<void>
}
