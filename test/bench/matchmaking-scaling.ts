/**
 * What a ticket costs the queue itself, by how many wait, from a hundred to a hundred thousand: the
 * state machine, and the actor around it (without cluster, rooms or sockets). The floor is a bare Map
 * of as many tickets: past 10,000 it leaves the processor's caches and grows dearer by itself, so what
 * must not grow is the cost over the floor's.
 */
import { QueueActor, type QueueRuntime } from "#entities/matchmaking-queue/actor"
import type { QueueInput, QueueSettings } from "#entities/matchmaking-queue/protocol"
import {
  cancel,
  emptyQueue,
  enqueue,
  type Match,
  nextMatch,
  type QueueState,
  type Ticket
} from "#entities/matchmaking-queue/state"
import { exponentOf, median } from "./many/figures.ts"

export interface Scaling {
  readonly what: string
  /** Nanoseconds per ticket by how many wait. */
  readonly nanos: Readonly<Record<number, number>>
  /** The power of the queue's length that the cost grows with, by itself and over the floor's. */
  readonly exponent: number
  readonly exponentOverFloor: number
}

export const queueLengths = [100, 1_000, 10_000, 100_000]

const node = "node"
const mode = { minPlayers: 4, maxPlayers: 4, fillTimeoutSeconds: 0 }
const settings: QueueSettings = {
  configVersion: 1,
  minPlayers: mode.minPlayers,
  fillTimeoutSeconds: mode.fillTimeoutSeconds,
  room: {
    environmentId: "env",
    mode: "four",
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
}

const joiningPlayer = (i: number) => ({
  playerId: `pl_${i}`,
  displayName: "Player",
  relayOnly: false,
  node,
  connectionId: `con_${i}`
})
const ticketId = (i: number): string => `tic_${i}`
const ticket = (i: number): Ticket => ({
  ticketId: ticketId(i),
  joiningPlayer: joiningPlayer(i),
  queuedAt: 0
})

/** A queue in which tickets wait, by number; each does a block of work. */
interface Queue {
  readonly enqueue: (tickets: ReadonlyArray<Ticket>) => void
  readonly cancel: (ticketIds: ReadonlyArray<string>) => void
}

const stateQueue = (state: QueueState): Queue => ({
  enqueue: (tickets) => {
    for (const one of tickets) enqueue(state, one)
  },
  cancel: (ticketIds) => {
    for (const one of ticketIds) cancel(state, one)
  }
})

const floorQueue = (tickets: Map<string, Ticket>): Queue => ({
  enqueue: (coming) => {
    for (const one of coming) tickets.set(one.ticketId, one)
  },
  cancel: (ticketIds) => {
    for (const one of ticketIds) tickets.delete(one)
  }
})

const enqueueInput = ({ joiningPlayer, ticketId }: Ticket): QueueInput => ({
  seq: 0,
  command: { t: "enqueue", ticketId, joiningPlayer, settings }
})
const cancelInput = (ticketId: string): QueueInput => ({
  seq: 0,
  command: { t: "cancel", ticketId }
})

const actorQueue = (actor: QueueActor): Queue => ({
  enqueue: (tickets) => actor.submit(node, tickets.map(enqueueInput)),
  cancel: (ticketIds) => actor.submit(node, ticketIds.map(cancelInput))
})

/** An actor whose tickets wait for the list of open rooms, until `found` is called. */
function waitingActor() {
  const matches: Array<Match> = []
  const port: QueueRuntime = {
    now: () => 0,
    wakeAt: () => undefined,
    listOpenRooms: () => undefined,
    makeMatch: (match) => matches.push(match)
  }
  const actor = new QueueActor(1, port)
  actor.attach(node, { send: () => undefined, end: () => undefined })
  return { actor, matches }
}

const block = 100
const blocks = 500
const warmUps = 100

const numbers = (count: number): ReadonlyArray<number> => Array.from({ length: count }, (_, i) => i)

function timed(items: number, work: () => void): number {
  const started = process.hrtime.bigint()
  work()
  return Number(process.hrtime.bigint() - started) / items
}

/**
 * A block leaves, from places all over the queue, and as many come in, again and again: the queue
 * keeps its length.
 */
function turnover(queue: Queue, length: number) {
  const waiting = numbers(length)
  const ids = waiting.map(ticketId)
  queue.enqueue(waiting.map(ticket))
  const costs = { enqueue: new Array<number>(), cancel: new Array<number>() }
  for (let i = 0; i < warmUps + blocks; i++) {
    const places = numbers(block).map((k) => ((i * block + k) * 7919) % length)
    const leaving = Array.from(new Set(places))
    const gone = leaving.map((place) => ids[place] ?? "")
    const coming = leaving.map((place) => ticket(length + i * block + place))
    const cancelled = timed(gone.length, () => queue.cancel(gone))
    const enqueued = timed(coming.length, () => queue.enqueue(coming))
    leaving.forEach((place, k) => (ids[place] = coming[k]?.ticketId ?? ""))
    if (i < warmUps) continue
    costs.cancel.push(cancelled)
    costs.enqueue.push(enqueued)
  }
  return { enqueue: median(costs.enqueue), cancel: median(costs.cancel) }
}

const drains = (length: number): number => Math.max(5, Math.ceil(100_000 / length))

/** Every ticket is taken, in order of arrival, four at a time. */
function floorMatch(length: number): number {
  const times = numbers(drains(length)).map(() => {
    const tickets = new Map<string, Ticket>()
    floorQueue(tickets).enqueue(numbers(length).map(ticket))
    const taken: Array<Array<Ticket>> = [[]]
    return timed(length, () => {
      for (const one of tickets.values()) {
        tickets.delete(one.ticketId)
        if (taken.at(-1)?.push(one) !== mode.maxPlayers) continue
        taken.push([])
      }
    })
  })
  return median(times)
}

/** Every ticket of a queue of this length is matched. */
function stateMatch(length: number): number {
  const times = numbers(drains(length)).map(() => {
    const state: QueueState = emptyQueue(mode)
    stateQueue(state).enqueue(numbers(length).map(ticket))
    return timed(length, () => {
      while (nextMatch(state, 0) !== undefined);
    })
  })
  return median(times)
}

/** The same, including the notifications of the nodes. */
function actorMatch(length: number): number {
  const times = numbers(drains(length)).map(() => {
    const { actor, matches } = waitingActor()
    actorQueue(actor).enqueue(numbers(length).map(ticket))
    return timed(length, () => {
      actor.openRoomsListed([])
      matches.forEach((match, i) => {
        const seated = new Set(match.tickets.map(({ joiningPlayer }) => joiningPlayer.playerId))
        actor.completed(match, { roomId: `rm_${i}`, seated, free: 0 })
      })
    })
  })
  return median(times)
}

interface Costs {
  readonly enqueue: number
  readonly match: number
  readonly cancel: number
}

const floorCosts = (length: number): Costs => ({
  ...turnover(floorQueue(new Map()), length),
  match: floorMatch(length)
})

const stateCosts = (length: number): Costs => ({
  ...turnover(stateQueue(emptyQueue(mode)), length),
  match: stateMatch(length)
})

const actorCosts = (length: number): Costs => ({
  ...turnover(actorQueue(waitingActor().actor), length),
  match: actorMatch(length)
})

const floor = "bare Map"
const parts = [
  { part: floor, costsAt: floorCosts },
  { part: "state machine", costsAt: stateCosts },
  { part: "actor", costsAt: actorCosts }
]

/** Measures everything at every length, in this process. */
export function measureScaling(): ReadonlyArray<Scaling> {
  const measured = parts.map(({ costsAt, part }) => {
    costsAt(1_000)
    return { part, costs: queueLengths.map(costsAt) }
  })
  const [lowest] = measured
  if (lowest === undefined) return []
  return measured.flatMap(({ costs, part }) =>
    (["enqueue", "match", "cancel"] as const).map((what) => {
      const nanos = costs.map((cost) => cost[what])
      const over = nanos.map((cost, i) => cost / (lowest.costs[i]?.[what] ?? cost))
      const powerOf = (values: ReadonlyArray<number>): number =>
        exponentOf(queueLengths.map((length, i) => [length, values[i] ?? 0] as const))
      return {
        what: `${part}, ${what}`,
        nanos: Object.fromEntries(queueLengths.map((length, i) => [length, nanos[i] ?? 0])),
        exponent: powerOf(nanos),
        exponentOverFloor: powerOf(over)
      }
    })
  )
}
