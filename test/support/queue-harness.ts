/**
 * A live matchmaking queue, the gateways that hold its tickets, and rooms that give seats, without a
 * cluster. Matches are made when the test says so, so that anything can happen meanwhile. Whatever
 * happens, a ticket gets one seat or none, and one answer.
 */
import { assert } from "@effect/vitest"
import { QueueActor, type QueueRuntime } from "#entities/matchmaking-queue/actor"
import type { QueueOutput, QueueSettings } from "#entities/matchmaking-queue/protocol"
import type { Match, QueueMode, Ticket } from "#entities/matchmaking-queue/state"
import type { Watcher } from "#entities/watchers"
import { start } from "./room-harness.ts"

const queueSettings = (mode: QueueMode, configVersion: number): QueueSettings => ({
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

/** A node: the tickets it holds, the answers it waits for. */
class Gateway {
  readonly held = new Set<string>()
  /** Cancellations without an answer: ticket by number. */
  readonly cancels = new Map<number, string>()
  watcher: Watcher<QueueOutput> | undefined
}

export class QueueWorld {
  now = start
  mode: QueueMode
  readonly actor: QueueActor
  readonly gateways = { n1: new Gateway(), n2: new Gateway() }
  /** Matches that are in the making. */
  readonly making: Array<Match> = []
  /** Every match that was to be made, as its tickets. */
  readonly matches: Array<ReadonlyArray<string>> = []
  /** Free seats by room. */
  readonly rooms = new Map<string, number>()
  /** The room that each ticket has a seat in. */
  readonly seats = new Map<string, string>()
  /** The outcome of each ticket: its room, `cancelled` or `full`. */
  readonly outcomes = new Map<string, string>()
  /** Nodes whose stream was ended. */
  readonly ended: Array<string> = []
  looking = false
  /** How often the queue asked for rooms. */
  looks = 0
  /** Answer every look at once, from the rooms as they are. */
  readonly prompt: boolean
  #wakeAt = Number.POSITIVE_INFINITY
  #seq = 0

  constructor(mode: QueueMode, prompt = true) {
    this.mode = mode
    this.prompt = prompt
    this.actor = new QueueActor(1, this.#runtime)
    this.watch("n1")
    this.watch("n2")
  }

  /** A node brings a ticket, for the first time or again. */
  enqueue(ticketId: string, node: "n1" | "n2" = "n1"): void {
    this.enqueueAll([ticketId], node)
  }

  enqueueAll(tickets: ReadonlyArray<string>, node: "n1" | "n2" = "n1"): void {
    const gateway = this.gateways[node]
    for (const ticketId of tickets) gateway.held.add(ticketId)
    if (gateway.watcher !== undefined) this.#bring(tickets, node)
  }

  cancel(ticketId: string, node: "n1" | "n2" = "n1"): void {
    this.#seq += 1
    this.gateways[node].cancels.set(this.#seq, ticketId)
    this.#sendCancels(node)
  }

  watch(node: "n1" | "n2"): void {
    const gateway = this.gateways[node]
    if (gateway.watcher !== undefined) return
    gateway.watcher = {
      send: (items) => {
        for (const item of items) this.#hear(gateway, item)
      },
      end: () => {
        this.ended.push(node)
      }
    }
    this.actor.attach(node, gateway.watcher)
    this.#sendCancels(node)
    this.#bring(Array.from(gateway.held), node)
  }

  unwatch(node: "n1" | "n2"): void {
    const { watcher } = this.gateways[node]
    if (watcher === undefined) return
    this.gateways[node].watcher = undefined
    this.actor.detach(node, watcher)
  }

  /** The oldest match in the making gets its seats: as many as there are, in the room it was meant for. */
  seat(): void {
    const match = this.making.shift()
    if (match === undefined) return
    const roomId = match.kind === "fill" ? match.roomId : `r${this.rooms.size + 1}`
    const free = match.kind === "fill" ? (this.rooms.get(roomId) ?? 0) : this.mode.maxPlayers
    const seated = match.tickets.slice(0, free)
    const others = match.tickets.slice(free)
    for (const { ticketId } of seated) {
      assert.isFalse(this.seats.has(ticketId), `${ticketId} has one seat`)
      assert.notInclude(["cancelled", "full"], this.outcomes.get(ticketId))
      this.seats.set(ticketId, roomId)
    }
    const left = Math.max(0, free - seated.length)
    this.rooms.set(roomId, left)
    if (others.length > 0) this.actor.refused(others, roomId)
    this.actor.matched(seated, roomId, left)
  }

  /** The oldest match in the making fails. */
  refuse(): void {
    const match = this.making.shift()
    if (match === undefined) return
    this.actor.refused(match.tickets, match.kind === "fill" ? match.roomId : undefined)
  }

  /** The list of rooms with free seats comes in. */
  found(): void {
    if (!this.looking) return
    this.looking = false
    this.actor.openRoomsListed(
      Array.from(this.rooms, ([id, free]) => ({ id, free })).filter(({ free }) => free > 0)
    )
  }

  /** Time passes, and the queue acts whenever it asked to. */
  wait(millis: number): void {
    const end = this.now + millis
    while (this.#wakeAt <= end) {
      this.now = Math.max(this.now, this.#wakeAt)
      this.#wakeAt = Number.POSITIVE_INFINITY
      this.actor.advance()
    }
    this.now = end
  }

  /** A gateway sends the settings of a config version. */
  configure(mode: QueueMode, configVersion: number): void {
    const settings = queueSettings(mode, configVersion)
    this.actor.submit("n1", [{ seq: 0, command: { t: "configure", settings } }])
  }

  #bring(tickets: ReadonlyArray<string>, node: string): void {
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
    const { cancels, watcher } = this.gateways[node]
    if (watcher === undefined) return
    const inputs = Array.from(cancels, ([seq, ticketId]) => ({
      seq,
      command: { t: "cancel", ticketId } as const
    }))
    this.actor.submit(node, inputs)
  }

  #hear(gateway: Gateway, item: QueueOutput): void {
    if (item.kind === "cancelled") {
      const ticketId = gateway.cancels.get(item.seq)
      gateway.cancels.delete(item.seq)
      if (item.cancelled && ticketId !== undefined && gateway.held.delete(ticketId)) {
        this.#tell(ticketId, "cancelled")
      }
    } else if (gateway.held.delete(item.ticketId)) {
      this.#tell(item.ticketId, item.kind === "matched" ? item.roomId : "full")
    } else if (item.kind === "matched") {
      assert.strictEqual(this.outcomes.get(item.ticketId), item.roomId)
    }
  }

  #tell(ticketId: string, what: string): void {
    assert.isFalse(this.outcomes.has(ticketId), `${ticketId} has one outcome`)
    this.outcomes.set(ticketId, what)
  }

  #make(match: Match): void {
    const { fillTimeoutSeconds, maxPlayers, minPlayers } = this.mode
    const underWay = new Set(this.making.flatMap(({ tickets }) => tickets.map(idOf)))
    for (const ticket of match.tickets) {
      assert.isFalse(underWay.has(ticket.ticketId), "a ticket is in one match")
    }
    assert.isNotEmpty(match.tickets)
    if (match.kind === "open") {
      assert.isAtMost(match.tickets.length, maxPlayers)
      const due = match.tickets.some(
        ({ queuedAt }) => fillTimeoutSeconds > 0 && this.now >= queuedAt + fillTimeoutSeconds * 1000
      )
      assert.isTrue(due || match.tickets.length >= minPlayers, "enough, or long enough")
    }
    this.making.push(match)
    this.matches.push(match.tickets.map(idOf))
  }

  get #runtime(): QueueRuntime {
    return {
      now: () => this.now,
      wakeAt: (millis) => {
        this.#wakeAt = Math.min(this.#wakeAt, millis)
      },
      makeMatch: (match) => this.#make(match),
      listOpenRooms: () => {
        this.looking = true
        this.looks += 1
        if (this.prompt) this.found()
      }
    }
  }
}

const idOf = ({ ticketId }: Ticket): string => ticketId
