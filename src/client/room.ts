/**
 * A room as its member sees it: live view, events and actions. The object survives reconnects, until
 * the room is closed.
 */
import type { ListenerOptions, Unsubscribe } from "./emitter.ts"
import type { FrameData, FramePayload } from "./frames.ts"
import type { PeerConnectionClass, RtcServers } from "./peer-connection.ts"
import type {
  JsonObject,
  RoomEvent,
  RoomModerateOp,
  RoomPlayer,
  RoomSnapshot,
  RoomTeam,
  VoteOp,
  Warn
} from "./wire.ts"

/** Events of the service, by name. */
export type ServiceEvents = {
  readonly [T in RoomEvent["t"]]: Extract<RoomEvent, { readonly t: T }>
}

/** Messages of any type with any data. */
export type AnyMessages = Readonly<Record<string, unknown>>

/** A message of one type. */
export type MessageOf<Messages, Type extends keyof Messages & string> = {
  readonly t: "message"
  /** The sender's id. */
  readonly from: string
  readonly type: Type
  /** Time at which the service received the message, in Unix milliseconds of its clock. */
  readonly at: number
} & (undefined extends Messages[Type]
  ? { readonly data?: Messages[Type] }
  : { readonly data: Messages[Type] })

/** A message of a room, discriminated by `type`. */
export type MessageEvent<Messages> = {
  readonly [Type in keyof Messages & string]: MessageOf<Messages, Type>
}[keyof Messages & string]

/** Changes of top-level keys; null deletes a key. */
export type Patch<State> = { readonly [Key in keyof State]?: State[Key] | null }

/** A member, with the state that it set. */
export interface Member<PlayerState> extends Omit<RoomPlayer, "state"> {
  readonly state: Partial<PlayerState>
}

/** Reason for the end of a room for this client. `code` is present when the connection ended it. */
export interface RoomClosed {
  /**
   * `left`, `removed`, the reason of `removed` (`kicked`, `banned`, `voted`) or of `room_closed` (`empty`,
   * `idle`, `feature_disabled`, `lost`), the error of a failed resume (`resume_expired`), or the reason of
   * the socket's close.
   */
  readonly reason: string
  readonly code?: number
}

/** Events of a room: those of the service by name, and those of the client. */
export interface RoomEvents<
  State = JsonObject,
  PlayerState = JsonObject,
  Messages = AnyMessages
> extends Omit<ServiceEvents, "message"> {
  readonly message: MessageEvent<Messages>
  /** The view has changed. The room already shows the change. */
  readonly change: Room<State, PlayerState, Messages>
  /** The connection is lost, and the client is reconnecting. The service keeps the seat (default 30 s). */
  readonly disconnected: { readonly code: number; readonly reason: string }
  /** The client has resumed its seat, and the view is up to date. */
  readonly reconnected: RoomSnapshot
  /** The room has ended for this client. No further events come, and every call fails. */
  readonly closed: RoomClosed
  /** The service refused a message or change, or the client could not send it. */
  readonly warn: Warn
  /** The data channels to a member have opened (`direct`), or are lost (`server`). */
  readonly peer: { readonly playerId: string; readonly route: PeerRoute }
}

/** Recipients of a message. */
export interface SendOptions {
  /** Ids of up to 64 players, which may include the sender. Default: all other members. */
  readonly to?: ReadonlyArray<string>
}

/** Options of {@link Room.moderate}. */
export interface ModerateOptions {
  /** The new team, with the operation `team`. */
  readonly team?: string
  /** A key of the game, such as `afk`, which a removed player receives as `cause`. */
  readonly reason?: string
}

/** The arguments of a message after its type: `data` may be left out only where its type allows it. */
export type SendArguments<Data, Options = SendOptions> = undefined extends Data
  ? readonly [data?: Data, options?: Options]
  : readonly [data: Data, options?: Options]

/** The changes of {@link Room} as calls with a reply. */
export interface ConfirmedChanges<
  State = JsonObject,
  PlayerState = JsonObject,
  Messages = AnyMessages
> {
  /** Sends a message; `delivered` counts the players of `to` who received it. */
  send<Type extends keyof Messages & string>(
    type: Type,
    ...rest: SendArguments<Messages[Type]>
  ): Promise<FrameData<"send">>
  /** Merges keys into the room's state. Rejects with `host_only` or `state_too_large`. */
  setState(patch: Patch<State>): Promise<void>
  /** Merges keys into this player's state. Rejects with `state_too_large`. */
  setMyState(patch: Patch<PlayerState>): Promise<void>
}

/** Changes of the view at once, which a refusal takes back. */
export interface OptimisticChanges<State = JsonObject, PlayerState = JsonObject> {
  setState(patch: Patch<State>): Promise<void>
  setMyState(patch: Patch<PlayerState>): Promise<void>
}

/** Options of {@link RoomPeers.connect}. */
export interface PeerOptions {
  /** The class `RTCPeerConnection`, for platforms without a global one. */
  readonly RTCPeerConnection?: PeerConnectionClass
}

/** Recipients and delivery of a message to peers. */
export interface PeerSendOptions extends SendOptions {
  /**
   * Whether messages arrive in order and without loss; default true. If false, the channel repeats
   * no lost message, and messages may overtake each other, as positions that the next message
   * replaces.
   */
  readonly reliable?: boolean
}

/** Route of messages to a member. */
export type PeerRoute = "direct" | "server"

/** The mesh of a peer-to-peer room: data channels between its members. */
export interface RoomPeers<Messages = AnyMessages> {
  /**
   * Connects to the members that also call it, now and later, and repairs broken connections. It
   * loads the code of the mesh. Rejects with `p2p_only` in other rooms. Rejects with
   * `turn_unavailable` if this player needs a relay and the service has none; messages then go
   * through the service.
   *
   * @example
   * await room.peers.connect()
   * room.on("peer", ({ playerId, route }) => showRoute(playerId, route))
   */
  connect(options?: PeerOptions): Promise<void>

  /**
   * Sends a message as {@link Room.send} does, and the members receive the same event `message`. It
   * travels directly to members whose data channels are open, and through the service to the others.
   * Messages on different routes may overtake each other.
   *
   * @example
   * room.peers.send("position", { x: 1, y: 2 }, { reliable: false })
   */
  send<Type extends keyof Messages & string>(
    type: Type,
    ...rest: SendArguments<Messages[Type], PeerSendOptions>
  ): void

  /** Returns the current route of messages to a member. */
  route(playerId: string): PeerRoute

  /** Closes the data channels. Messages then go through the service. */
  close(): void
}

/**
 * Room in which the player has a seat. Its state, its players' states and its messages have the
 * types that the game gives; the service does not check them.
 *
 * @example
 * const room = await client.rooms.join<{ round: number }, { ready: boolean }, { move: Point }>(code)
 * room.onMessage("move", ({ data, from }) => move(from, data.x, data.y))
 */
export interface Room<State = JsonObject, PlayerState = JsonObject, Messages = AnyMessages> {
  readonly id: string

  /** The code that others enter to join: six letters and digits, or the one given to `create`. */
  readonly code: string

  readonly mode: string

  /** The room's shared state. Read-only: every change makes a new object. */
  readonly state: Partial<State>

  /** Players with a seat, by join time. Disconnected ones have `connected: false`. */
  readonly players: ReadonlyArray<Member<PlayerState>>

  /** Player of this client, while it has a seat. */
  readonly me: Member<PlayerState> | undefined

  readonly hostId: string | null

  /** Whether this client's player is the host. */
  readonly isHost: boolean

  /** The teams and the ids of their players; empty in modes without teams. */
  readonly teams: ReadonlyArray<RoomTeam>

  /** The current view of the room, as an immutable object. */
  readonly snapshot: RoomSnapshot

  /** Reason for the end of the room; undefined while it is open. */
  readonly closed: RoomClosed | undefined

  /**
   * Adds a listener and returns a function that removes it, as does aborting the option `signal`. When
   * a listener runs, the view already includes the event. Listeners added right after `await` receive
   * every event since the join.
   *
   * @example
   * const room = await client.rooms.quickMatch("default")
   * const stop = room.on("player_joined", ({ player }) => greet(player.displayName))
   * room.on("closed", ({ reason }) => showMenu(reason))
   * stop()
   *
   * @example
   * const scene = new AbortController()
   * room.on("change", draw, { signal: scene.signal })
   * room.on("player_left", ({ playerId }) => explode(playerId), { signal: scene.signal })
   * scene.abort() // removes both
   */
  on<Name extends keyof RoomEvents>(
    name: Name,
    listener: (event: RoomEvents<State, PlayerState, Messages>[Name]) => void,
    options?: ListenerOptions
  ): Unsubscribe

  /**
   * Adds a listener for the messages of one type. The event `message` has those of all types.
   *
   * @example
   * room.onMessage("move", ({ data, from }) => move(from, data.x, data.y))
   */
  onMessage<Type extends keyof Messages & string>(
    type: Type,
    listener: (message: MessageOf<Messages, Type>) => void,
    options?: ListenerOptions
  ): Unsubscribe

  /**
   * Sends a message to all other members, or only to the players of `to`, without a reply. Call it up
   * to 100 times a second. While disconnected the message is dropped. Failures arrive as the event
   * `warn`. `type` has up to 64 characters, `data` up to 16 KiB of JSON.
   *
   * @example
   * room.send("move", { x: 1, y: 2 })
   * room.send("whisper", "psst", { to: [friend.id] })
   */
  send<Type extends keyof Messages & string>(
    type: Type,
    ...rest: SendArguments<Messages[Type]>
  ): void

  /**
   * Merges top-level keys into the room's state, without a reply; null deletes a key. The view changes
   * when the service sends the change to all members, in the same order for everyone.
   *
   * @example
   * room.setState({ round: 2, bonus: null })
   */
  setState(patch: Patch<State>): void

  /**
   * Merges top-level keys into this player's state, which all members see; null deletes a key.
   *
   * @example
   * room.setMyState({ ready: true })
   */
  setMyState(patch: Patch<PlayerState>): void

  /**
   * Variants of these changes as calls with a reply, which reject when the service refuses.
   *
   * @example
   * const { delivered } = await room.confirmed.send("trade", { item: 7 }, { to: [friend.id] })
   * await room.confirmed.setState({ phase: "end" }) // may reject with `host_only`
   */
  readonly confirmed: ConfirmedChanges<State, PlayerState, Messages>

  /**
   * Changes of the state as calls that show their result at once. When the service refuses one, or
   * the connection is lost first, the view returns to its earlier value, and the call rejects.
   * Until then other members do not see the change.
   *
   * @example
   * room.optimistic.setState({ card: 7 }).catch(() => shake(card)) // `room.state.card` is 7 already
   */
  readonly optimistic: OptimisticChanges<State, PlayerState>

  /**
   * Peer-to-peer rooms: the data channels between the members.
   *
   * @example
   * await room.peers.connect()
   * room.peers.send("move", { x: 1, y: 2 })
   */
  readonly peers: RoomPeers<Messages>

  /**
   * Sends a WebRTC signal to one other member of a peer-to-peer room, who receives the event
   * `signal`. Rejects with `p2p_only` or `player_not_in_room`. `delivered` is 0 while the other
   * member is disconnected. `room.peers` does this for data channels.
   *
   * @example
   * peer.onicecandidate = ({ candidate }) =>
   *   candidate && room.signal({ to: friend.id, kind: "candidate", data: candidate.toJSON() })
   * room.on("signal", ({ from, kind, data }) => peers.get(from).onSignal(kind, data))
   */
  signal(step: FramePayload<"signal">): Promise<FrameData<"signal">>

  /**
   * Peer-to-peer rooms: returns the STUN and TURN servers, with credentials for an hour. Rejects with
   * `turn_unavailable` if this player needs a relay and the service has none.
   *
   * @example
   * const peer = new RTCPeerConnection(await room.iceServers())
   */
  iceServers(): Promise<RtcServers>

  /**
   * Locks the room to new players, or unlocks it. Only the host may do so; others get `host_only`.
   *
   * @example
   * await room.lock() // and room.lock(false) opens it
   */
  lock(locked?: boolean): Promise<void>

  /**
   * Moderates a player, as the host and as far as the mode permits: `kick` bars it for a minute, `ban` for
   * the room's life, until `unban`. `mute` hides its messages. `team` moves it, `host` passes the role on.
   * Rejects with `host_only`, `not_permitted`, `player_not_in_room` or `team_full`.
   *
   * @example
   * await room.moderate("ban", rude.id, { reason: "abuse" })
   * await room.moderate("host", friend.id)
   */
  moderate(op: RoomModerateOp, playerId: string, options?: ModerateOptions): Promise<void>

  /**
   * Removes a player, who may come back after a minute. The same as `moderate("kick", playerId)`.
   *
   * @example
   * await room.kick(idle.id, "afk")
   */
  kick(playerId: string, reason?: string): Promise<void>

  /**
   * Starts a vote with this player's yes, and returns its id. The event `vote` follows with each
   * ballot and at its end; `snapshot.vote` is the open one. Rejects with `not_permitted`, `vote_running` or
   * `vote_cooldown`.
   *
   * @example
   * await room.vote("kick", idle.id)
   * room.on("vote", ({ yes, needed, state }) => show(`${yes} of ${needed}, ${state}`))
   */
  vote(op: VoteOp, playerId?: string): Promise<string>

  /**
   * Votes in the open vote, once. Rejects with `vote_not_found` after its end.
   *
   * @example
   * room.on("vote", ({ voteId, state }) => state === "open" && ask((yes) => room.castVote(voteId, yes)))
   */
  castVote(voteId: string, yes: boolean): Promise<void>

  /**
   * Changes this player's team, in a mode whose `assign` is `free`, until the room is locked. Rejects with
   * `team_full` or `not_permitted`.
   *
   * @example
   * await room.setTeam("red")
   */
  setTeam(team: string): Promise<void>

  /**
   * Leaves the room and frees the seat, which closes the room for this client with reason `left`.
   *
   * @example
   * await room.leave()
   */
  leave(): Promise<void>
}
