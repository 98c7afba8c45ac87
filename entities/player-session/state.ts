/**
 * Player session state machine, pure: the newest connection, and the one reservation of the player.
 * A reservation is a seat in a room or a ticket in a queue. The session is the authority for both,
 * so a player is never in two rooms nor matched twice, whatever gateways and queues assume.
 */
import { Result } from "effect"
import { AlreadyInRoom, AlreadyMatching, Unavailable } from "#rpc/errors/codes"

export type Reservation =
  | { readonly kind: "none" }
  | { readonly kind: "ticket"; readonly ticketId: string }
  | { readonly kind: "seat"; readonly roomId: string }

export interface SessionState {
  /** The newest connection; ids are ordered by time. */
  readonly connectionId: string | null
  readonly reservation: Reservation
}

export const noReservation: Reservation = { kind: "none" }

export type SessionCommand =
  /** Opens a connection, or attaches it again with its reservation after the session moved. */
  | { readonly t: "attach"; readonly connectionId: string; readonly reservation: Reservation }
  | { readonly t: "detach"; readonly connectionId: string }
  | { readonly t: "claim"; readonly connectionId: string; readonly reservation: Reservation }
  /** The queue found a room for a ticket of this connection. Release 0.1 names it `settle`. */
  | {
      readonly t: "confirm" | "settle"
      readonly connectionId: string
      readonly ticketId: string
      readonly roomId: string
    }
  | { readonly t: "release"; readonly reservation: Reservation }

export interface SessionDecision {
  readonly state: SessionState
  /** The connection that a newer one replaced. */
  readonly replaced: string | null
}

/** Whether both are the same reservation. */
export const sameReservation = (a: Reservation, b: Reservation): boolean =>
  a.kind === "seat"
    ? b.kind === "seat" && a.roomId === b.roomId
    : a.kind === "ticket"
      ? b.kind === "ticket" && a.ticketId === b.ticketId
      : b.kind === "none"

const succeed = (state: SessionState): Result.Result<SessionDecision, never> =>
  Result.succeed({ state, replaced: null })

const attach = (
  state: SessionState,
  connectionId: string,
  reservation: Reservation
): Result.Result<SessionDecision, never> => {
  const current = state.connectionId
  if (current !== null && current > connectionId) {
    return Result.succeed({ state, replaced: connectionId })
  }
  const replaced = current === connectionId ? null : current
  // A ticket that the connection does not name was granted to a connection that is gone.
  const fallback = state.reservation.kind === "ticket" ? noReservation : state.reservation
  return Result.succeed({
    state: { connectionId, reservation: reservation.kind === "none" ? fallback : reservation },
    replaced
  })
}

const claim = (
  state: SessionState,
  connectionId: string,
  reservation: Reservation
): Result.Result<SessionDecision, AlreadyInRoom | AlreadyMatching | Unavailable> => {
  if (state.connectionId !== connectionId) return Result.fail(new Unavailable())
  if (sameReservation(state.reservation, reservation)) return succeed(state)
  switch (state.reservation.kind) {
    case "none":
      return succeed({ ...state, reservation })
    case "ticket":
      return Result.fail(new AlreadyMatching())
    case "seat":
      return Result.fail(new AlreadyInRoom({ details: { roomId: state.reservation.roomId } }))
  }
}

/**
 * Replaces a ticket by a seat. A session that moved may not know the ticket, so `none` is accepted.
 */
const confirm = (
  state: SessionState,
  command: Extract<SessionCommand, { ticketId: string }>
): Result.Result<SessionDecision, Unavailable> => {
  const { connectionId, roomId, ticketId } = command
  const seat: Reservation = { kind: "seat", roomId }
  if (sameReservation(state.reservation, seat)) return succeed(state)
  const mayHoldTicket =
    state.reservation.kind === "none" ||
    sameReservation(state.reservation, { kind: "ticket", ticketId })
  return state.connectionId === connectionId && mayHoldTicket
    ? succeed({ ...state, reservation: seat })
    : Result.fail(new Unavailable())
}

/** Decides a command. */
export const decide = (
  state: SessionState,
  command: SessionCommand
): Result.Result<SessionDecision, AlreadyInRoom | AlreadyMatching | Unavailable> => {
  switch (command.t) {
    case "attach":
      return attach(state, command.connectionId, command.reservation)
    case "detach":
      if (state.connectionId !== command.connectionId) return succeed(state)
      return succeed({
        connectionId: null,
        reservation: state.reservation.kind === "ticket" ? noReservation : state.reservation
      })
    case "claim":
      return claim(state, command.connectionId, command.reservation)
    case "confirm":
    case "settle":
      return confirm(state, command)
    case "release":
      return succeed(
        sameReservation(state.reservation, command.reservation)
          ? { ...state, reservation: noReservation }
          : state
      )
  }
}
