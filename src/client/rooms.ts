/**
 * Rooms and matchmaking (spec section 4.4): listing, entering, and the one room that the player sits
 * in, which is resumed after a drop without the game's doing.
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

/** How to wait for a match. */
export interface QuickMatchOptions {
  /** Aborting it cancels the wait. */
  readonly signal?: AbortSignal
}

export interface Rooms {
  /**
   * The room the player sits in, or null.
   *
   * @example
   * client.rooms.current?.send("chat", "hello")
   */
  readonly current: Room | null

  /**
   * Open public rooms with a free seat, newest first, at most a second old. Needs no player.
   *
   * @example
   * const rooms = await client.rooms.list({ mode: "default" })
   */
  list(filter?: RoomFilter): Promise<ReadonlyArray<PublicRoom>>

  /**
   * Opens a room and takes its first seat, as host. Rejects with `mode_not_found`, `code_taken` or
   * `already_in_room`.
   *
   * @example
   * const room = await client.rooms.create({ mode: "default", private: true })
   * show(room.code)
   */
  create(room: FramePayload<typeof create>): Promise<Room>

  /**
   * Takes a seat in the room of a code or an id. Rejects with `room_not_found`, `room_full`,
   * `room_locked` or `already_in_room`.
   *
   * @example
   * const room = await client.rooms.join({ code: "7KMB2P" })
   */
  join(room: FramePayload<typeof join>): Promise<Room>

  /**
   * Waits for a match, for as long as it takes; a lost connection does not end the wait. Aborting
   * the signal rejects with `match_cancelled`, unless a match had been made by then.
   *
   * @example
   * const waiting = new AbortController()
   * cancelButton.onclick = () => waiting.abort()
   * const room = await client.rooms.quickMatch("default", { signal: waiting.signal })
   */
  quickMatch(mode: string, options?: QuickMatchOptions): Promise<Room>

  /**
   * Returns to the seat that is kept for the player, say after the page was loaded anew. Null when
   * none is kept.
   *
   * @example
   * const room = (await client.rooms.resume()) ?? (await client.rooms.quickMatch("default"))
   */
  resume(): Promise<Room | null>
}

/** While a room moves to another machine its seat cannot be resumed; that takes a moment. */
const resumeRetry = Schedule.exponential("250 millis")
const resumeTimeout = "20 seconds"
const resumableErrors: ReadonlySet<string> = new Set(["unavailable", "rate_limited"])

const isRoomEvent = (event: ServerEvent): event is RoomEvent => roomEvents.has(event.t)

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

  /** The service has told something. */
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
   * An event could not be read: its service is newer. If it was about the room, the view is made
   * whole by a new snapshot, which comes to a member that joins again.
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

  /** A socket stands again: the seat is resumed on it before anything else. */
  welcomed(): Effect.Effect<void> {
    return Effect.suspend(() => {
      const room = this.#activeRoom
      if (room === undefined) return Effect.void
      const timedOut = new TimedOut({ message: "The room did not answer." })
      return this.#host.connection.transport.call(resume, { roomId: room.id }).pipe(
        Effect.retry({ schedule: resumeRetry, while: ({ _tag }) => resumableErrors.has(_tag) }),
        Effect.timeoutOrElse({ duration: resumeTimeout, orElse: () => Effect.fail(timedOut) }),
        Effect.catch((error) =>
          Effect.sync(() => {
            if (error._tag === "disconnected") return
            room.end({ reason: error instanceof ServiceError ? error.code : error._tag })
          })
        ),
        Effect.asVoid
      )
    })
  }

  /** The connection has changed. */
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
    // The snapshot has come before the reply (spec section 6).
    const room = this.#room
    if (room?.id !== roomId) {
      const message = "The snapshot of the room did not come."
      throw new ServiceError({ code: "unreadable_reply", message })
    }
    this.#scheduleFlush(room)
    return room
  }

  /** What has come meanwhile is told once the code that gets the room has had its turn to listen. */
  #scheduleFlush(room: LiveRoom): void {
    setTimeout(() => room.flush(), 0)
  }

  /** A lost connection loses the ticket: it is asked for again, and what it had found is resumed. */
  #match(mode: string, again: boolean): Effect.Effect<RoomRef, MatchError> {
    const { connection } = this.#host
    return connection.request(quickMatch, { mode }, { patient: true }).pipe(
      Effect.catch((error): Effect.Effect<RoomRef, MatchError> => {
        const lost = error._tag === "disconnected" && connection.status === "connecting"
        if (lost) return this.#match(mode, true)
        return again && error._tag === "already_in_room"
          ? connection.request(resume, error.details)
          : Effect.fail(error)
      })
    )
  }

  /** Fails when the wait is cancelled; when the match was made first, its reply decides. */
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
