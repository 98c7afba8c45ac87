/**
 * A player's session as a pure state machine: which connection is the newest, and the one place the
 * player has, a seat in a room or a ticket in a queue. It is the judge of both, so that a player is
 * never in two rooms nor matched twice, whatever gateways and queues believe (decisions 3.6.8, 3.8.3).
 */
import { Result } from "effect"
import { AlreadyInRoom, AlreadyMatching, Unavailable } from "#rpc/errors/codes"

export type Reservation =
  | { readonly kind: "none" }
  | { readonly kind: "ticket"; readonly ticketId: string }
  | { readonly kind: "seat"; readonly roomId: string }

export interface SessionState {
  /** The newest connection; ids are time-ordered, so the greatest is the newest. */
  readonly connectionId: string | null
  readonly reservation: Reservation
}

export const noReservation: Reservation = { kind: "none" }

export type SessionCommand =
  /** A connection opens, or finds the session again after it moved and tells what it holds. */
  | { readonly t: "attach"; readonly connectionId: string; readonly reservation: Reservation }
  | { readonly t: "detach"; readonly connectionId: string }
  | { readonly t: "claim"; readonly connectionId: string; readonly reservation: Reservation }
  /** The queue found a room for a ticket of this connection. */
  | {
      readonly t: "settle"
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

/** Are they one place? */
export const sameReservation = (a: Reservation, b: Reservation): boolean =>
  a.kind === "seat"
    ? b.kind === "seat" && a.roomId === b.roomId
    : a.kind === "ticket"
      ? b.kind === "ticket" && a.ticketId === b.ticketId
      : b.kind === "none"

const kept = (state: SessionState): Result.Result<SessionDecision, never> =>
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
  // A ticket that the connection does not tell of was granted to nobody, or to one that is gone.
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
  if (sameReservation(state.reservation, reservation)) return kept(state)
  switch (state.reservation.kind) {
    case "none":
      return kept({ ...state, reservation })
    case "ticket":
      return Result.fail(new AlreadyMatching())
    case "seat":
      return Result.fail(new AlreadyInRoom({ details: { roomId: state.reservation.roomId } }))
  }
}

/** A session that moved meanwhile has not heard of the ticket: its connection vouches for it. */
const settle = (
  state: SessionState,
  command: Extract<SessionCommand, { t: "settle" }>
): Result.Result<SessionDecision, Unavailable> => {
  const { connectionId, roomId, ticketId } = command
  const seat: Reservation = { kind: "seat", roomId }
  if (sameReservation(state.reservation, seat)) return kept(state)
  const vouched =
    state.reservation.kind === "none" ||
    sameReservation(state.reservation, { kind: "ticket", ticketId })
  return state.connectionId === connectionId && vouched
    ? kept({ ...state, reservation: seat })
    : Result.fail(new Unavailable())
}

/** What the session makes of a command. */
export const decide = (
  state: SessionState,
  command: SessionCommand
): Result.Result<SessionDecision, AlreadyInRoom | AlreadyMatching | Unavailable> => {
  switch (command.t) {
    case "attach":
      return attach(state, command.connectionId, command.reservation)
    case "detach":
      if (state.connectionId !== command.connectionId) return kept(state)
      return kept({
        connectionId: null,
        reservation: state.reservation.kind === "ticket" ? noReservation : state.reservation
      })
    case "claim":
      return claim(state, command.connectionId, command.reservation)
    case "settle":
      return settle(state, command)
    case "release":
      return kept(
        sameReservation(state.reservation, command.reservation)
          ? { ...state, reservation: noReservation }
          : state
      )
  }
}
