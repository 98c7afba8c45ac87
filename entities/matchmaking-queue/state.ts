/**
 * A matchmaking queue as a pure state machine: tickets in order of arrival, and the rooms that still
 * have free seats (decisions 3.8). Enqueue, cancel and match cost the same however long the queue is.
 *
 * Invariants: a ticket is in the queue at most once; it leaves by exactly one of match and
 * cancellation; tickets leave in order of arrival.
 */
import type { JoiningPlayer } from "../room/model.ts"

export interface Ticket {
  readonly ticketId: string
  readonly joiningPlayer: JoiningPlayer
  /** Unix milliseconds. */
  readonly queuedAt: number
}

/** The mode's numbers as of the newest config that anybody has told. */
export interface QueueMode {
  readonly minPlayers: number
  readonly maxPlayers: number
  readonly fillTimeoutSeconds: number
}

/**
 * Tickets by id, in order of arrival: a Map, and one cursor that walks it for the life of the line. A
 * fresh iterator would step over the hole of every ticket that has left, so that taking the first of
 * a long line would cost its length.
 */
class TicketFifo {
  readonly #tickets = new Map<string, Ticket>()
  #cursor = this.#tickets.values()
  #first: Ticket | undefined

  get size(): number {
    return this.#tickets.size
  }

  /** The ticket that came first. */
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

  /** Every ticket behind the cursor has left; a cursor at its end stays there, so it starts again. */
  #advance(): Ticket | undefined {
    const next = this.#cursor.next()
    if (next.done !== true) return next.value
    this.#cursor = this.#tickets.values()
    return undefined
  }
}

/**
 * The tickets that wait, and rooms with free seats. Mutable on purpose: a queue of 100,000 is not
 * copied for each ticket.
 */
export interface QueueState {
  mode: QueueMode
  /** Tickets that a room refused: they go first. */
  readonly returned: TicketFifo
  readonly tickets: TicketFifo
  readonly open: Map<string, number>
}

/** Something to do for tickets that have left the queue. */
export type Match =
  | { readonly kind: "fill"; readonly roomId: string; readonly tickets: ReadonlyArray<Ticket> }
  | { readonly kind: "open"; readonly tickets: ReadonlyArray<Ticket> }

export const emptyQueue = (mode: QueueMode): QueueState => ({
  mode,
  returned: new TicketFifo(),
  tickets: new TicketFifo(),
  open: new Map()
})

/** Does the ticket wait? */
export const isWaiting = (state: QueueState, ticketId: string): boolean =>
  state.tickets.has(ticketId) || state.returned.has(ticketId)

/** Puts a ticket at the end, unless it waits already. */
export const enqueue = (state: QueueState, ticket: Ticket): void => {
  if (!isWaiting(state, ticket.ticketId)) state.tickets.add(ticket)
}

/** Takes a ticket out; false when it is not (or no longer) waiting. */
export const cancel = (state: QueueState, ticketId: string): boolean =>
  state.tickets.delete(ticketId) || state.returned.delete(ticketId)

/** Takes out the tickets of a node. */
export const dropNode = (state: QueueState, node: string): void => {
  for (const line of [state.returned, state.tickets]) {
    for (const ticket of line) {
      if (ticket.joiningPlayer.node === node) line.delete(ticket.ticketId)
    }
  }
}

/** How many wait. */
export const waiting = (state: QueueState): number => state.returned.size + state.tickets.size

const oldest = (state: QueueState): Ticket | undefined =>
  state.returned.first ?? state.tickets.first

const take = (state: QueueState, count: number): ReadonlyArray<Ticket> => {
  const taken: Array<Ticket> = []
  while (taken.length < count) {
    const ticket = oldest(state)
    if (ticket === undefined) break
    cancel(state, ticket.ticketId)
    taken.push(ticket)
  }
  return taken
}

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
    return { kind: "fill", roomId, tickets }
  }
  const due = now >= fillDeadline(state)
  if (waiting(state) < state.mode.minPlayers && !due) return undefined
  return { kind: "open", tickets: take(state, state.mode.maxPlayers) }
}

/** Tickets whose room refused them go to the front again, with the time they had. */
export const requeue = (state: QueueState, tickets: ReadonlyArray<Ticket>): void => {
  for (const ticket of tickets) state.returned.add(ticket)
}

/** A room has this many free seats, as far as anybody knows. */
export const setFreeSeats = (
  state: QueueState,
  roomId: string,
  free: number,
  max: number
): void => {
  if (free <= 0) {
    state.open.delete(roomId)
    return
  }
  if (state.open.size < max || state.open.has(roomId)) state.open.set(roomId, free)
}
