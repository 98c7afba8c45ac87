/**
 * A matchmaking queue as a pure state machine: tickets in order of arrival, and the rooms that still
 * have free seats (decisions 3.8). Enqueue, cancel and match cost the same however long the queue is.
 *
 * Invariants: a ticket is in the queue at most once; it leaves by exactly one of match and
 * cancellation; tickets leave in order of arrival.
 */
import type { Newcomer } from "../room/model.ts"

export interface Ticket {
  readonly ticketId: string
  readonly newcomer: Newcomer
  /** Unix milliseconds. */
  readonly queuedAt: number
}

/** The mode's numbers as of the newest ticket. */
export interface QueueMode {
  readonly minPlayers: number
  readonly maxPlayers: number
  readonly fillTimeoutSeconds: number
}

/**
 * The tickets that wait, by id, in order of arrival (a `Map` is both index and list), and rooms with
 * free seats. Mutable on purpose: a queue of 100,000 is not copied for each ticket.
 */
export interface QueueState {
  mode: QueueMode
  /** Tickets that a room refused: they go first. */
  readonly returned: Map<string, Ticket>
  readonly tickets: Map<string, Ticket>
  readonly open: Map<string, number>
}

/** Something to do for tickets that have left the queue. */
export type Match =
  | { readonly k: "fill"; readonly roomId: string; readonly tickets: ReadonlyArray<Ticket> }
  | { readonly k: "open"; readonly tickets: ReadonlyArray<Ticket> }

export const emptyQueue = (mode: QueueMode): QueueState => ({
  mode,
  returned: new Map(),
  tickets: new Map(),
  open: new Map()
})

/** Puts a ticket at the end; false when it is there already. */
export const enqueue = (state: QueueState, ticket: Ticket): boolean => {
  if (state.tickets.has(ticket.ticketId) || state.returned.has(ticket.ticketId)) return false
  state.tickets.set(ticket.ticketId, ticket)
  return true
}

/** Takes a ticket out; false when it is not (or no longer) waiting. */
export const cancel = (state: QueueState, ticketId: string): boolean =>
  state.tickets.delete(ticketId) || state.returned.delete(ticketId)

/** How many wait. */
export const waiting = (state: QueueState): number => state.returned.size + state.tickets.size

const take = (state: QueueState, count: number): ReadonlyArray<Ticket> => {
  const taken: Array<Ticket> = []
  for (const line of [state.returned, state.tickets]) {
    for (const ticket of line.values()) {
      if (taken.length === count) return taken
      taken.push(ticket)
      line.delete(ticket.ticketId)
    }
  }
  return taken
}

const oldest = (state: QueueState): Ticket | undefined =>
  state.returned.values().next().value ?? state.tickets.values().next().value

/** When the oldest ticket has waited long enough; infinity when nobody waits or it waits for ever. */
export const fillDeadline = (state: QueueState): number => {
  const first = oldest(state)
  return first === undefined || state.mode.fillTimeoutSeconds === 0
    ? Number.POSITIVE_INFINITY
    : first.queuedAt + state.mode.fillTimeoutSeconds * 1000
}

/** The next match to make, if any: free seats first, then a new room. */
export const nextMatch = (state: QueueState, now: number): Match | undefined => {
  if (waiting(state) === 0) return undefined
  for (const [roomId, free] of state.open) {
    const tickets = take(state, free)
    if (tickets.length === free) state.open.delete(roomId)
    else state.open.set(roomId, free - tickets.length)
    return { k: "fill", roomId, tickets }
  }
  const due = now >= fillDeadline(state)
  if (waiting(state) < state.mode.minPlayers && !due) return undefined
  return { k: "open", tickets: take(state, state.mode.maxPlayers) }
}

/** Tickets whose room refused them go to the front again, with the time they had. */
export const putBack = (state: QueueState, tickets: ReadonlyArray<Ticket>): void => {
  for (const ticket of tickets) state.returned.set(ticket.ticketId, ticket)
}

/** A room has this many free seats, as far as anybody knows. */
export const noteOpen = (state: QueueState, roomId: string, free: number, max: number): void => {
  if (free <= 0) {
    state.open.delete(roomId)
    return
  }
  if (state.open.size < max || state.open.has(roomId)) state.open.set(roomId, free)
}
