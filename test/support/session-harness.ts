/**
 * Harness for a bucket of player sessions and the gateways that hold the connections, without a
 * cluster. A test can break streams, move the bucket and complete loads. The harness asserts that a
 * player has at most one seat.
 */
import { assert } from "@effect/vitest"
import { idleSeconds } from "#entities/idle-time"
import { SessionsActor, type SessionsRuntime } from "#entities/player-session/actor"
import type { PlayerSessionCommand, SessionOutput } from "#entities/player-session/protocol"
import { noReservation, type Reservation } from "#entities/player-session/state"
import type { Watcher } from "#entities/watchers"
import { start } from "./room-harness.ts"

export type NodeName = "n1" | "n2"

/** Connection of a player at its gateway. */
export interface GatewayConnection {
  readonly connectionId: string
  readonly playerId: string
  readonly node: NodeName
  reservation: Reservation
}

/** Gateway of one node: its connections, and its commands without a reply. */
class Gateway {
  readonly connections = new Map<string, GatewayConnection>()
  readonly pending = new Map<number, { readonly command: PlayerSessionCommand }>()
  watcher: Watcher<SessionOutput> | undefined
  watch = 0
  seq = 0
}

export class SessionHarness {
  now = start
  hasLease = true
  actor: SessionsActor
  readonly gateways = { n1: new Gateway(), n2: new Gateway() }
  /** Players of each load that has not completed. */
  pendingLoads: Array<ReadonlyArray<string>> = []
  /** Room in which each player has a seat. */
  readonly seats = new Map<string, string>()
  /** Replies of the bucket: `<connection> <command> <outcome>`. */
  readonly replies: Array<string> = []
  readonly replaced: Array<string> = []
  #epoch = 1
  #connectionCount = 0
  #watchCount = 0
  #wakeAt = Number.POSITIVE_INFINITY

  constructor() {
    this.actor = new SessionsActor(this.#epoch, this.#runtime)
    this.watch("n1")
    this.watch("n2")
  }

  /** Opens a connection of a player; ids of later connections are greater. */
  open(node: NodeName, playerId: string): GatewayConnection {
    this.#connectionCount += 1
    const connectionId = `c${String(this.#connectionCount).padStart(4, "0")}`
    const connection: GatewayConnection = {
      connectionId,
      playerId,
      node,
      reservation: noReservation
    }
    this.gateways[node].connections.set(connectionId, connection)
    this.send(node, { t: "attach", playerId, connectionId, reservation: noReservation })
    return connection
  }

  close({ connectionId, node, playerId }: GatewayConnection): void {
    this.gateways[node].connections.delete(connectionId)
    this.send(node, { t: "detach", playerId, connectionId })
  }

  claim({ connectionId, node, playerId }: GatewayConnection, reservation: Reservation): void {
    this.send(node, { t: "claim", playerId, connectionId, reservation })
  }

  /** Releases the seat or the ticket of a connection. */
  release(connection: GatewayConnection): void {
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
    else this.actor.submit(node, [{ seq: gateway.seq, command }])
  }

  /** Attaches the node (again) with its connections. */
  watch(node: NodeName): void {
    const gateway = this.gateways[node]
    gateway.watch = ++this.#watchCount
    gateway.pending.clear()
    const watcher: Watcher<SessionOutput> = {
      send: (items) => {
        if (gateway.watcher === watcher) this.#handleOutputs(node, items)
      },
      end: () => {
        if (gateway.watcher === watcher) gateway.watcher = undefined
      }
    }
    gateway.watcher = watcher
    this.actor.activation.admit(node, gateway.watch)
    this.actor.attach(node, watcher, Array.from(gateway.connections.values()))
  }

  /** Breaks the stream of a node. */
  unwatch(node: NodeName): void {
    const { watcher } = this.gateways[node]
    this.gateways[node].watcher = undefined
    if (watcher !== undefined) this.actor.detach(node, watcher)
  }

  /** Moves the bucket to another runner; nodes must watch it again. */
  move(): void {
    this.actor.activation.fence()
    this.hasLease = true
    this.pendingLoads = []
    this.#epoch += 1
    this.actor = new SessionsActor(this.#epoch, this.#runtime)
  }

  /** Completes the oldest load. */
  completeLoad(): void {
    const playerIds = this.pendingLoads.shift()
    if (playerIds !== undefined) this.actor.loaded(playerIds, new Map(this.seats))
  }

  wait(millis: number): void {
    const end = this.now + millis
    while (this.#wakeAt <= end) {
      this.now = Math.max(this.now, this.#wakeAt)
      this.#wakeAt = Number.POSITIVE_INFINITY
      this.actor.tick()
    }
    this.now = end
  }

  /** Attaches detached nodes again, and completes all loads. */
  settle(): void {
    if (!this.hasLease || this.actor.fenced) this.move()
    for (const node of ["n1", "n2"] as const) {
      if (this.gateways[node].watcher === undefined) this.watch(node)
    }
    while (this.pendingLoads.length > 0) this.completeLoad()
  }

  get connections(): ReadonlyArray<GatewayConnection> {
    return Object.values(this.gateways).flatMap(({ connections: held }) =>
      Array.from(held.values())
    )
  }

  #handleOutputs(node: NodeName, items: ReadonlyArray<SessionOutput>): void {
    const gateway = this.gateways[node]
    for (const item of items) {
      if (item.kind === "replaced") {
        this.replaced.push(item.connectionId)
        gateway.connections.delete(item.connectionId)
        continue
      }
      const request = gateway.pending.get(item.seq)
      assert.isDefined(request, "a command gets one reply")
      gateway.pending.delete(item.seq)
      this.#handleReply(gateway, request.command, item)
    }
  }

  #handleReply(
    gateway: Gateway,
    command: PlayerSessionCommand,
    item: Exclude<SessionOutput, { kind: "replaced" }>
  ): void {
    const outcome = item.kind === "done" ? (item.roomId ?? "done") : item.error.code
    const subject = "connectionId" in command ? command.connectionId : command.playerId
    this.replies.push(`${subject} ${command.t} ${outcome}`)
    if (command.t !== "claim" || item.kind !== "done") return
    const connection = gateway.connections.get(command.connectionId)
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
      hasLease: () => this.hasLease,
      idleMillis: idleSeconds * 1000,
      wakeAt: (millis) => {
        this.#wakeAt = Math.min(this.#wakeAt, millis)
      },
      load: (playerIds) => void this.pendingLoads.push(playerIds)
    }
  }
}
