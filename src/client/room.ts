/**
 * A room as its member sees it: the live view, the events, and what a member can do (spec sections
 * 4.4 and 6). It stays the same object while the connection comes and goes, until it is closed.
 */
import type { IceServers, IceTransportPolicy, signal } from "#rpc/peers"
import type { Warn } from "#rpc/realtime"
import type { JsonObject, RoomEvent, RoomPlayer, RoomSnapshot, send } from "#rpc/rooms"
import type { Unsubscribe } from "./emitter.ts"
import type { FrameData, FramePayload } from "./frames.ts"

/** The events of the service by their names. */
export type ServiceEvents = {
  readonly [T in RoomEvent["t"]]: Extract<RoomEvent, { readonly t: T }>
}

/** Why a room is over for this client. `code` is there when the connection ended it. */
export interface RoomClosed {
  /**
   * `left`, `removed`, the reason of `room_closed` (`empty`, `idle`, `feature_disabled`, `lost`), the
   * error that kept the seat from being resumed (`resume_expired`), or the reason of the close.
   */
  readonly reason: string
  readonly code?: number
}

/** What a room tells: every event of the service by its name, and what only the client knows. */
export interface RoomEvents extends ServiceEvents {
  /** The view has changed, whatever changed it; the room is as after the change. */
  readonly change: Room
  /** The connection is lost and will be sought again; the seat is kept for a while. */
  readonly disconnected: { readonly code: number; readonly reason: string }
  /** The seat is resumed; the view is up to date. */
  readonly reconnected: RoomSnapshot
  /** The room is over for this client: nothing more comes, and every call fails. */
  readonly closed: RoomClosed
  /** A message or change was not accepted, or something else should be known. */
  readonly warn: Warn
}

/** Whom a message is for. */
export interface SendOptions {
  /** Ids of up to 64 players; the own one may be among them. Everybody else when absent. */
  readonly to?: ReadonlyArray<string>
}

/** The same changes as those of {@link Room}, as calls with a reply. */
export interface ConfirmedChanges {
  /** Sends a message; `delivered` counts the players of `to` who got it. */
  send(type: string, data?: unknown, options?: SendOptions): Promise<FrameData<typeof send>>
  /** Merges keys into the room's state. Rejects with `host_only` or `state_too_large`. */
  setState(patch: JsonObject): Promise<void>
  /** Merges keys into the own player's state. Rejects with `state_too_large`. */
  setMyState(patch: JsonObject): Promise<void>
}

/** An `RTCConfiguration`, and until when (ISO 8601 UTC) its credentials are good. */
export interface RtcServers {
  readonly iceServers: Array<{ urls: Array<string>; username?: string; credential?: string }>
  readonly iceTransportPolicy: IceTransportPolicy
  readonly expiresAt: IceServers["expiresAt"]
}

export interface Room {
  readonly id: string

  /** What others type to join: six letters and digits, or the code given to `create`. */
  readonly code: string

  readonly mode: string

  /** The room's shared state. Every change makes a new object; it is not for writing to. */
  readonly state: JsonObject

  /** Those with a seat, the dropped ones too (`connected` is false), in the order they joined. */
  readonly players: ReadonlyArray<RoomPlayer>

  /** The own player, while it has a seat. */
  readonly me: RoomPlayer | undefined

  readonly hostId: string | null

  /** Is the own player the host? */
  readonly isHost: boolean

  /** Everything of the room at this moment, as a value of its own. */
  readonly snapshot: RoomSnapshot

  /** Why the room is over, or undefined while it is not. */
  readonly closed: RoomClosed | undefined

  /**
   * Listens to an event. The view is as after the event. Listeners added right after the room was
   * awaited miss nothing.
   *
   * @example
   * const room = await client.rooms.quickMatch("default")
   * room.on("message", ({ from, type, data }) => play(from, type, data))
   * const stop = room.on("player_joined", ({ player }) => greet(player.displayName))
   * room.on("closed", ({ reason }) => showMenu(reason))
   * stop()
   */
  on<Name extends keyof RoomEvents>(
    name: Name,
    listener: (event: RoomEvents[Name]) => void
  ): Unsubscribe

  /**
   * Sends a message to everybody else, or to exactly the players of `to`. It waits for nothing and
   * may be called at the rate of the game (100 a second at most); while disconnected it is dropped.
   * What goes wrong comes as `warn`. `type` has up to 64 characters, `data` up to 16 KiB of JSON.
   *
   * @example
   * room.send("move", { x: 1, y: 2 })
   * room.send("whisper", "psst", { to: [friend.id] })
   */
  send(type: string, data?: unknown, options?: SendOptions): void

  /**
   * Merges top-level keys into the room's state; null deletes a key. It waits for nothing; the view
   * changes when the change comes back in the room's one order, as it does for everybody.
   *
   * @example
   * room.setState({ round: 2, bonus: null })
   */
  setState(patch: JsonObject): void

  /**
   * Merges top-level keys into the own player's state, for all to see; null deletes a key.
   *
   * @example
   * room.setMyState({ ready: true })
   */
  setMyState(patch: JsonObject): void

  /**
   * The same changes as calls with a reply each: they reject when the service refuses.
   *
   * @example
   * const { delivered } = await room.confirmed.send("trade", { item: 7 }, { to: [friend.id] })
   * await room.confirmed.setState({ phase: "end" }) // may reject with `host_only`
   */
  readonly confirmed: ConfirmedChanges

  /**
   * Peer-to-peer rooms: a step of the WebRTC set-up for one other member, who hears it as the event
   * `signal`. Rejects with `p2p_only` or `player_not_in_room`; `delivered` is 0 while the other is
   * away.
   *
   * @example
   * peer.onicecandidate = ({ candidate }) =>
   *   candidate && room.signal({ to: friend.id, kind: "candidate", data: candidate.toJSON() })
   * room.on("signal", ({ from, kind, data }) => peers.get(from).take(kind, data))
   */
  signal(step: FramePayload<typeof signal>): Promise<FrameData<typeof signal>>

  /**
   * Peer-to-peer rooms: the STUN and TURN servers, with credentials for an hour. Rejects with
   * `turn_unavailable` where a relay is needed and none is configured.
   *
   * @example
   * const peer = new RTCPeerConnection(await room.iceServers())
   */
  iceServers(): Promise<RtcServers>

  /**
   * Closes the room to newcomers, or opens it again. Rejects with `host_only` for others than the
   * host.
   *
   * @example
   * await room.lock() // and room.lock(false) opens it
   */
  lock(locked?: boolean): Promise<void>

  /**
   * Gives the seat up. The room is over for this client, with reason `left`.
   *
   * @example
   * await room.leave()
   */
  leave(): Promise<void>
}
