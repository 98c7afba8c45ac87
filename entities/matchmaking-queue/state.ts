/**
 * Matchmaking queue: tickets in order of arrival, rooms with free seats, and rooms that are being opened.
 * Enqueue, cancel and match take constant time, however long the queue is.
 *
 * Invariants: a ticket is in the queue at most once; it leaves by exactly one of match and
 * cancellation; tickets leave in order of arrival; no room is opened for a ticket that fits into one
 * that is being opened.
 */
import type { JoiningPlayer } from "../room/model.ts"

/** Matchmaking queues. */
export const matchmaking = {
  ticketsPerQueue: 200_000,
  /** Interval at which a queue with tickets looks for rooms that have free seats. */
  openRoomsRefreshMillis: 1000,
  openRoomsMax: 200,
  /**
   * Time for which tickets wait for a room that is being opened. After it another room opens for them: the
   * runner of the first may have died.
   */
  openingMillis: 3000,
  /** Time for which a queue remembers a match, for a gateway that asks again. */
  matchMemorySeconds: 60,
  matchMemoryMax: 50_000
} as const

export interface Ticket {
  readonly ticketId: string
  readonly joiningPlayer: JoiningPlayer
  /** Time of queueing, Unix milliseconds. */
  readonly queuedAt: number
  /** The unused id of a room on the player's node. */
  readonly roomId?: string
  /** Rooms with free seats that do not take the player. */
  readonly avoids?: ReadonlySet<string>
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

/** A room that is being opened. Tickets that fit wait for its seats. */
export interface Opening {
  /** Seats that neither the match nor a waiting ticket takes. */
  free: number
  /** Time until which tickets wait for it, Unix milliseconds. */
  readonly until: number
  /** The tickets that wait for a seat, oldest first. */
  readonly tickets: Map<string, Ticket>
}

/**
 * State of the queue. It is mutable, because copying a queue of 100,000 tickets for each change
 * would be too slow.
 */
export interface QueueState {
  mode: QueueMode
  /** Tickets that a room refused; the queue matches them first. */
  readonly returned: TicketFifo
  /** Of these, the tickets that avoid a room. They are few: players whom a room has removed. */
  readonly avoiding: Map<string, Ticket>
  readonly tickets: TicketFifo
  /** Free seats by room id. */
  readonly open: Map<string, number>
  /** The openings that have free seats, oldest first. */
  readonly openings: Set<Opening>
  /** The opening that each ticket waits for, by ticket. */
  readonly promised: Map<string, Opening>
}

/** A match to make for tickets that have left the queue. */
export type Match =
  | { readonly kind: "fill"; readonly roomId: string; readonly tickets: ReadonlyArray<Ticket> }
  | {
      readonly kind: "open"
      /** A room near most of the players, if a ticket brought one. */
      readonly roomId: string | undefined
      readonly tickets: ReadonlyArray<Ticket>
      /** Ends with {@link endOpening}. */
      readonly opening: Opening
    }

export const emptyQueue = (mode: QueueMode): QueueState => ({
  mode,
  returned: new TicketFifo(),
  avoiding: new Map(),
  tickets: new TicketFifo(),
  open: new Map(),
  openings: new Set(),
  promised: new Map()
})

/** Whether the ticket waits, in the queue or for a room that is being opened. */
export const isWaiting = (state: QueueState, ticketId: string): boolean =>
  state.tickets.has(ticketId) ||
  state.returned.has(ticketId) ||
  state.avoiding.has(ticketId) ||
  state.promised.has(ticketId)

/** Adds a ticket at the end, unless it waits already. */
export const enqueue = (state: QueueState, ticket: Ticket): void => {
  if (!isWaiting(state, ticket.ticketId)) state.tickets.add(ticket)
}

/** Gives back the seat that a ticket waits for; false if it waits for none. */
const giveBack = (state: QueueState, ticketId: string): boolean => {
  const opening = state.promised.get(ticketId)
  if (opening === undefined) return false
  state.promised.delete(ticketId)
  opening.tickets.delete(ticketId)
  opening.free += 1
  state.openings.add(opening)
  return true
}

/** Removes a ticket; false if it does not wait (any more). */
export const cancel = (state: QueueState, ticketId: string): boolean =>
  state.tickets.delete(ticketId) ||
  state.returned.delete(ticketId) ||
  state.avoiding.delete(ticketId) ||
  giveBack(state, ticketId)

/** Removes the tickets of a node. */
export const dropNode = (state: QueueState, node: string): void => {
  for (const fifo of [state.returned, state.tickets]) {
    for (const ticket of fifo) {
      if (ticket.joiningPlayer.node === node) fifo.delete(ticket.ticketId)
    }
  }
  for (const [ticketId, { joiningPlayer }] of state.avoiding) {
    if (joiningPlayer.node === node) state.avoiding.delete(ticketId)
  }
  for (const [ticketId, { tickets }] of state.promised) {
    if (tickets.get(ticketId)?.joiningPlayer.node === node) giveBack(state, ticketId)
  }
}

/** Number of tickets that wait for a match or for a room that is being opened. */
export const waiting = (state: QueueState): number =>
  state.returned.size + state.avoiding.size + state.tickets.size + state.promised.size

/** The oldest ticket that waits for no opening. */
const oldest = (state: QueueState): Ticket | undefined => {
  const [avoiding] = state.avoiding.values()
  return state.returned.first ?? avoiding ?? state.tickets.first
}

/** Takes the oldest tickets that wait for no opening. */
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

/** Takes the oldest tickets of a list. */
const takeFrom = (fifo: TicketFifo, count: number): ReadonlyArray<Ticket> => {
  const tickets: Array<Ticket> = []
  while (tickets.length < count && fifo.first !== undefined) {
    tickets.push(fifo.first)
    fifo.delete(fifo.first.ticketId)
  }
  return tickets
}

/**
 * Takes the oldest tickets that fit into an open room: those that a room refused, those that wait for an
 * opening, then the others.
 */
const takeOldest = (state: QueueState, roomId: string, count: number): ReadonlyArray<Ticket> => {
  const tickets = [...takeFrom(state.returned, count)]
  for (const [ticketId, ticket] of state.avoiding) {
    if (tickets.length === count) return tickets
    if (ticket.avoids?.has(roomId) === true) continue
    state.avoiding.delete(ticketId)
    tickets.push(ticket)
  }
  for (const [ticketId, opening] of state.promised) {
    if (tickets.length === count) return tickets
    const ticket = opening.tickets.get(ticketId)
    if (ticket === undefined || ticket.avoids?.has(roomId) === true) continue
    giveBack(state, ticketId)
    tickets.push(ticket)
  }
  return [...tickets, ...takeFrom(state.tickets, count - tickets.length)]
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
const openMatch = (state: QueueState, now: number): Match => {
  const { maxPlayers } = state.mode
  const tickets = take(state, maxPlayers)
  const nearest = nearestOf(tickets)
  const opening: Opening = {
    free: maxPlayers - tickets.length,
    until: now + matchmaking.openingMillis,
    tickets: new Map()
  }
  if (opening.free > 0) state.openings.add(opening)
  return {
    kind: "open",
    roomId: nearest?.roomId,
    opening,
    tickets: tickets.map((ticket) => {
      if (ticket !== nearest) return ticket
      const { roomId: _, ...rest } = ticket
      return rest
    })
  }
}

/** Returns tickets without a seat to the front of the queue; they keep their queueing time. */
export const requeue = (state: QueueState, tickets: ReadonlyArray<Ticket>): void => {
  for (const ticket of tickets) {
    if (ticket.avoids === undefined) state.returned.add(ticket)
    else state.avoiding.set(ticket.ticketId, ticket)
  }
}

/** The ticket, once a room with free seats has refused its player. */
export const avoiding = (ticket: Ticket, roomId: string): Ticket => ({
  ...ticket,
  avoids: new Set(ticket.avoids).add(roomId)
})

/** Ends an opening, successful or not. Its tickets return to the front of the queue. */
export const endOpening = (state: QueueState, opening: Opening): void => {
  state.openings.delete(opening)
  for (const ticketId of opening.tickets.keys()) state.promised.delete(ticketId)
  requeue(state, Array.from(opening.tickets.values()))
  opening.tickets.clear()
}

/** Ends the wait for openings that take too long. */
const expireOpenings = (state: QueueState, now: number): void => {
  for (const opening of state.openings) if (now >= opening.until) endOpening(state, opening)
  for (const opening of state.promised.values()) {
    if (now < opening.until) return
    endOpening(state, opening)
  }
}

/** Lets tickets wait for the seats of rooms that are being opened. */
const promiseSeats = (state: QueueState): void => {
  for (const opening of state.openings) {
    for (const ticket of take(state, opening.free)) {
      opening.tickets.set(ticket.ticketId, ticket)
      opening.free -= 1
      state.promised.set(ticket.ticketId, opening)
    }
    if (opening.free > 0) return
    state.openings.delete(opening)
  }
}

/**
 * End of the fill timeout of the oldest ticket that waits for no opening, Unix milliseconds; infinite
 * without such a ticket or a timeout.
 */
export const fillDeadline = (state: QueueState): number => {
  const first = oldest(state)
  return first === undefined || state.mode.fillTimeoutSeconds === 0
    ? Number.POSITIVE_INFINITY
    : first.queuedAt + state.mode.fillTimeoutSeconds * 1000
}

/** Time at which {@link nextMatch} may return a match without any other change, Unix milliseconds. */
export const nextDeadline = (state: QueueState): number => {
  const [opening] = state.promised.values()
  return Math.min(fillDeadline(state), opening?.until ?? Number.POSITIVE_INFINITY)
}

/**
 * Removes and returns the tickets of the next match, if any. Free seats come first, then those of rooms
 * that are being opened, then a new room.
 */
export const nextMatch = (state: QueueState, now: number): Match | undefined => {
  if (waiting(state) === 0) return undefined
  expireOpenings(state, now)
  for (const [roomId, free] of state.open) {
    const tickets = takeOldest(state, roomId, free)
    if (tickets.length === 0) continue
    if (tickets.length === free) state.open.delete(roomId)
    else state.open.set(roomId, free - tickets.length)
    return { kind: "fill", roomId, tickets }
  }
  promiseSeats(state)
  const left = state.returned.size + state.avoiding.size + state.tickets.size
  const due = now >= fillDeadline(state)
  if (left === 0 || (left < state.mode.minPlayers && !due)) return undefined
  return openMatch(state, now)
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
