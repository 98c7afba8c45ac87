/**
 * Matchmaking queue: tickets in order of arrival, and rooms with free seats. Enqueue, cancel and match
 * take constant time, however long the queue is.
 *
 * Invariants: a ticket is in the queue at most once; it leaves by exactly one of match and
 * cancellation; tickets leave in order of arrival.
 */
import type { JoiningPlayer } from "../room/model.ts"

export interface Ticket {
  readonly ticketId: string
  readonly joiningPlayer: JoiningPlayer
  /** Time of queueing, Unix milliseconds. */
  readonly queuedAt: number
  /** The unused id of a room on the player's node. */
  readonly roomId?: string
}

/** Settings of the mode by the newest known config version. */
export interface QueueMode {
  readonly minPlayers: number
  readonly maxPlayers: number
  readonly fillTimeoutSeconds: number
}

/**
 * FIFO of tickets by id: a Map and one long-lived iterator. A new iterator would step over the holes of
 * all deleted tickets, so finding the first one would take time linear in the length.
 */
class TicketFifo {
  readonly #tickets = new Map<string, Ticket>()
  #iterator = this.#tickets.values()
  #first: Ticket | undefined

  get size(): number {
    return this.#tickets.size
  }

  /** The oldest ticket. */
  get first(): Ticket | undefined {
    this.#first ??= this.#advance()
    return this.#first
  }

  has(ticketId: string): boolean {
    return this.#tickets.has(ticketId)
  }

  add(ticket: Ticket): void {
    this.#tickets.set(ticket.ticketId, ticket)
  }

  delete(ticketId: string): boolean {
    if (this.#first?.ticketId === ticketId) this.#first = undefined
    return this.#tickets.delete(ticketId)
  }

  [Symbol.iterator](): Iterator<Ticket> {
    return this.#tickets.values()
  }

  /** An iterator at its end stays there, so the walk starts again: all earlier tickets have left. */
  #advance(): Ticket | undefined {
    const next = this.#iterator.next()
    if (next.done !== true) return next.value
    this.#iterator = this.#tickets.values()
    return undefined
  }
}

/**
 * State of the queue. It is mutable, because copying a queue of 100,000 tickets for each change
 * would be too slow.
 */
export interface QueueState {
  mode: QueueMode
  /** Tickets that a room refused; the queue matches them first. */
  readonly returned: TicketFifo
  readonly tickets: TicketFifo
  /** Free seats by room id. */
  readonly open: Map<string, number>
}

/** A match to make for tickets that have left the queue. */
export type Match =
  | { readonly kind: "fill"; readonly roomId: string; readonly tickets: ReadonlyArray<Ticket> }
  | {
      readonly kind: "open"
      /** A room near most of the players, if a ticket brought one. */
      readonly roomId: string | undefined
      readonly tickets: ReadonlyArray<Ticket>
    }

export const emptyQueue = (mode: QueueMode): QueueState => ({
  mode,
  returned: new TicketFifo(),
  tickets: new TicketFifo(),
  open: new Map()
})

/** Whether the ticket waits. */
export const isWaiting = (state: QueueState, ticketId: string): boolean =>
  state.tickets.has(ticketId) || state.returned.has(ticketId)

/** Adds a ticket at the end, unless it waits already. */
export const enqueue = (state: QueueState, ticket: Ticket): void => {
  if (!isWaiting(state, ticket.ticketId)) state.tickets.add(ticket)
}

/** Removes a ticket; false if it does not wait (any more). */
export const cancel = (state: QueueState, ticketId: string): boolean =>
  state.tickets.delete(ticketId) || state.returned.delete(ticketId)

/** Removes the tickets of a node. */
export const dropNode = (state: QueueState, node: string): void => {
  for (const fifo of [state.returned, state.tickets]) {
    for (const ticket of fifo) {
      if (ticket.joiningPlayer.node === node) fifo.delete(ticket.ticketId)
    }
  }
}

/** Number of waiting tickets. */
export const waiting = (state: QueueState): number => state.returned.size + state.tickets.size

const oldest = (state: QueueState): Ticket | undefined =>
  state.returned.first ?? state.tickets.first

const take = (state: QueueState, count: number): ReadonlyArray<Ticket> => {
  const tickets: Array<Ticket> = []
  while (tickets.length < count) {
    const ticket = oldest(state)
    if (ticket === undefined) break
    cancel(state, ticket.ticketId)
    tickets.push(ticket)
  }
  return tickets
}

/** The ticket whose room is nearest: of the node with the most tickets; among equals, the oldest. */
const nearestOf = (tickets: ReadonlyArray<Ticket>): Ticket | undefined => {
  const counts = new Map<string, number>()
  const countOf = ({ joiningPlayer }: Ticket): number => counts.get(joiningPlayer.node) ?? 0
  for (const ticket of tickets) counts.set(ticket.joiningPlayer.node, countOf(ticket) + 1)
  let nearest: Ticket | undefined
  for (const ticket of tickets) {
    if (ticket.roomId === undefined) continue
    if (nearest === undefined || countOf(ticket) > countOf(nearest)) nearest = ticket
  }
  return nearest
}

/**
 * A match in a new room, under the id of the nearest. That ticket loses the id: if the match fails, the
 * room may exist, and would seat nobody else.
 */
const openMatch = (tickets: ReadonlyArray<Ticket>): Match => {
  const nearest = nearestOf(tickets)
  return {
    kind: "open",
    roomId: nearest?.roomId,
    tickets: tickets.map((ticket) => {
      if (ticket !== nearest) return ticket
      const { roomId: _, ...rest } = ticket
      return rest
    })
  }
}

/**
 * End of the oldest ticket's fill timeout, Unix milliseconds; infinite without ticket or timeout.
 */
export const fillDeadline = (state: QueueState): number => {
  const first = oldest(state)
  return first === undefined || state.mode.fillTimeoutSeconds === 0
    ? Number.POSITIVE_INFINITY
    : first.queuedAt + state.mode.fillTimeoutSeconds * 1000
}

/**
 * Removes and returns the tickets of the next match, if any. Free seats come first, then a new
 * room.
 */
export const nextMatch = (state: QueueState, now: number): Match | undefined => {
  if (waiting(state) === 0) return undefined
  for (const [roomId, free] of state.open) {
    const tickets = take(state, free)
    if (tickets.length === free) state.open.delete(roomId)
    else state.open.set(roomId, free - tickets.length)
    return { kind: "fill", roomId, tickets }
  }
  const due = now >= fillDeadline(state)
  if (waiting(state) < state.mode.minPlayers && !due) return undefined
  return openMatch(take(state, state.mode.maxPlayers))
}

/** Returns refused tickets to the front of the queue; they keep their queueing time. */
export const requeue = (state: QueueState, tickets: ReadonlyArray<Ticket>): void => {
  for (const ticket of tickets) state.returned.add(ticket)
}

/** Sets the presumed number of free seats of a room. */
export const setFreeSeats = (
  state: QueueState,
  roomId: string,
  free: number,
  maxRooms: number
): void => {
  if (free <= 0) {
    state.open.delete(roomId)
    return
  }
  if (state.open.size < maxRooms || state.open.has(roomId)) state.open.set(roomId, free)
}
