/**
 * A live matchmaking queue: takes tickets, forms matches as soon as they are possible, and notifies
 * the nodes that hold the tickets. It decides synchronously; its runtime opens and fills the rooms.
 */
import { Activation } from "../activation.ts"
import type { Watcher, Watchers } from "../watchers.ts"
import type { QueueInput, QueueOutput, QueueSettings } from "./protocol.ts"
import {
  avoiding,
  cancel,
  dropNode,
  emptyQueue,
  endOpening,
  enqueue,
  isWaiting,
  type Match,
  matchmaking,
  nextDeadline,
  nextMatch,
  type QueueState,
  requeue,
  setFreeSeats,
  type Ticket,
  waiting
} from "./state.ts"

/** Dependencies of a queue actor on its process. */
export interface QueueRuntime {
  readonly now: () => number
  /** Calls `advance` at this time (Unix milliseconds), or earlier. */
  readonly wakeAt: (millis: number) => void
  /** Opens or fills a room, then calls `completed` once. */
  readonly makeMatch: (match: Match, settings: QueueSettings) => void
  /** Lists rooms with free seats, then calls `openRoomsListed`. */
  readonly listOpenRooms: () => void
}

/** The result of a match that seated some or all of its players. */
export interface SeatedMatch {
  readonly roomId: string
  /** Ids of the players who have a seat. */
  readonly seated: ReadonlySet<string>
  /** Number of seats that are still free. */
  readonly free: number
}

interface Outcome {
  /** The room of the match; null for a cancelled ticket. */
  readonly roomId: string | null
  readonly at: number
}

const { openRoomsRefreshMillis: refreshMillis } = matchmaking
const memoryMillis = matchmaking.matchMemorySeconds * 1000

export class QueueActor {
  readonly activation: Activation<QueueOutput>
  readonly #runtime: QueueRuntime
  readonly #state: QueueState = emptyQueue({ minPlayers: 2, maxPlayers: 2, fillTimeoutSeconds: 0 })
  readonly #watchers: Watchers<QueueOutput>
  /**
   * Outcomes of recent tickets, for a gateway that repeats its `enqueue` afterwards. They age in two
   * generations, dropped as a whole. Deleting the oldest entries one by one would be slow: a new Map
   * iterator steps over the holes of all deleted entries.
   */
  #outcomes = new Map<string, Outcome>()
  #olderOutcomes = new Map<string, Outcome>()
  #outcomesSince = Number.NEGATIVE_INFINITY
  /** Tickets of matches in progress, each with the cancellations that wait for the outcome. */
  readonly #inProgress = new Map<string, Array<{ readonly node: string; readonly seq: number }>>()
  #settings: QueueSettings | undefined
  #listedAt = Number.NEGATIVE_INFINITY
  /** Ids of the last listing: a room missing in the next one is no longer filled. */
  #listedRooms: ReadonlySet<string> = new Set()
  #listing = false

  constructor(epoch: number, runtime: QueueRuntime) {
    // A queue has no row that two activations could write.
    this.activation = new Activation(epoch, () => true)
    this.#watchers = this.activation.watchers
    this.#runtime = runtime
  }

  get waiting(): number {
    return waiting(this.#state)
  }

  submit(node: string, inputs: ReadonlyArray<QueueInput>): void {
    for (const { command, seq } of inputs) {
      if (command.t === "cancel") {
        this.#cancel(node, command.ticketId, seq)
        continue
      }
      this.#configure(command.settings)
      if (command.t === "configure") continue
      const { roomId, ticketId } = command
      this.#enqueue({
        ticketId,
        joiningPlayer: { ...command.joiningPlayer, node },
        queuedAt: this.#runtime.now(),
        ...(roomId === undefined ? {} : { roomId })
      })
    }
    this.advance()
  }

  attach(node: string, watcher: Watcher<QueueOutput>): void {
    this.#watchers.add(node, watcher)
    watcher.send([])
  }

  /** Drops the tickets of a node whose stream broke. The node enqueues them again if it can. */
  detach(node: string, watcher: Watcher<QueueOutput>): void {
    if (this.#watchers.remove(node, watcher)) dropNode(this.#state, node)
  }

  /** Forms all possible matches, and sets the timer for the next. */
  advance(): void {
    const now = this.#runtime.now()
    const settings = this.#settings
    if (settings !== undefined && this.waiting > 0) {
      if (!this.#listing && now - this.#listedAt >= refreshMillis) {
        this.#listing = true
        this.#runtime.listOpenRooms()
      }
      // A busy queue keeps matching while the rooms are listed again.
      if (now - this.#listedAt < 2 * refreshMillis) this.#match(settings, now)
    }
    this.#watchers.flush()
  }

  /**
   * Updates the known rooms with free seats from a listing. A listing that failed (undefined) changes
   * nothing: rooms refuse what does not fit.
   */
  openRoomsListed(
    rooms: ReadonlyArray<{ readonly id: string; readonly free: number }> | undefined
  ): void {
    this.#listing = false
    this.#listedAt = this.#runtime.now()
    if (rooms !== undefined) this.#updateOpenRooms(rooms)
    this.advance()
  }

  #updateOpenRooms(rooms: ReadonlyArray<{ readonly id: string; readonly free: number }>): void {
    const ids = new Set(rooms.map(({ id }) => id))
    for (const id of this.#listedRooms) if (!ids.has(id)) this.#state.open.delete(id)
    this.#listedRooms = ids
    for (const room of rooms) {
      setFreeSeats(this.#state, room.id, room.free, matchmaking.openRoomsMax)
    }
  }

  /** Opens or fills the room of a match. */
  makeMatch(match: Match, settings: QueueSettings): void {
    this.#runtime.makeMatch(match, settings)
  }

  /**
   * Completes a match. Tickets without a seat return to the queue, except those cancelled or disconnected
   * meanwhile; without a result, these are all.
   */
  completed(match: Match, result: SeatedMatch | undefined): void {
    const isSeated = ({ joiningPlayer }: Ticket): boolean =>
      result?.seated.has(joiningPlayer.playerId) === true
    // A room that refuses a player although it has free seats does not take this player.
    const refusal = result !== undefined && result.free > 0 ? result.roomId : undefined
    const refused = match.tickets
      .filter((ticket) => !isSeated(ticket))
      .map((ticket) => (refusal === undefined ? ticket : avoiding(ticket, refusal)))
    if (refused.length > 0) this.#refuse(refused)
    if (match.kind === "open") endOpening(this.#state, match.opening)
    if (result !== undefined) {
      for (const ticket of match.tickets.filter(isSeated)) this.#seat(ticket, result.roomId)
      setFreeSeats(this.#state, result.roomId, result.free, matchmaking.openRoomsMax)
    } else if (match.kind === "fill") {
      this.#state.open.delete(match.roomId)
    }
    this.advance()
  }

  #seat({ joiningPlayer, ticketId }: Ticket, roomId: string): void {
    this.#endMatch(ticketId, false)
    this.#remember(ticketId, roomId)
    this.#sendMatch(joiningPlayer.node, ticketId, roomId)
  }

  #refuse(tickets: ReadonlyArray<Ticket>): void {
    requeue(
      this.#state,
      tickets.filter(({ joiningPlayer, ticketId }) => {
        const cancelled = this.#endMatch(ticketId, true)
        if (cancelled) this.#remember(ticketId, null)
        return !cancelled && this.#watchers.has(joiningPlayer.node)
      })
    )
  }

  #cancel(node: string, ticketId: string, seq: number): void {
    const cancellations = this.#inProgress.get(ticketId)
    if (cancellations !== undefined) cancellations.push({ node, seq })
    else {
      if (cancel(this.#state, ticketId)) this.#remember(ticketId, null)
      // A call that is delivered twice must not report the opposite of what it did.
      this.#sendCancelled(node, seq, this.#outcomeOf(ticketId)?.roomId === null)
    }
  }

  /**
   * Ends the match of a ticket and replies to its cancellations. Returns whether there were any.
   */
  #endMatch(ticketId: string, cancelled: boolean): boolean {
    const cancellations = this.#inProgress.get(ticketId) ?? []
    this.#inProgress.delete(ticketId)
    for (const { node, seq } of cancellations) this.#sendCancelled(node, seq, cancelled)
    return cancellations.length > 0
  }

  /** Applies settings, unless they are older than the current config version. */
  #configure(settings: QueueSettings): void {
    if (this.#settings !== undefined && settings.configVersion < this.#settings.configVersion)
      return
    this.#settings = settings
    this.#state.mode = {
      minPlayers: settings.minPlayers,
      maxPlayers: settings.room.maxPlayers,
      fillTimeoutSeconds: settings.fillTimeoutSeconds
    }
  }

  /** Adds a ticket, unless its node does not watch: such a node enqueues again when it attaches. */
  #enqueue(ticket: Ticket): void {
    if (!this.#watchers.has(ticket.joiningPlayer.node)) return
    if (this.#inProgress.has(ticket.ticketId) || isWaiting(this.#state, ticket.ticketId)) return
    const outcome = this.#outcomeOf(ticket.ticketId)
    if (outcome !== undefined) {
      if (outcome.roomId !== null) {
        this.#sendMatch(ticket.joiningPlayer.node, ticket.ticketId, outcome.roomId)
      }
    } else if (this.waiting >= matchmaking.ticketsPerQueue) {
      const { ticketId } = ticket
      this.#watchers.push(ticket.joiningPlayer.node, { kind: "full", ticketId })
    } else {
      enqueue(this.#state, ticket)
    }
  }

  #match(settings: QueueSettings, now: number): void {
    for (
      let match = nextMatch(this.#state, now);
      match !== undefined;
      match = nextMatch(this.#state, now)
    ) {
      for (const { ticketId } of match.tickets) this.#inProgress.set(ticketId, [])
      this.makeMatch(match, settings)
    }
    if (this.waiting === 0) return
    // A listing in progress advances the queue when it ends.
    const refresh = this.#listing ? Number.POSITIVE_INFINITY : this.#listedAt + refreshMillis
    this.#runtime.wakeAt(Math.min(nextDeadline(this.#state), refresh))
  }

  #sendMatch(node: string, ticketId: string, roomId: string): void {
    this.#watchers.push(node, { kind: "matched", ticketId, roomId })
  }

  #sendCancelled(node: string, seq: number, cancelled: boolean): void {
    if (seq > 0) this.#watchers.push(node, { kind: "cancelled", seq, cancelled })
  }

  #remember(ticketId: string, roomId: string | null): void {
    const at = this.#runtime.now()
    const over = at - this.#outcomesSince > memoryMillis
    if (over || this.#outcomes.size >= matchmaking.matchMemoryMax / 2) {
      this.#olderOutcomes = this.#outcomes
      this.#outcomes = new Map()
      this.#outcomesSince = at
    }
    this.#outcomes.set(ticketId, { roomId, at })
  }

  #outcomeOf(ticketId: string): Outcome | undefined {
    const outcome = this.#outcomes.get(ticketId) ?? this.#olderOutcomes.get(ticketId)
    return outcome !== undefined && this.#runtime.now() - outcome.at <= memoryMillis
      ? outcome
      : undefined
  }
}
