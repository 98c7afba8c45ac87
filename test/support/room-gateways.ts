/**
 * A live room and the gateways that watch it, without a cluster: each gateway keeps its members and
 * builds their views from frames, as a node's hub and its clients do. Streams break, nodes fall
 * silent, the room moves: what a gateway cannot send waits until it watches again.
 */
import { assert } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { type CloseReason, RoomEvent, type RoomSnapshot } from "#rpc/rooms"
import { RoomActor, type RoomRuntime } from "#entities/room/actor"
import type { JoiningPlayer, RoomSettings, RoomState } from "#entities/room/model"
import type { PlayerCommand, RoomInput, RoomOutput } from "#entities/room/messages"
import { decodeSnapshot, fromStored, toRow } from "#entities/room/snapshot"
import type { Watcher } from "#entities/watchers"
import { connectionOf, emptyRoom, follow, start } from "./room-harness.ts"

const decodeFrame = Schema.decodeUnknownSync(Schema.fromJsonString(RoomEvent))

/** One node: the connections it holds, by id, its members, and the outputs it received. */
export class Gateway {
  readonly node: string
  readonly connections = new Map<string, string>()
  /** Connections of those who are in, by player. */
  readonly members = new Map<string, string>()
  readonly views = new Map<string, RoomSnapshot>()
  /** Outputs received since this was last emptied. */
  items: Array<RoomOutput> = []
  /** Frames that players heard, oldest first. */
  readonly frames: Array<{ readonly player: string; readonly event: RoomEvent }> = []
  /** Commands that wait for the room. */
  readonly waiting: Array<RoomInput> = []
  readonly unanswered = new Set<number>()
  watcher: Watcher<RoomOutput> | undefined
  epoch = 0
  over = false

  constructor(node: string) {
    this.node = node
  }

  /** What the room knows of this node's members when it attaches. */
  get present(): ReadonlyArray<JoiningPlayer> {
    return Array.from(this.members, ([playerId, connectionId]) => ({
      playerId,
      displayName: playerId,
      relayOnly: false,
      node: this.node,
      connectionId
    }))
  }

  /** The kinds of events a player heard here. */
  kinds(player: string): ReadonlyArray<RoomEvent["t"]> {
    return this.frames.filter((frame) => frame.player === player).map(({ event }) => event.t)
  }

  receive(epoch: number, items: ReadonlyArray<RoomOutput>): void {
    assert.isAtLeast(epoch, this.epoch, "an older activation is silent")
    assert.isFalse(this.over, "end is the last output")
    this.epoch = epoch
    this.items.push(...items)
    for (const item of items) this.#item(item)
  }

  #item(item: RoomOutput): void {
    switch (item.kind) {
      case "event":
        for (const player of this.members.keys()) {
          const hears = item.to === null ? player !== item.except : item.to.includes(player)
          if (hears) this.#hear(player, decodeFrame(item.frame))
        }
        return
      case "enter": {
        if (!this.connections.has(item.connection)) {
          const { connection: connectionId, player: playerId } = item
          this.command({ t: "disconnect", playerId, connectionId, replaced: false })
          return
        }
        this.members.set(item.player, item.connection)
        return this.#hear(item.player, decodeFrame(item.frame))
      }
      case "exit":
        this.members.delete(item.player)
        this.views.delete(item.player)
        return
      case "reply":
      case "refuse":
        if (item.seq > 0) assert.isTrue(this.unanswered.delete(item.seq), "one answer each")
        return
      case "end":
        this.over = true
    }
  }

  #hear(player: string, event: RoomEvent): void {
    this.frames.push({ player, event })
    const view = event.t === "room_joined" ? event.room : this.views.get(player)
    assert.isDefined(view, "the room comes before its events")
    if (view === undefined) return
    const next = follow(view, event)
    if (next === undefined) this.views.delete(player)
    else this.views.set(player, next)
  }

  /** Queues a command; the answer that is owed for it is noted. */
  command(command: PlayerCommand, seq = 0): void {
    this.waiting.push({ seq, command })
    if (seq > 0) this.unanswered.add(seq)
  }
}

export class ActorWorld {
  now = start
  actor: RoomActor
  readonly gateways: Readonly<Record<"n1" | "n2", Gateway>> = {
    n1: new Gateway("n1"),
    n2: new Gateway("n2")
  }
  /** Is what is urgent written at once? */
  writes = true
  /** How the room ended. */
  closed: CloseReason | undefined
  /** Every state that was worth a snapshot, as it was stored. */
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

  /** The room is opened, with the seats it has. */
  restart(state: RoomState): RoomActor {
    this.actor = new RoomActor("rm_1", 1, undefined, this.#runtime)
    this.actor.open(state)
    return this.actor
  }

  get all(): ReadonlyArray<Gateway> {
    return Object.values(this.gateways)
  }

  /** A player on a new connection of a node. */
  joiningPlayer(playerId: string, node: "n1" | "n2"): JoiningPlayer {
    this.#connections += 1
    const connectionId = connectionOf(this.#connections)
    this.gateways[node].connections.set(connectionId, playerId)
    return { playerId, displayName: playerId, relayOnly: false, node, connectionId }
  }

  /** Sends a command that wants an answer; it waits while the node does not watch. */
  send(node: "n1" | "n2", command: PlayerCommand): void {
    this.#seq += 1
    this.gateways[node].command(command, this.#seq)
    this.flush()
  }

  join(player: string, node: "n1" | "n2" = "n1", t: "join" | "resume" = "join"): void {
    this.send(node, { t, ...this.joiningPlayer(player, node) })
  }

  /** The player's connections are gone, wherever they are. */
  drop(player: string, replaced = false): void {
    for (const gateway of this.all) {
      for (const [connectionId, owner] of gateway.connections) {
        if (owner === player) gateway.connections.delete(connectionId)
      }
      const connectionId = gateway.members.get(player)
      if (connectionId === undefined) continue
      gateway.members.delete(player)
      gateway.views.delete(player)
      gateway.command({ t: "disconnect", playerId: player, connectionId, replaced })
    }
    this.flush()
  }

  /** Hands over what waits at the gateways that watch, until nothing does. */
  flush(): void {
    for (const gateway of this.all) {
      while (gateway.watcher !== undefined && gateway.waiting.length > 0) {
        this.actor.submit(gateway.node, gateway.waiting.splice(0))
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

  /** The stream of a node breaks. */
  unwatch(node: "n1" | "n2"): void {
    const { watcher } = this.gateways[node]
    if (watcher === undefined) return
    this.gateways[node].watcher = undefined
    this.actor.detach(node, watcher)
  }

  /** The room's runner is gone; it wakes from a snapshot, `stale` changes older than the newest. */
  move(stale: number): void {
    const snapshot = this.snapshots[Math.max(0, this.snapshots.length - 1 - stale)]
    if (snapshot === undefined || this.closed !== undefined) return
    this.actor.fence()
    const state = fromStored(Effect.runSync(decodeSnapshot(snapshot)))
    this.#wakeAt = Number.POSITIVE_INFINITY
    this.actor = new RoomActor("rm_1", this.actor.epoch + 1, state, this.#runtime)
    this.actor.expectNodes()
  }

  /** The state is written. */
  save(): void {
    if (this.writes) this.actor.commitWrite(this.actor.beginWrite())
  }

  /** Time passes, and the room acts whenever it asked to. */
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
      hasLease: () => true,
      wakeAt: (millis) => {
        this.#wakeAt = Math.min(this.#wakeAt, millis)
      },
      changed: () => {
        const { state } = this.actor
        if (state !== undefined)
          this.snapshots.push(toRow(state, this.actor.epoch, "n1", this.now).snapshot)
      },
      flushSoon: () => this.save(),
      shared: this.#shared,
      closed: (reason) => {
        this.closed = reason
        this.#wakeAt = Number.POSITIVE_INFINITY
      }
    }
  }
}

/** Who has a seat, in order. */
export const seats = (world: ActorWorld): ReadonlyArray<string> =>
  Array.from(world.actor.state?.members.keys() ?? [])

/** Ann and cat on n1, ben on n2; no outputs so far. */
export const meeting = (overrides: Partial<RoomSettings> = {}): ActorWorld => {
  const world = new ActorWorld(overrides)
  world.join("ann", "n1")
  world.join("ben", "n2")
  world.join("cat", "n1")
  for (const gateway of world.all) {
    gateway.items = []
    gateway.frames.length = 0
  }
  return world
}
