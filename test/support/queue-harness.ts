/**
 * Harness for a matchmaking queue actor, the gateways that hold its tickets, and rooms with free
 * seats, without a cluster. A test completes each match itself, so that other steps can run before.
 * The harness asserts that a ticket gets at most one seat and one outcome.
 */
import { assert } from "@effect/vitest"
import { QueueActor, type QueueRuntime } from "#entities/matchmaking-queue/actor"
import type { QueueOutput, QueueSettings } from "#entities/matchmaking-queue/protocol"
import type { Match, QueueMode, Ticket } from "#entities/matchmaking-queue/state"
import type { Watcher } from "#entities/watchers"
import { OpeningCheck } from "./opening-check.ts"
import { start } from "./room-harness.ts"

export const queueSettings = (mode: QueueMode, configVersion: number): QueueSettings => ({
  configVersion,
  minPlayers: mode.minPlayers,
  fillTimeoutSeconds: mode.fillTimeoutSeconds,
  room: {
    environmentId: "env_1",
    mode: "default",
    private: false,
    transport: "server",
    p2p: null,
    hostOnlyState: false,
    maxPlayers: mode.maxPlayers,
    metadata: {},
    graceSeconds: 30,
    matched: true,
    code: null,
    joiningPlayers: []
  }
})

/** Gateway of one node: its tickets, and its cancellations without a reply. */
class Gateway {
  readonly tickets = new Set<string>()
  /** Cancellations without a reply: ticket by sequence number. */
  readonly pendingCancels = new Map<number, string>()
  watcher: Watcher<QueueOutput> | undefined
}

export class QueueHarness {
  now = start
  mode: QueueMode
  readonly actor: QueueActor
  readonly gateways = { n1: new Gateway(), n2: new Gateway() }
  /** Matches that the queue has formed and that have no seats yet. */
  readonly pendingMatches: Array<Match> = []
  readonly #openings = new OpeningCheck()
  /** Tickets of each match that the queue has formed. */
  readonly matches: Array<ReadonlyArray<string>> = []
  /** Free seats by room. */
  readonly rooms = new Map<string, number>()
  /** Tickets whose players a room does not take, by room. */
  readonly bars = new Map<string, ReadonlySet<string>>()
  /** Room in which each ticket has a seat. */
  readonly seats = new Map<string, string>()
  /** The outcome of each ticket: its room, `cancelled` or `full`. */
  readonly outcomes = new Map<string, string>()
  /** Nodes whose stream the queue has ended. */
  readonly endedStreams: Array<string> = []
  /** Does the queue wait for a list of open rooms? */
  listing = false
  /** Number of lists of open rooms that the queue has requested. */
  listings = 0
  /** Does each list of open rooms complete at once? */
  readonly instantListing: boolean
  #wakeAt = Number.POSITIVE_INFINITY
  #seq = 0

  constructor(mode: QueueMode, immediateListing = true) {
    this.mode = mode
    this.instantListing = immediateListing
    this.actor = new QueueActor(1, this.#runtime)
    this.watch("n1")
    this.watch("n2")
  }

  /** Enqueues a ticket from a node, for the first time or again. */
  enqueue(ticketId: string, node: "n1" | "n2" = "n1"): void {
    this.enqueueAll([ticketId], node)
  }

  enqueueAll(tickets: ReadonlyArray<string>, node: "n1" | "n2" = "n1"): void {
    const gateway = this.gateways[node]
    for (const ticketId of tickets) gateway.tickets.add(ticketId)
    if (gateway.watcher !== undefined) this.#submitTickets(tickets, node)
  }

  cancel(ticketId: string, node: "n1" | "n2" = "n1"): void {
    this.#seq += 1
    this.gateways[node].pendingCancels.set(this.#seq, ticketId)
    this.#sendCancels(node)
  }

  watch(node: "n1" | "n2"): void {
    const gateway = this.gateways[node]
    if (gateway.watcher !== undefined) return
    gateway.watcher = {
      send: (items) => {
        for (const item of items) this.#handleOutput(gateway, item)
      },
      end: () => {
        this.endedStreams.push(node)
      }
    }
    this.actor.attach(node, gateway.watcher)
    this.#sendCancels(node)
    this.#submitTickets(Array.from(gateway.tickets), node)
  }

  unwatch(node: "n1" | "n2"): void {
    const { watcher } = this.gateways[node]
    if (watcher === undefined) return
    this.gateways[node].watcher = undefined
    this.actor.detach(node, watcher)
  }

  /** Seats a pending match, by default the oldest, up to the free seats of its room. */
  seat(index = 0): void {
    const [match] = this.pendingMatches.splice(index, 1)
    if (match === undefined) return
    const roomId = match.kind === "fill" ? match.roomId : `r${this.rooms.size + 1}`
    const free = match.kind === "fill" ? (this.rooms.get(roomId) ?? 0) : this.mode.maxPlayers
    const barred = this.bars.get(roomId)
    for (const { avoids } of match.tickets) assert.isFalse(avoids?.has(roomId) === true)
    const seated = match.tickets.filter(({ ticketId }) => barred?.has(ticketId) !== true)
    seated.length = Math.min(seated.length, free)
    for (const { ticketId } of seated) {
      assert.isFalse(this.seats.has(ticketId), `${ticketId} has one seat`)
      assert.notInclude(["cancelled", "full"], this.outcomes.get(ticketId))
      this.seats.set(ticketId, roomId)
    }
    const left = Math.max(0, free - seated.length)
    this.rooms.set(roomId, left)
    this.#openings.end(match)
    const players = new Set(seated.map(({ joiningPlayer }) => joiningPlayer.playerId))
    this.actor.completed(match, { roomId, seated: players, free: left })
  }

  /** Refuses the oldest pending match. */
  refuse(): void {
    const match = this.pendingMatches.shift()
    if (match === undefined) return
    this.#openings.end(match)
    this.actor.completed(match, undefined)
  }

  /** Completes the list of rooms with free seats. */
  found(how: "listed" | "failed" = "listed"): void {
    if (!this.listing) return
    this.listing = false
    if (how === "failed") return this.actor.openRoomsListed(undefined)
    this.actor.openRoomsListed(
      Array.from(this.rooms, ([id, free]) => ({ id, free })).filter(({ free }) => free > 0)
    )
  }

  /** Advances the clock, and the queue at each of its deadlines. */
  wait(millis: number): void {
    const end = this.now + millis
    while (this.#wakeAt <= end) {
      this.now = Math.max(this.now, this.#wakeAt)
      this.#wakeAt = Number.POSITIVE_INFINITY
      this.actor.advance()
    }
    this.now = end
  }

  /** Sends the settings of a config version from a gateway. */
  configure(mode: QueueMode, configVersion: number): void {
    const settings = queueSettings(mode, configVersion)
    this.actor.submit("n1", [{ seq: 0, command: { t: "configure", settings } }])
  }

  #submitTickets(tickets: ReadonlyArray<string>, node: string): void {
    const settings = queueSettings(this.mode, 1)
    const inputs = tickets.map((ticketId) => {
      const joiningPlayer = {
        playerId: ticketId,
        displayName: ticketId,
        relayOnly: false,
        node,
        connectionId: "c1"
      }
      return { seq: 0, command: { t: "enqueue", ticketId, joiningPlayer, settings } as const }
    })
    this.actor.submit(node, inputs)
  }

  #sendCancels(node: "n1" | "n2"): void {
    const { pendingCancels: cancels, watcher } = this.gateways[node]
    if (watcher === undefined) return
    const inputs = Array.from(cancels, ([seq, ticketId]) => ({
      seq,
      command: { t: "cancel", ticketId } as const
    }))
    this.actor.submit(node, inputs)
  }

  #handleOutput(gateway: Gateway, item: QueueOutput): void {
    if (item.kind === "cancelled") {
      const ticketId = gateway.pendingCancels.get(item.seq)
      gateway.pendingCancels.delete(item.seq)
      if (item.cancelled && ticketId !== undefined && gateway.tickets.delete(ticketId)) {
        this.#setOutcome(ticketId, "cancelled")
      }
    } else if (gateway.tickets.delete(item.ticketId)) {
      this.#setOutcome(item.ticketId, item.kind === "matched" ? item.roomId : "full")
    } else if (item.kind === "matched") {
      assert.strictEqual(this.outcomes.get(item.ticketId), item.roomId)
    }
  }

  #setOutcome(ticketId: string, outcome: string): void {
    assert.isFalse(this.outcomes.has(ticketId), `${ticketId} has one outcome`)
    this.outcomes.set(ticketId, outcome)
  }

  #recordMatch(match: Match, settings: QueueSettings): void {
    const { fillTimeoutSeconds, maxPlayers, minPlayers } = this.mode
    const pending = new Set(this.pendingMatches.flatMap(({ tickets }) => tickets.map(idOf)))
    for (const ticket of match.tickets) {
      assert.isFalse(pending.has(ticket.ticketId), "a ticket is in one match")
    }
    assert.isNotEmpty(match.tickets)
    if (match.kind === "open") {
      const { maxPlayers: seats } = settings.room
      const spare = this.#openings.begin(match, seats, this.actor.waiting, this.now)
      assert.strictEqual(spare, 0, "no room is opened where another would do")
      assert.isAtMost(match.tickets.length, maxPlayers)
      const due = match.tickets.some(
        ({ queuedAt }) => fillTimeoutSeconds > 0 && this.now >= queuedAt + fillTimeoutSeconds * 1000
      )
      assert.isTrue(
        due || match.tickets.length >= minPlayers,
        "enough tickets wait, or one has waited for the fill timeout"
      )
    }
    this.pendingMatches.push(match)
    this.matches.push(match.tickets.map(idOf))
  }

  get #runtime(): QueueRuntime {
    return {
      now: () => this.now,
      wakeAt: (millis) => {
        this.#wakeAt = Math.min(this.#wakeAt, millis)
      },
      makeMatch: (match, settings) => this.#recordMatch(match, settings),
      listOpenRooms: () => {
        this.listing = true
        this.listings += 1
        if (this.instantListing) this.found()
      }
    }
  }
}

const idOf = ({ ticketId }: Ticket): string => ticketId
