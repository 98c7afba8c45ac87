/**
 * A bucket of players' sessions and the gateways that hold the players' connections, without a
 * cluster: streams break, the bucket moves, look-ups are answered when the test says so. Whatever
 * happens, a player has one seat or none.
 */
import { assert } from "@effect/vitest"
import { SessionsActor, type SessionsRuntime } from "#entities/player-session/actor"
import type { PlayerSessionCommand, SessionOutput } from "#entities/player-session/protocol"
import { noReservation, type Reservation } from "#entities/player-session/state"
import type { Watcher } from "#entities/watchers"
import { start } from "./room-harness.ts"

export type NodeName = "n1" | "n2"

/** A connection as its gateway has it. */
export interface HeldConnection {
  readonly connectionId: string
  readonly playerId: string
  readonly node: NodeName
  reservation: Reservation
}

/** A gateway: its connections, and the answers it waits for. */
class Gateway {
  readonly held = new Map<string, HeldConnection>()
  readonly pending = new Map<number, { readonly command: PlayerSessionCommand }>()
  watcher: Watcher<SessionOutput> | undefined
  watch = 0
  seq = 0
}

export class SessionWorld {
  now = start
  owned = true
  actor: SessionsActor
  readonly gateways = { n1: new Gateway(), n2: new Gateway() }
  /** Look-ups without an answer. */
  loads: Array<ReadonlyArray<string>> = []
  /** The seats as the rooms have them. */
  readonly seats = new Map<string, string>()
  /** What was answered: `<connection> <command> <outcome>`. */
  readonly answers: Array<string> = []
  readonly replaced: Array<string> = []
  #epoch = 1
  #opened = 0
  #watches = 0
  #wakeAt = Number.POSITIVE_INFINITY

  constructor() {
    this.actor = new SessionsActor(this.#epoch, this.#runtime)
    this.watch("n1")
    this.watch("n2")
  }

  /** A player connects; ids are time-ordered. */
  open(node: NodeName, playerId: string): HeldConnection {
    this.#opened += 1
    const connectionId = `c${String(this.#opened).padStart(4, "0")}`
    const connection: HeldConnection = { connectionId, playerId, node, reservation: noReservation }
    this.gateways[node].held.set(connectionId, connection)
    this.send(node, { t: "attach", playerId, connectionId, reservation: noReservation })
    return connection
  }

  close({ connectionId, node, playerId }: HeldConnection): void {
    this.gateways[node].held.delete(connectionId)
    this.send(node, { t: "detach", playerId, connectionId })
  }

  claim({ connectionId, node, playerId }: HeldConnection, reservation: Reservation): void {
    this.send(node, { t: "claim", playerId, connectionId, reservation })
  }

  /** Leaves the room, or the queue. */
  release(connection: HeldConnection): void {
    const { node, reservation, playerId } = connection
    if (reservation.kind === "seat") this.seats.delete(playerId)
    connection.reservation = noReservation
    this.send(node, { t: "release", playerId, reservation })
  }

  send(node: NodeName, command: PlayerSessionCommand): void {
    const gateway = this.gateways[node]
    gateway.seq += 1
    gateway.pending.set(gateway.seq, { command })
    if (gateway.watcher === undefined) gateway.pending.delete(gateway.seq)
    else this.actor.submit(node, gateway.watch, [{ seq: gateway.seq, command }])
  }

  /** Attaches the node (again) with its connections. */
  watch(node: NodeName): void {
    const gateway = this.gateways[node]
    gateway.watch = ++this.#watches
    gateway.pending.clear()
    const watcher: Watcher<SessionOutput> = {
      send: (items) => {
        if (gateway.watcher === watcher) this.#hear(node, items)
      },
      end: () => {
        if (gateway.watcher === watcher) gateway.watcher = undefined
      }
    }
    gateway.watcher = watcher
    this.actor.attach(node, gateway.watch, watcher, Array.from(gateway.held.values()))
  }

  /** The node's stream breaks. */
  unwatch(node: NodeName): void {
    const { watcher } = this.gateways[node]
    this.gateways[node].watcher = undefined
    if (watcher !== undefined) this.actor.detach(node, watcher)
  }

  /** The bucket goes on elsewhere; the nodes have to find it. */
  move(): void {
    this.actor.fence()
    this.owned = true
    this.loads = []
    this.#epoch += 1
    this.actor = new SessionsActor(this.#epoch, this.#runtime)
  }

  /** Answers the oldest look-up. */
  load(): void {
    const playerIds = this.loads.shift()
    if (playerIds !== undefined) this.actor.loaded(playerIds, new Map(this.seats))
  }

  pass(millis: number): void {
    const end = this.now + millis
    while (this.#wakeAt <= end) {
      this.now = Math.max(this.now, this.#wakeAt)
      this.#wakeAt = Number.POSITIVE_INFINITY
      this.actor.tick()
    }
    this.now = end
  }

  /** Everything that is due happens: detached nodes attach again, look-ups complete. */
  settle(): void {
    if (!this.owned || this.actor.fenced) this.move()
    for (const node of ["n1", "n2"] as const) {
      if (this.gateways[node].watcher === undefined) this.watch(node)
    }
    while (this.loads.length > 0) this.load()
  }

  get connections(): ReadonlyArray<HeldConnection> {
    return Object.values(this.gateways).flatMap(({ held }) => Array.from(held.values()))
  }

  #hear(node: NodeName, items: ReadonlyArray<SessionOutput>): void {
    const gateway = this.gateways[node]
    for (const item of items) {
      if (item.kind === "replaced") {
        this.replaced.push(item.connectionId)
        gateway.held.delete(item.connectionId)
        continue
      }
      const asked = gateway.pending.get(item.seq)
      assert.isDefined(asked, "one answer to a command")
      gateway.pending.delete(item.seq)
      this.#answered(gateway, asked.command, item)
    }
  }

  #answered(
    gateway: Gateway,
    command: PlayerSessionCommand,
    item: Exclude<SessionOutput, { kind: "replaced" }>
  ): void {
    const outcome = item.kind === "done" ? (item.roomId ?? "done") : item.error.code
    const who = "connectionId" in command ? command.connectionId : command.playerId
    this.answers.push(`${who} ${command.t} ${outcome}`)
    if (command.t !== "claim" || item.kind !== "done") return
    const connection = gateway.held.get(command.connectionId)
    if (connection === undefined) return
    if (command.reservation.kind === "seat") {
      const seat = this.seats.get(command.playerId) ?? command.reservation.roomId
      assert.strictEqual(command.reservation.roomId, seat, "a second seat was granted")
      this.seats.set(command.playerId, seat)
    }
    connection.reservation = command.reservation
  }

  get #runtime(): SessionsRuntime {
    return {
      now: () => this.now,
      hasLease: () => this.owned,
      wakeAt: (millis) => {
        this.#wakeAt = Math.min(this.#wakeAt, millis)
      },
      load: (playerIds) => void this.loads.push(playerIds)
    }
  }
}
