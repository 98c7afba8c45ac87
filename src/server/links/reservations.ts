/**
 * Reservation of one connection: the only seat or ticket its player may have, as the player's
 * session has granted it. The session is the authority. Sessions move, calls get lost and replies
 * come late. So the connection presents its reservation to each activation of the session. It
 * retries a failed release before it makes a new reservation.
 */
import { Effect, Semaphore } from "effect"
import { AlreadyInRoom, AlreadyMatching, type CodedError } from "#rpc/errors/codes"
import type { HeldSeat } from "#rpc/realtime"
import type { PlayerSessionCommand } from "#entities/player-session/protocol"
import { noReservation, type Reservation, sameReservation } from "#entities/player-session/state"
import { isUnavailable, retryWhileMoving } from "./entity-call.ts"
import { noReply } from "./reply-deadlines.ts"

/** The calls that a reservation needs. */
export interface ReservationCalls {
  /** Sends a command to the player's session. Fails with `noReply` if there is none in time. */
  readonly session: (command: PlayerSessionCommand) => Effect.Effect<unknown, CodedError>
  /** The seat that the player has in a room, as the room knows it. */
  readonly peek: (roomId: string) => Effect.Effect<HeldSeat | null, CodedError>
}

/** Returns the error for a connection that holds one reservation and requests another. */
const conflict = (held: Reservation): CodedError =>
  held.kind === "seat"
    ? new AlreadyInRoom({ details: { roomId: held.roomId } })
    : new AlreadyMatching()

export class ReservationManager {
  readonly #connectionId: string
  readonly #playerId: string
  readonly #calls: ReservationCalls
  /** Reservation that the session has granted and the connection has not released. */
  #current: Reservation = noReservation
  /** Release that the session does not know of yet. */
  #pendingRelease: Reservation = noReservation
  /** Number of times that an activation of the session was sent the reservation. */
  #presented = 0
  /** Lock by which changes of the reservation run one after the other. */
  readonly #lock = Semaphore.makeUnsafe(1)

  constructor(options: {
    readonly connectionId: string
    readonly playerId: string
    readonly calls: ReservationCalls
  }) {
    this.#connectionId = options.connectionId
    this.#playerId = options.playerId
    this.#calls = options.calls
  }

  get current(): Reservation {
    return this.#current
  }

  /** The reservation, for a new activation of the session. A request under way repeats itself then. */
  present(): Reservation {
    this.#presented += 1
    return this.#current
  }

  hasSeat(roomId: string): boolean {
    return this.#current.kind === "seat" && this.#current.roomId === roomId
  }

  /** The seat that the player has in a room, as the room knows it. */
  peek(roomId: string): Effect.Effect<HeldSeat | null, CodedError> {
    return this.#calls.peek(roomId)
  }

  /** Claims a seat or ticket from the player's session. */
  claim(wanted: Reservation): Effect.Effect<void, CodedError> {
    return this.#lock.withPermits(1)(Effect.suspend(() => this.#claim(wanted)))
  }

  /** Replaces a ticket by the seat that the queue has found for it. */
  confirm(ticketId: string, roomId: string): Effect.Effect<void, CodedError> {
    const seat: Reservation = { kind: "seat", roomId }
    return this.#lock.withPermits(1)(
      this.#request(seat, {
        t: "settle",
        playerId: this.#playerId,
        connectionId: this.#connectionId,
        ticketId,
        roomId
      })
    )
  }

  /** Releases a reservation, now or before the next claim. */
  release(reservation: Reservation): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (sameReservation(this.#current, reservation)) this.#current = noReservation
      const releasing = Effect.suspend(() => {
        if (sameReservation(this.#current, reservation)) return Effect.void
        return Effect.andThen(this.#flushPendingRelease(), this.#sendRelease(reservation)).pipe(
          Effect.catch(() =>
            Effect.sync(() => {
              this.#pendingRelease = reservation
            })
          )
        )
      })
      return this.#lock.withPermits(1)(releasing)
    })
  }

  /**
   * Drops a seat that may or may not have been taken. The session keeps it, and the next claim asks
   * the room.
   */
  forgetUnconfirmed(roomId: string): void {
    if (this.hasSeat(roomId)) this.#current = noReservation
  }

  #claim(wanted: Reservation): Effect.Effect<void, CodedError> {
    if (this.#current.kind !== "none") {
      return sameReservation(this.#current, wanted)
        ? Effect.void
        : Effect.fail(conflict(this.#current))
    }
    const claiming = this.#request(wanted, {
      t: "claim",
      playerId: this.#playerId,
      connectionId: this.#connectionId,
      reservation: wanted
    })
    return Effect.andThen(
      this.#flushPendingRelease(),
      claiming.pipe(
        Effect.catch((error) =>
          Effect.flatMap(this.#releaseStaleSeat(error), (released) =>
            released ? claiming : Effect.fail(error)
          )
        ),
        Effect.tapError((error) => Effect.sync(() => this.#releaseLater(wanted, error)))
      )
    )
  }

  /** Sends a command until no other activation of the session has taken over meanwhile. */
  #request(wanted: Reservation, command: PlayerSessionCommand): Effect.Effect<void, CodedError> {
    return Effect.gen({ self: this }, function* () {
      let presented: number
      do {
        presented = this.#presented
        yield* this.#ask(command)
      } while (presented !== this.#presented)
      this.#current = wanted
    })
  }

  #ask(command: PlayerSessionCommand): Effect.Effect<unknown, CodedError> {
    const call = Effect.suspend(() => this.#calls.session(command))
    // Nearly always the first call succeeds, and needs no timers.
    return Effect.catchIf(
      call,
      (error) => isUnavailable(error) && error !== noReply,
      () => retryWhileMoving(call)
    )
  }

  #sendRelease(reservation: Reservation): Effect.Effect<unknown, CodedError> {
    return this.#ask({ t: "release", playerId: this.#playerId, reservation })
  }

  #flushPendingRelease(): Effect.Effect<void, CodedError> {
    return Effect.suspend(() => {
      if (this.#pendingRelease.kind === "none") return Effect.void
      return Effect.map(this.#sendRelease(this.#pendingRelease), () => {
        this.#pendingRelease = noReservation
      })
    })
  }

  /**
   * Releases a seat that the session remembers and its room does not. Returns whether there was
   * one.
   */
  #releaseStaleSeat(error: CodedError): Effect.Effect<boolean, CodedError> {
    if (error._tag !== "already_in_room") return Effect.succeed(false)
    const roomId = String(Object(error.details).roomId)
    return Effect.flatMap(this.peek(roomId), (seat) =>
      seat === null
        ? Effect.as(this.#sendRelease({ kind: "seat", roomId }), true)
        : Effect.succeed(false)
    )
  }

  /**
   * Releases a ticket later: the session may have granted it after all, too late. For a seat, the
   * next claim asks its room instead.
   */
  #releaseLater(wanted: Reservation, error: CodedError): void {
    if (wanted.kind === "ticket" && isUnavailable(error)) this.#pendingRelease = wanted
  }
}
