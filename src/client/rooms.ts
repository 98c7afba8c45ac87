/**
 * Rooms and matchmaking: listing, joining, and the player's current room. The client resumes its seat
 * after a disconnect.
 */
import { Effect, Schedule } from "effect"
import { MatchCancelled } from "#rpc/errors/codes"
import { cancelMatch, quickMatch } from "#rpc/matchmaking"
import type { ServerEvent } from "#rpc/realtime"
import { create, join, type PublicRoom, resume, RoomEvent, type RoomRef } from "#rpc/rooms"
import type { CallError, ConnectionStatus } from "./connection.ts"
import { ServiceError, TimedOut } from "./errors.ts"
import { isError } from "./failures.ts"
import type { FrameError, FramePayload } from "./frames.ts"
import type { Http, RoomFilter } from "./http.ts"
import { LiveRoom, type RoomHost } from "./live-room.ts"
import type { Room } from "./room.ts"
import type { Closed } from "./socket.ts"

/** Options of a matchmaking call. */
export interface QuickMatchOptions {
  /** Aborting it cancels the ticket. */
  readonly signal?: AbortSignal
}

/** Rooms and matchmaking. */
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
   * player.
   *
   * @example
   * const rooms = await client.rooms.list({ mode: "default" })
   */
  list(filter?: RoomFilter): Promise<ReadonlyArray<PublicRoom>>

  /**
   * Opens a room and joins it as its host. Rejects with `mode_not_found`, `code_taken` or
   * `already_in_room`.
   *
   * @example
   * const room = await client.rooms.create({ mode: "default", private: true })
   * show(room.code)
   */
  create(room: FramePayload<typeof create>): Promise<Room>

  /**
   * Joins a room by its code or id. Rejects with `room_not_found`, `room_full`,
   * `room_locked` or `already_in_room`.
   *
   * @example
   * const room = await client.rooms.join({ code: "7KMB2P" })
   */
  join(room: FramePayload<typeof join>): Promise<Room>

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
  quickMatch(mode: string, options?: QuickMatchOptions): Promise<Room>

  /**
   * Returns to the player's reserved seat, for example after a page reload. Null if no seat is reserved.
   *
   * @example
   * const room = (await client.rooms.resume()) ?? (await client.rooms.quickMatch("default"))
   */
  resume(): Promise<Room | null>
}

/** A room that moves to another runner cannot be resumed for a moment. */
const resumeRetry = Schedule.exponential("250 millis")
const resumeTimeout = "20 seconds"
const resumableErrors: ReadonlySet<string> = new Set(["unavailable", "rate_limited"])

const isRoomEvent = (event: ServerEvent): event is RoomEvent =>
  roomEvents.has(event.t) && !("channel" in event)

const roomEvents: ReadonlySet<string> = new Set(
  RoomEvent.members.map(({ fields }) => fields.t.literal)
)

type MatchError = FrameError<typeof quickMatch> | FrameError<typeof resume> | CallError

const aborted = (signal: AbortSignal) =>
  Effect.callback<void>((done) => {
    const onAbort = () => done(Effect.void)
    signal.addEventListener("abort", onAbort, { once: true })
    return Effect.sync(() => signal.removeEventListener("abort", onAbort))
  })

export class LiveRooms implements Rooms {
  readonly #host: RoomHost
  readonly #http: Http
  #room: LiveRoom | undefined
  #wasDisconnected = false
  #isResyncing = false

  constructor(host: RoomHost, http: Http) {
    this.#host = host
    this.#http = http
  }

  get current(): Room | null {
    const room = this.#activeRoom
    if (room === undefined) return null
    this.#scheduleFlush(room)
    return room
  }

  list(filter: RoomFilter = {}) {
    return this.#host.run(Effect.map(this.#http.listRooms(filter), ({ rooms }) => rooms))
  }

  create(room: FramePayload<typeof create>) {
    return this.#enter(this.#host.connection.request(create, room))
  }

  join(room: FramePayload<typeof join>) {
    return this.#enter(this.#host.connection.request(join, room))
  }

  quickMatch(mode: string, { signal }: QuickMatchOptions = {}) {
    if (signal?.aborted === true) return Promise.reject(new MatchCancelled())
    const matched = Effect.andThen(this.#host.connection.open(), this.#match(mode, false))
    return this.#enter(
      signal === undefined ? matched : Effect.raceFirst(matched, this.#cancelOn(signal))
    )
  }

  async resume(): Promise<Room | null> {
    const { connection, run } = this.#host
    const { rooms } = await run(connection.open())
    const [heldSeat] = rooms
    if (this.#activeRoom !== undefined || heldSeat === undefined) return this.current
    try {
      return await this.#enter(connection.request(resume, heldSeat))
    } catch (error) {
      if (isError(error, "resume_expired")) return null
      throw error
    }
  }

  /** Handles an event of the service. */
  receive(event: ServerEvent): void {
    if (event.t === "welcome") return
    const room = this.#activeRoom
    if (event.t === "warn") return room?.emit("warn", event)
    if (!isRoomEvent(event)) return
    if (event.t !== "room_joined" || room?.id === event.room.id) return room?.receive(event)
    room?.end({ reason: "left" })
    this.#room = new LiveRoom(this.#host, event)
  }

  /**
   * Handles an event that this client version cannot decode. For a room event it joins again, because
   * the service then sends a snapshot that completes the view.
   */
  resync(type: string | undefined): void {
    const room = this.#activeRoom
    if (room === undefined || type === undefined || this.#isResyncing) return
    if (!roomEvents.has(type) || type === "room_joined") return
    this.#isResyncing = true
    const { connection, run } = this.#host
    const joined = connection.transport
      .call(join, { roomId: room.id })
      .pipe(
        Effect.timeout(resumeTimeout),
        Effect.ignore,
        Effect.ensuring(Effect.sync(() => (this.#isResyncing = false)))
      )
    void run(joined)
  }

  /** Runs when a socket is authenticated: resumes the seat before any waiting call. */
  welcomed(): Effect.Effect<void> {
    return Effect.suspend(() => {
      const room = this.#activeRoom
      if (room === undefined) return Effect.void
      const timedOut = new TimedOut({ message: "Failed to resume the seat in time." })
      return this.#host.connection.transport.call(resume, { roomId: room.id }).pipe(
        Effect.retry({ schedule: resumeRetry, while: ({ _tag }) => resumableErrors.has(_tag) }),
        Effect.timeoutOrElse({ duration: resumeTimeout, orElse: () => Effect.fail(timedOut) }),
        Effect.catch((error) =>
          Effect.sync(() => {
            if (error._tag === "disconnected") return
            room.end({ reason: error.code })
          })
        ),
        Effect.asVoid
      )
    })
  }

  /** Handles a change of the connection's status. */
  status(status: ConnectionStatus, closed: Closed | undefined): void {
    const room = this.#activeRoom
    if (status === "closed") return room?.end(closed ?? { reason: "closed" })
    if (status === "connecting") {
      this.#wasDisconnected = closed !== undefined
      if (closed !== undefined) room?.emit("disconnected", closed)
    } else if (this.#wasDisconnected) {
      this.#wasDisconnected = false
      room?.emit("reconnected", room.snapshot)
    }
  }

  get #activeRoom(): LiveRoom | undefined {
    return this.#room?.closed === undefined ? this.#room : undefined
  }

  async #enter<E>(entered: Effect.Effect<RoomRef, E>): Promise<Room> {
    const { roomId } = await this.#host.run(entered)
    // The service sends the snapshot before the reply.
    const room = this.#room
    if (room?.id !== roomId) {
      const message = "Failed to join the room: the reply came without a snapshot."
      throw new ServiceError({ code: "unreadable_reply", message })
    }
    this.#scheduleFlush(room)
    return room
  }

  /** Delivers buffered events after the caller's code could add listeners. */
  #scheduleFlush(room: LiveRoom): void {
    setTimeout(() => room.flush(), 0)
  }

  /** Waits for a match. A disconnect loses the ticket: asks again, and resumes a seat it had found. */
  #match(mode: string, again: boolean): Effect.Effect<RoomRef, MatchError> {
    const { connection } = this.#host
    return connection.request(quickMatch, { mode }, { untimed: true }).pipe(
      Effect.catch((error): Effect.Effect<RoomRef, MatchError> => {
        const lost = error._tag === "disconnected" && connection.status === "connecting"
        if (lost) return this.#match(mode, true)
        return again && error._tag === "already_in_room"
          ? connection.request(resume, error.details)
          : Effect.fail(error)
      })
    )
  }

  /** Fails when the signal cancels the ticket. If the match was made first, never completes. */
  #cancelOn(signal: AbortSignal): Effect.Effect<never, MatchCancelled> {
    const { connection } = this.#host
    const cancelled = Effect.fail(new MatchCancelled())
    const cancel = Effect.suspend(() =>
      connection.status === "open"
        ? connection.transport.call(cancelMatch, undefined)
        : Effect.succeed({ cancelled: true })
    )
    return Effect.andThen(aborted(signal), cancel).pipe(
      Effect.matchEffect({
        onSuccess: (answer) => (answer.cancelled ? cancelled : Effect.never),
        onFailure: ({ _tag }) => (_tag === "not_matching" ? Effect.never : cancelled)
      })
    )
  }
}
