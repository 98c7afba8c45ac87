/**
 * A channel as its member sees it: the live view, the events, and what a member can do (spec sections
 * 4.5 and 6). It stays the same object while the connection comes and goes, until it is closed.
 */
import type { ChannelEvent, ChannelPlayer, ChannelSettings, Moderation } from "#rpc/channels"
import type { Warn } from "#rpc/realtime"
import type { Unsubscribe } from "./emitter.ts"

/** The events of the service by their names. */
type ServiceEvents = {
  readonly [T in ChannelEvent["t"]]: Extract<ChannelEvent, { readonly t: T }>
}

/** Why a channel is over for this client. `code` is there when the connection ended it. */
export interface ChannelClosed {
  /**
   * `left`, the reason of `channel_closed` (`deleted`, `empty`, `kicked`, `banned`, `feature_disabled`,
   * `lost`), the error that kept the client from coming back in (`channel_not_found`), or the reason of
   * the close.
   */
  readonly reason: string
  readonly code?: number
}

/** What a channel tells: every event of the service by its name, and what only the client knows. */
export interface ChannelEvents extends ServiceEvents {
  /** The view has changed, whatever changed it; the channel is as after the change. */
  readonly change: Channel
  /** The connection is lost and will be sought again; the place is kept for a while. */
  readonly disconnected: { readonly code: number; readonly reason: string }
  /** In again, and the view is up to date. Messages of the time between are not told. */
  readonly reconnected: Channel
  /** The channel is over for this client: nothing more comes, and every call fails. */
  readonly closed: ChannelClosed
  /** A message was not accepted, or something else should be known. */
  readonly warn: Warn
}

export interface Channel {
  readonly name: string

  /** How the channel is set up, as it is now. */
  readonly settings: ChannelSettings

  /** Those who are in; anonymous listeners are not told of. */
  readonly members: ReadonlyArray<ChannelPlayer>

  /** Is the own player the channel's owner? */
  readonly isOwner: boolean

  /** May the own player send now? Not while muted, nor where only others speak. */
  readonly canSend: boolean

  /** End of the own player's mute (ISO 8601 UTC), if one is known. */
  readonly mutedUntil: string | null

  /** Why the channel is over, or undefined while it is not. */
  readonly closed: ChannelClosed | undefined

  /**
   * Listens to an event. The view is as after the event. Listeners added right after the channel was
   * awaited miss nothing.
   *
   * @example
   * const channel = await client.channels.join("lobby")
   * channel.on("channel_message", ({ from, type, data }) => show(from, type, data))
   * channel.on("channel_self", ({ canSend }) => (input.disabled = !canSend))
   * channel.on("closed", ({ reason }) => hide(reason))
   */
  on<Name extends keyof ChannelEvents>(
    name: Name,
    listener: (event: ChannelEvents[Name]) => void
  ): Unsubscribe

  /**
   * Sends a message to everyone in the channel, the sender among them. It waits for nothing; while
   * disconnected it is dropped, and what goes wrong comes as `warn`. `type` has up to 64 characters,
   * `data` up to 16 KiB of JSON; ten a second, twenty at once.
   *
   * @example
   * channel.send("chat", "Hello!")
   */
  send(type: string, data?: unknown): void

  /**
   * The same with a reply: rejects with `muted`, `send_forbidden`, `rate_limited` or
   * `payload_too_large`.
   *
   * @example
   * await channel.confirmed.send("chat", "Hello?")
   */
  readonly confirmed: { send(type: string, data?: unknown): Promise<void> }

  /**
   * The owner's acts on a player, who need not be in: `invite`, `uninvite`, `allowSend`,
   * `disallowSend`, `mute`, `unmute`, `kick`, `ban`, `unban`. Rejects with `owner_only`.
   *
   * @example
   * await channel.moderate({ op: "mute", playerId: from, seconds: 60 })
   */
  moderate(act: Moderation): Promise<void>

  /**
   * Goes out. The channel is over for this client, with reason `left`.
   *
   * @example
   * await channel.leave()
   */
  leave(): Promise<void>
}
