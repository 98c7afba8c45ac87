/**
 * Harness for a room actor and the gateways that watch it, without a cluster. Each gateway keeps its
 * members and builds their views from frames, as the hub of a node and its clients do. A test can
 * break streams and move the room; commands of a gateway wait until it watches again.
 */
import { assert } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { type CloseReason, RoomEvent, type RoomSnapshot } from "#rpc/rooms/events"
import { RoomActor } from "#entities/room/actor"
import type { RoomRuntime } from "#entities/room/runtime"
import type { JoiningPlayer, RoomSettings, RoomState } from "#entities/room/model"
import {
  type PlayerCommand,
  receives,
  type RoomInput,
  type RoomOutput
} from "#entities/room/messages"
import { decodeSnapshot, toRow, wakeFrom } from "#entities/room/snapshot"
import type { Watcher } from "#entities/watchers"
import { connectionOf, emptyRoom, applyEvent, start } from "./room-harness.ts"

const decodeFrame = Schema.decodeUnknownSync(Schema.fromJsonString(RoomEvent))

/** Gateway of one node: its connections, its members, and the outputs that it received. */
export class Gateway {
  readonly node: string
  /** Player of each connection. */
  readonly connections = new Map<string, string>()
  /** Connection of each member, by player. */
  readonly members = new Map<string, string>()
  readonly views = new Map<string, RoomSnapshot>()
  /** Outputs received since a test last cleared them. */
  outputs: Array<RoomOutput> = []
  /** Frames that players received, oldest first. */
  readonly frames: Array<{ readonly player: string; readonly event: RoomEvent }> = []
  /** Commands that wait until the gateway watches the room. */
  readonly pendingCommands: Array<RoomInput> = []
  readonly pendingReplies = new Set<number>()
  watcher: Watcher<RoomOutput> | undefined
  epoch = 0
  over = false

  constructor(node: string) {
    this.node = node
  }

  /** Members that the node sends to the room when it attaches. */
  get present(): ReadonlyArray<JoiningPlayer> {
    return Array.from(this.members, ([playerId, connectionId]) => ({
      playerId,
      displayName: playerId,
      relayOnly: false,
      node: this.node,
      connectionId
    }))
  }

  /** Returns the types of the events that a player received at this node. */
  kinds(player: string): ReadonlyArray<RoomEvent["t"]> {
    return this.frames.filter((frame) => frame.player === player).map(({ event }) => event.t)
  }

  receive(epoch: number, items: ReadonlyArray<RoomOutput>): void {
    assert.isAtLeast(epoch, this.epoch, "an older activation sends nothing")
    assert.isFalse(this.over, "end is the last output")
    this.epoch = epoch
    this.outputs.push(...items)
    for (const item of items) this.#handleOutput(item)
  }

  #handleOutput(item: RoomOutput): void {
    switch (item.kind) {
      case "event":
        for (const player of this.members.keys()) {
          if (receives(item, player)) this.#deliver(player, decodeFrame(item.frame))
        }
        return
      case "enter": {
        if (!this.connections.has(item.connection)) {
          const { connection: connectionId, player: playerId } = item
          this.command({ t: "disconnect", playerId, connectionId, replaced: false })
          return
        }
        this.members.set(item.player, item.connection)
        return this.#deliver(item.player, decodeFrame(item.frame))
      }
      case "exit":
        this.members.delete(item.player)
        this.views.delete(item.player)
        return
      case "reply":
      case "refuse":
        if (item.seq > 0)
          assert.isTrue(this.pendingReplies.delete(item.seq), "a command gets one reply")
        return
      case "end":
        this.over = true
    }
  }

  #deliver(player: string, event: RoomEvent): void {
    this.frames.push({ player, event })
    const view = event.t === "room_joined" ? event.room : this.views.get(player)
    assert.isDefined(view, "room_joined arrives before other events")
    if (view === undefined) return
    const next = applyEvent(view, event)
    if (next === undefined) this.views.delete(player)
    else this.views.set(player, next)
  }

  /** Queues a command; with a sequence number, it expects a reply. */
  command(command: PlayerCommand, seq = 0): void {
    this.pendingCommands.push({ seq, command })
    if (seq > 0) this.pendingReplies.add(seq)
  }
}

export class ActorHarness {
  now = start
  actor: RoomActor
  readonly gateways: Readonly<Record<"n1" | "n2", Gateway>> = {
    n1: new Gateway("n1"),
    n2: new Gateway("n2")
  }
  /** Since when players of the environment wait for admission. */
  heldFrom: number | null = null
  /** Does an urgent flush write the snapshot at once? */
  writes = true
  /** Reason why the room closed. */
  closed: CloseReason | undefined
  /** The players that the room has reported as members. */
  readonly indexed = new Set<string>()
  /** All snapshots of the room, oldest first. */
  readonly snapshots: Array<string> = []
  #wakeAt = Number.POSITIVE_INFINITY
  #connections = 0
  #seq = 0
  readonly #shared: boolean

  constructor(overrides: Partial<RoomSettings> = {}, shared = true) {
    this.#shared = shared
    this.actor = this.restart(emptyRoom(overrides))
    this.watch("n1")
    this.watch("n2")
  }

  /** Opens the room with the given state. */
  restart(state: RoomState): RoomActor {
    this.actor = new RoomActor("rm_1", 1, undefined, this.#runtime)
    this.actor.open(state)
    return this.actor
  }

  get allGateways(): ReadonlyArray<Gateway> {
    return Object.values(this.gateways)
  }

  /** Returns a player on a new connection of a node. */
  joiningPlayer(playerId: string, node: "n1" | "n2"): JoiningPlayer {
    this.#connections += 1
    const connectionId = connectionOf(this.#connections)
    this.gateways[node].connections.set(connectionId, playerId)
    return { playerId, displayName: playerId, relayOnly: false, node, connectionId }
  }

  /** Sends a command that expects a reply; it waits while the node does not watch. */
  send(node: "n1" | "n2", command: PlayerCommand): void {
    this.#seq += 1
    this.gateways[node].command(command, this.#seq)
    this.flush()
  }

  join(player: string, node: "n1" | "n2" = "n1", t: "join" | "resume" = "join"): void {
    this.send(node, { t, ...this.joiningPlayer(player, node) })
  }

  /** Closes the connections of a player on all nodes. */
  drop(player: string, replaced = false, drained = false): void {
    for (const gateway of this.allGateways) {
      for (const [connectionId, owner] of gateway.connections) {
        if (owner === player) gateway.connections.delete(connectionId)
      }
      const connectionId = gateway.members.get(player)
      if (connectionId === undefined) continue
      gateway.members.delete(player)
      gateway.views.delete(player)
      gateway.command({ t: "disconnect", playerId: player, connectionId, replaced, drained })
    }
    this.flush()
  }

  /** Submits the pending commands of all gateways that watch, until none is left. */
  flush(): void {
    for (const gateway of this.allGateways) {
      while (gateway.watcher !== undefined && gateway.pendingCommands.length > 0) {
        this.actor.submit(gateway.node, gateway.pendingCommands.splice(0))
      }
    }
  }

  watch(node: "n1" | "n2"): void {
    const gateway = this.gateways[node]
    if (gateway.watcher !== undefined || gateway.over || this.closed !== undefined) return
    const { epoch } = this.actor
    const watcher: Watcher<RoomOutput> = {
      send: (items) => gateway.receive(epoch, items),
      end: () => {
        gateway.watcher = undefined
      }
    }
    gateway.watcher = watcher
    this.actor.attach(node, watcher, gateway.epoch, gateway.present)
    this.flush()
  }

  /** Breaks the stream of a node. */
  unwatch(node: "n1" | "n2"): void {
    const { watcher } = this.gateways[node]
    if (watcher === undefined) return
    this.gateways[node].watcher = undefined
    this.actor.activation.detach(node, watcher)
  }

  /** Restores the room on another runner, from a snapshot `stale` changes older than the newest. */
  move(stale: number): void {
    const snapshot = this.snapshots[Math.max(0, this.snapshots.length - 1 - stale)]
    if (snapshot === undefined || this.closed !== undefined) return
    this.actor.activation.fence()
    const state = wakeFrom(Effect.runSync(decodeSnapshot(snapshot)), this.now)
    this.#wakeAt = Number.POSITIVE_INFINITY
    this.actor = new RoomActor("rm_1", this.actor.epoch + 1, state, this.#runtime)
    this.indexed.clear()
    for (const playerId of state.members.keys()) this.indexed.add(playerId)
    this.actor.expectNodes()
  }

  /** Stops the runner of the room, which wakes on another one after a time. */
  stop(awayMillis: number): void {
    this.actor.retire()
    this.#break(awayMillis)
  }

  /** The runner of the room is gone; the room wakes from its last snapshot. */
  crash(awayMillis: number): void {
    this.#break(awayMillis)
  }

  #break(awayMillis: number): void {
    for (const gateway of this.allGateways) gateway.watcher = undefined
    this.now += awayMillis
    this.move(0)
  }

  /** Players of the environment begin to wait for admission, or wait no more. */
  hold(isHeld: boolean): void {
    this.heldFrom = isHeld ? this.now : null
    this.actor.tick()
  }

  /** Writes the snapshot. */
  save(): void {
    if (this.writes) this.actor.commitWrite(this.actor.beginWrite())
  }

  /** Advances the clock, with a tick at each deadline of the room. */
  wait(millis: number): void {
    const end = this.now + millis
    let idle = 0
    while (this.#wakeAt <= end) {
      idle = this.#wakeAt <= this.now ? idle + 1 : 0
      assert.isBelow(idle, 5, "a tick leaves nothing to do at the same time")
      this.now = Math.max(this.now, this.#wakeAt)
      this.#wakeAt = Number.POSITIVE_INFINITY
      this.actor.tick()
      this.flush()
    }
    this.now = end
  }

  get #runtime(): RoomRuntime {
    return {
      now: () => this.now,
      clocks: [() => this.now],
      hasLease: () => true,
      heldFrom: () => this.heldFrom,
      wakeAt: (millis) => {
        this.#wakeAt = Math.min(this.#wakeAt, millis)
      },
      changed: () => {
        const { state } = this.actor
        if (state !== undefined)
          this.snapshots.push(toRow(state, this.actor.epoch, "n1", this.now).snapshot)
      },
      flushSoon: () => this.save(),
      memberAdded: (playerId) => this.indexed.add(playerId),
      memberRemoved: (playerId) => this.indexed.delete(playerId),
      shared: this.#shared,
      closed: (reason) => {
        this.closed = reason
        this.#wakeAt = Number.POSITIVE_INFINITY
      }
    }
  }
}

/** Returns the players with a seat, in the order of joining. */
export const seatedPlayers = (harness: ActorHarness): ReadonlyArray<string> =>
  Array.from(harness.actor.state?.members.keys() ?? [])

/** A room with ann and cat on n1 and ben on n2, and with their outputs cleared. */
export const roomOfThree = (overrides: Partial<RoomSettings> = {}): ActorHarness => {
  const harness = new ActorHarness(overrides)
  harness.join("ann", "n1")
  harness.join("ben", "n2")
  harness.join("cat", "n1")
  for (const gateway of harness.allGateways) {
    gateway.outputs = []
    gateway.frames.length = 0
  }
  return harness
}
