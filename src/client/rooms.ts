/**
 * Rooms and matchmaking: listing, joining, and the player's current room. The client resumes its seat
 * after a disconnect.
 */
import { authorized } from "./authorized.ts"
import type { Module } from "./compose.ts"
import type { ConnectionStatus } from "./connection.ts"
import type { Core } from "./core.ts"
import { ClientError, isError } from "./errors.ts"
import { type FramePayload, unreadableReply, type ServerEvent } from "./frames.ts"
import { LiveRoom } from "./live-room.ts"
import { rejoin, rejoinMillis } from "./rejoin.ts"
import type { AnyMessages, Room } from "./room.ts"
import type { Closed } from "./socket.ts"
import type { JsonObject, PublicRoom, RoomRef } from "./wire.ts"

/** Filter of a room list. */
export interface RoomFilter {
  /** Mode of the listed rooms; default: any mode. */
  readonly mode?: string
  /** 1 to 100; default 50. */
  readonly limit?: number
}

/** A room by its id, such as that of a room in the list. */
export interface RoomId {
  readonly roomId: string
}

/** Options of a call that enters a room. */
export interface EnterOptions {
  /**
   * Aborting it takes the call back. The next call that enters a room waits until the service has
   * done so.
   */
  readonly signal?: AbortSignal
}

/**
 * Rooms and matchmaking. The type parameters describe the game's state, the state of its players, and
 * its messages; the service does not check them.
 */
export interface Rooms {
  /**
   * The room in which the player has a seat, or null.
   *
   * @example
   * client.rooms.current?.send("chat", "hello")
   */
  readonly current: Room | null

  /**
   * Lists open public rooms with a free seat, newest first. The list is at most a second old. Needs no
   * player; for a signed-in one it leaves out the rooms of hosts who have blocked the player.
   *
   * @example
   * const rooms = await client.rooms.list({ mode: "default" })
   */
  list(filter?: RoomFilter): Promise<ReadonlyArray<PublicRoom>>

  /**
   * Opens a room and joins it as its host. Rejects with `mode_not_found`, `code_taken` or
   * `already_in_room`, and with `aborted` when the signal is aborted before that.
   *
   * @example
   * const room = await client.rooms.create({ mode: "default", private: true })
   * show(room.code)
   */
  create<State = JsonObject, PlayerState = JsonObject, Messages = AnyMessages>(
    room: FramePayload<"create">,
    options?: EnterOptions
  ): Promise<Room<State, PlayerState, Messages>>

  /**
   * Joins a room by its code, as the player typed it, or by its id. Rejects with `room_not_found`,
   * `room_full`, `room_locked` or `already_in_room`, and with `aborted` when the signal is aborted
   * before that.
   *
   * @example
   * const room = await client.rooms.join("7KMB2P")
   *
   * @example
   * const [listed] = await client.rooms.list()
   * const room = await client.rooms.join({ roomId: listed.roomId })
   */
  join<State = JsonObject, PlayerState = JsonObject, Messages = AnyMessages>(
    room: string | RoomId,
    options?: EnterOptions
  ): Promise<Room<State, PlayerState, Messages>>

  /**
   * Waits for a match without a timeout, even across reconnects. Aborting the signal rejects with
   * `match_cancelled`, unless the match was already made. Rejects with `mode_not_found`,
   * `already_in_room` or `already_matching`.
   *
   * @example
   * const waiting = new AbortController()
   * cancelButton.onclick = () => waiting.abort()
   * const room = await client.rooms.quickMatch("default", { signal: waiting.signal })
   */
  quickMatch<State = JsonObject, PlayerState = JsonObject, Messages = AnyMessages>(
    mode: string,
    options?: EnterOptions
  ): Promise<Room<State, PlayerState, Messages>>

  /**
   * Returns to the player's reserved seat, for example after a page reload. Null if no seat is reserved.
   *
   * @example
   * const room = (await client.rooms.resume()) ?? (await client.rooms.quickMatch("default"))
   */
  resume<State = JsonObject, PlayerState = JsonObject, Messages = AnyMessages>(): Promise<Room<
    State,
    PlayerState,
    Messages
  > | null>
}

const aborted = () => new ClientError("aborted", "The signal is aborted.")

const cancelled = () => new ClientError("match_cancelled", "Search cancelled.")

class LiveRooms {
  readonly #core: Core
  #room: LiveRoom | undefined
  #isResyncing = false
  /** Settles when the service has taken back all calls that were aborted. */
  #undoing: Promise<unknown> | undefined

  constructor(core: Core) {
    this.#core = core
  }

  get current(): LiveRoom | null {
    const room = this.#activeRoom
    if (room === undefined) return null
    this.#scheduleFlush(room)
    return room
  }

  async list(query: RoomFilter = {}): Promise<ReadonlyArray<PublicRoom>> {
    const { http, tokens } = this.#core
    const request = (token?: string) =>
      http.request("GET /v1/rooms", token === undefined ? { query } : { query, token })
    const session = await tokens.resume()
    return (await (session === undefined ? request() : authorized(tokens, request))).rooms
  }

  create(room: FramePayload<"create">, options?: EnterOptions): Promise<LiveRoom> {
    return this.#request(() => this.#core.connection.request("create", room), options)
  }

  join(room: string | RoomId, options?: EnterOptions): Promise<LiveRoom> {
    const payload = typeof room === "string" ? { code: room } : { roomId: room.roomId }
    return this.#request(() => this.#core.connection.request("join", payload), options)
  }

  async quickMatch(mode: string, { signal }: EnterOptions = {}): Promise<LiveRoom> {
    while (this.#undoing !== undefined) await this.#undoing
    if (signal?.aborted) throw cancelled()
    const ticket = { isCancelled: false }
    const matched = new Promise<RoomRef>((resolve, reject) => {
      const abort = () =>
        this.#undo(
          this.#cancel().then((isCancelled) => {
            ticket.isCancelled = isCancelled
            if (isCancelled) reject(cancelled())
          })
        )
      const stop = () => signal?.removeEventListener("abort", abort)
      signal?.addEventListener("abort", abort)
      this.#match(mode, ticket).then(resolve, reject).finally(stop)
    })
    return this.#enter(matched)
  }

  async resume(): Promise<LiveRoom | null> {
    const { connection } = this.#core
    const { rooms } = await connection.open()
    const [heldSeat] = rooms
    if (this.#activeRoom !== undefined || heldSeat === undefined) return this.current
    try {
      return await this.#enter(connection.request("resume", { roomId: heldSeat.roomId }))
    } catch (error) {
      if (isError(error, "resume_expired")) return null
      throw error
    }
  }

  /** Handles an event of the service. */
  receive(event: ServerEvent): void {
    const room = this.#activeRoom
    if (event.t === "warn") return room?.emit("warn", event)
    // Events of channels have the field `channel`. Further events of rooms come from newer services.
    if (event.t === "welcome" || "channel" in event) return
    try {
      if (event.t !== "room_joined" || room?.id === event.room.id) return room?.receive(event)
      room?.end({ reason: "left" })
      this.#room = new LiveRoom(this.#core, event)
    } catch (error) {
      this.#core.log("unreadable event", event, error)
      if (room !== undefined) void this.#resync(room)
    }
  }

  /**
   * Handles an event that this client version cannot apply: joins again, because the service then sends
   * a snapshot that completes the view.
   */
  async #resync(room: LiveRoom): Promise<void> {
    if (this.#isResyncing) return
    this.#isResyncing = true
    const { transport } = this.#core.connection
    await transport.call("join", { roomId: room.id }, rejoinMillis).catch(() => undefined)
    this.#isResyncing = false
  }

  /** Runs when a socket is authenticated: resumes the seat before any waiting call. */
  async welcomed(): Promise<void> {
    const room = this.#activeRoom
    if (room === undefined) return
    await rejoin(this.#core, "resume", { roomId: room.id }, room)
  }

  /** Handles a change of the connection's status. */
  status(status: ConnectionStatus, closed: Closed | undefined): void {
    const room = this.#activeRoom
    if (status === "offline") return room?.end(closed ?? { reason: "closed" })
    if (closed === undefined) return
    if (status === "connecting") room?.emit("disconnected", closed)
    else room?.emit("reconnected", room.snapshot)
  }

  get #activeRoom(): LiveRoom | undefined {
    return this.#room?.closed === undefined ? this.#room : undefined
  }

  /** Enters a room by a call, after those that were aborted. */
  async #request(call: () => Promise<RoomRef>, { signal }: EnterOptions = {}): Promise<LiveRoom> {
    while (this.#undoing !== undefined) await this.#undoing
    if (signal?.aborted) throw aborted()
    const entering = this.#enter(call())
    if (signal === undefined) return entering
    return new Promise((resolve, reject) => {
      const abort = () => {
        reject(aborted())
        // A call that failed has entered nothing.
        this.#undo(
          entering.then(
            (room) => room.leave(),
            () => undefined
          )
        )
      }
      signal.addEventListener("abort", abort)
      const stop = () => signal.removeEventListener("abort", abort)
      entering.then(resolve, reject).finally(stop)
    })
  }

  /** Lets the calls that enter a room wait until an aborted one is taken back. */
  #undo(undone: Promise<void>): void {
    const failed = (error: unknown) => this.#core.log("not undone", error)
    const undoing = Promise.all([this.#undoing, undone.catch(failed)]).finally(() => {
      if (this.#undoing === undoing) this.#undoing = undefined
    })
    this.#undoing = undoing
  }

  async #enter(entered: Promise<RoomRef>): Promise<LiveRoom> {
    const { roomId } = await entered
    // The service sends the snapshot before the reply.
    const room = this.#room
    if (room?.id !== roomId) throw unreadableReply()
    this.#scheduleFlush(room)
    return room
  }

  /** Delivers buffered events after the caller's code could add listeners. */
  #scheduleFlush(room: LiveRoom): void {
    setTimeout(() => room.flush(), 0)
  }

  /** Waits for a match. A disconnect loses the ticket: asks again, and resumes a seat it had found. */
  async #match(mode: string, ticket: Ticket): Promise<RoomRef> {
    const { connection } = this.#core
    await connection.open()
    for (let isAgain = false; ; isAgain = true) {
      if (ticket.isCancelled) throw cancelled()
      try {
        return await connection.request("quickMatch", { mode }, { untimed: true })
      } catch (error) {
        if (isError(error, "disconnected") && connection.status === "connecting") continue
        if (!isAgain || !isError(error, "already_in_room")) throw error
        return connection.request("resume", { roomId: error.details.roomId })
      }
    }
  }

  /** Cancels the ticket. False if the match was made first. */
  async #cancel(): Promise<boolean> {
    const { connection } = this.#core
    if (connection.status !== "online") return true
    try {
      return (await connection.transport.call("cancelMatch", undefined)).cancelled
    } catch (error) {
      return !isError(error, "not_matching")
    }
  }
}

/** A search for a match. */
interface Ticket {
  isCancelled: boolean
}

export const rooms: Module<Rooms> = (core) => {
  const live = new LiveRooms(core)
  core.connection.listen(live)
  // The game names the types of its state and messages, which the service does not check.
  return live as Rooms
}
