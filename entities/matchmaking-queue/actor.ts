/**
 * A live queue: takes tickets, makes matches the moment they can be made, and tells the nodes that
 * hold the tickets. The queue decides synchronously; opening and filling rooms is work it hands out.
 */
import { matchmaking } from "#rpc/limits"
import type { Watcher } from "../output-queue.ts"
import type { QueueInput, QueueOutput, QueueSettings } from "./protocol.ts"
import {
  cancel,
  dropNode,
  emptyQueue,
  enqueue,
  fillDeadline,
  isWaiting,
  type Match,
  nextMatch,
  setFreeSeats,
  requeue,
  type QueueState,
  type Ticket,
  waiting
} from "./state.ts"

/** What the actor asks of its surroundings. */
export interface QueueRuntime {
  readonly now: () => number
  readonly wakeAt: (millis: number) => void
  /** Opens or fills a room, then answers through `matched`, `refused` and `pump`. */
  readonly makeMatch: (match: Match, settings: QueueSettings) => void
  /** Looks for rooms with free seats, then calls `found`. */
  readonly listOpenRooms: () => void
}

interface Made {
  /** The room of a match, null of a cancellation. */
  readonly roomId: string | null
  readonly at: number
}

const { openRoomsRefreshMillis: refreshMillis } = matchmaking
const memoryMillis = matchmaking.matchMemorySeconds * 1000

export class QueueActor {
  readonly epoch: number
  readonly #port: QueueRuntime
  readonly #state: QueueState = emptyQueue({ minPlayers: 2, maxPlayers: 2, fillTimeoutSeconds: 0 })
  readonly #watchers = new Map<
    string,
    { readonly watcher: Watcher<QueueOutput>; batch: Array<QueueOutput> }
  >()
  /**
   * What has become of recent tickets, for a gateway whose `enqueue` comes (again) after that. Two
   * generations, of which the older goes as a whole: to take the oldest out of a Map one by one is to
   * step over the holes of all that went before it.
   */
  #made = new Map<string, Made>()
  #madeBefore = new Map<string, Made>()
  #madeSince = Number.NEGATIVE_INFINITY
  /** Tickets whose match is in the making, each with the cancellations that wait for its outcome. */
  readonly #making = new Map<string, Array<{ readonly node: string; readonly seq: number }>>()
  #settings: QueueSettings | undefined
  #lookedAt = Number.NEGATIVE_INFINITY
  /** The rooms that the last look has found: one that the next does not find takes nobody. */
  #listed: ReadonlySet<string> = new Set()
  #looking = false

  constructor(epoch: number, port: QueueRuntime) {
    this.epoch = epoch
    this.#port = port
  }

  get waiting(): number {
    return waiting(this.#state)
  }

  /** Does the node hear what is told? Only then can it hold tickets here. */
  watches(node: string): boolean {
    return this.#watchers.has(node)
  }

  submit(node: string, inputs: ReadonlyArray<QueueInput>): void {
    for (const { command, seq } of inputs) {
      if (command.t === "cancel") {
        this.#cancel(node, command.ticketId, seq)
        continue
      }
      this.#configure(command.settings)
      if (command.t === "configure") continue
      this.#enqueue({
        ticketId: command.ticketId,
        joiningPlayer: { ...command.joiningPlayer, node },
        queuedAt: this.#port.now()
      })
    }
    this.advance()
  }

  attach(node: string, watcher: Watcher<QueueOutput>): void {
    this.#watchers.set(node, { watcher, batch: [] })
    watcher.send([])
  }

  /** The node is gone or has lost touch: its tickets go, it brings them again if it can. */
  detach(node: string, watcher: Watcher<QueueOutput>): void {
    if (this.#watchers.get(node)?.watcher !== watcher) return
    this.#watchers.delete(node)
    dropNode(this.#state, node)
  }

  /** The queue moves: the nodes look for it and bring their tickets again. */
  end(): void {
    for (const { watcher } of this.#watchers.values()) watcher.end()
    this.#watchers.clear()
  }

  /** Makes every match there is to make, and asks to be woken for the next. */
  advance(): void {
    const now = this.#port.now()
    const settings = this.#settings
    if (settings !== undefined && this.waiting > 0) {
      if (!this.#looking && now - this.#lookedAt >= refreshMillis) {
        this.#looking = true
        this.#port.listOpenRooms()
      }
      // A busy queue does not stand still while the rooms are looked for anew.
      if (now - this.#lookedAt < 2 * refreshMillis) this.#match(settings, now)
    }
    this.#flush()
  }

  /** Rooms with free seats, as the list has them. */
  found(rooms: ReadonlyArray<{ readonly id: string; readonly free: number }>): void {
    this.#looking = false
    this.#lookedAt = this.#port.now()
    const ids = new Set(rooms.map(({ id }) => id))
    for (const id of this.#listed) if (!ids.has(id)) this.#state.open.delete(id)
    this.#listed = ids
    for (const room of rooms) {
      setFreeSeats(this.#state, room.id, room.free, matchmaking.openRoomsMax)
    }
    this.advance()
  }

  /** Seats were given in a room that has this many left. */
  matched(tickets: ReadonlyArray<Ticket>, roomId: string, free: number): void {
    for (const ticket of tickets) {
      this.#settle(ticket.ticketId, false)
      this.#remember(ticket.ticketId, roomId)
      this.#tellMatch(ticket, roomId)
    }
    setFreeSeats(this.#state, roomId, free, matchmaking.openRoomsMax)
    this.advance()
  }

  /** A room took none, or not all: its tickets wait on, save those cancelled or lost meanwhile. */
  refused(tickets: ReadonlyArray<Ticket>, roomId: string | undefined): void {
    if (roomId !== undefined) this.#state.open.delete(roomId)
    requeue(
      this.#state,
      tickets.filter(({ joiningPlayer, ticketId }) => {
        const cancelled = this.#settle(ticketId, true)
        return !cancelled && this.#watchers.has(joiningPlayer.node)
      })
    )
    this.advance()
  }

  #cancel(node: string, ticketId: string, seq: number): void {
    const cancellations = this.#making.get(ticketId)
    if (cancellations !== undefined) cancellations.push({ node, seq })
    else {
      const cancelled = cancel(this.#state, ticketId)
      if (cancelled) this.#remember(ticketId, null)
      this.#tellCancelled(node, seq, cancelled)
    }
  }

  /** A ticket's match is made, or not; says whether its cancellation has waited for that. */
  #settle(ticketId: string, cancelled: boolean): boolean {
    const cancellations = this.#making.get(ticketId) ?? []
    this.#making.delete(ticketId)
    for (const { node, seq } of cancellations) this.#tellCancelled(node, seq, cancelled)
    return cancellations.length > 0
  }

  /** A node that has not heard of the newest config yet does not undo it. */
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

  /** Only a node that watches can hold tickets; it brings them again when it begins to. */
  #enqueue(ticket: Ticket): void {
    if (!this.#watchers.has(ticket.joiningPlayer.node)) return
    if (this.#making.has(ticket.ticketId) || isWaiting(this.#state, ticket.ticketId)) return
    const made = this.#madeOf(ticket.ticketId)
    if (made !== undefined) {
      if (made.roomId !== null) this.#tellMatch(ticket, made.roomId)
    } else if (this.waiting >= matchmaking.ticketsPerQueue) {
      const { ticketId } = ticket
      this.#watchers.get(ticket.joiningPlayer.node)?.batch.push({ kind: "full", ticketId })
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
      for (const { ticketId } of match.tickets) this.#making.set(ticketId, [])
      this.#port.makeMatch(match, settings)
    }
    if (this.waiting === 0) return
    // What is being looked for wakes the queue when it is found.
    const refresh = this.#looking ? Number.POSITIVE_INFINITY : this.#lookedAt + refreshMillis
    this.#port.wakeAt(Math.min(fillDeadline(this.#state), refresh))
  }

  #tellMatch(ticket: Ticket, roomId: string): void {
    const { ticketId } = ticket
    this.#watchers.get(ticket.joiningPlayer.node)?.batch.push({ kind: "matched", ticketId, roomId })
  }

  #tellCancelled(node: string, seq: number, cancelled: boolean): void {
    if (seq > 0) this.#watchers.get(node)?.batch.push({ kind: "cancelled", seq, cancelled })
  }

  #remember(ticketId: string, roomId: string | null): void {
    const at = this.#port.now()
    const over = at - this.#madeSince > memoryMillis
    if (over || this.#made.size >= matchmaking.matchMemoryMax / 2) {
      this.#madeBefore = this.#made
      this.#made = new Map()
      this.#madeSince = at
    }
    this.#made.set(ticketId, { roomId, at })
  }

  #madeOf(ticketId: string): Made | undefined {
    const made = this.#made.get(ticketId) ?? this.#madeBefore.get(ticketId)
    return made !== undefined && this.#port.now() - made.at <= memoryMillis ? made : undefined
  }

  #flush(): void {
    for (const entry of this.#watchers.values()) {
      if (entry.batch.length === 0) continue
      const batch = entry.batch
      entry.batch = []
      entry.watcher.send(batch)
    }
  }
}
