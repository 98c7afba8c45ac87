/**
 * Harness for a channel actor under virtual time, without a service. Each member and listener builds
 * its own view from `channel_joined` and the later events, as a client does. Tests compare these views
 * with the state of the channel.
 */
import { assert } from "@effect/vitest"
import { Effect, Result, Schema } from "effect"
import { ChannelEvent, type ModerateOp } from "#rpc/channels/frames"
import { channelLimits } from "#rpc/channels/limits"
import { absentOf } from "#entities/channel/absences"
import { ChannelActor } from "#entities/channel/actor"
import {
  type ChannelState,
  membersOf,
  openChannel,
  playerView,
  selfOf,
  settingsView,
  type ChannelOptions
} from "#entities/channel/model"
import type { ChannelInput, ChannelOutput, GatewayCommand } from "#entities/channel/messages"
import type { ChannelRuntime } from "#entities/channel/runtime"
import { defaultOptions } from "#entities/channel/options"
import { fromRow, toRow } from "#entities/channel/snapshot"
import type { StoredLink } from "#entities/executed-commands"
import type { Watcher } from "#entities/watchers"
import { applyEvent, type View } from "./channel-views.ts"

/** Creation time of each channel, Unix milliseconds. */
export const start = 1_800_000_000_000

const environmentId = "env_1"
const name = "@club"

const decodeFrame = Schema.decodeUnknownSync(Schema.fromJsonString(ChannelEvent))

/** Gateway of one node: its connections and members, and the events that they received. */
export class Gateway {
  readonly node: string
  /** Player of each connection; null: anonymous. */
  readonly pendingJoins = new Map<string, string | null>()
  readonly members = new Map<string, { readonly connectionId: string; readonly joinedAt: number }>()
  readonly listeners = new Set<string>()
  /** Views by player, or by connection for anonymous listeners. */
  readonly views = new Map<string, View>()
  readonly frames: Array<{ readonly to: string; readonly event: ChannelEvent }> = []
  readonly replies = new Map<number, string>()
  /** Number of outputs received, and the bytes of their frames. */
  items = 0
  bytes = 0
  watcher: Watcher<ChannelOutput> | undefined
  epoch = 0
  over = false

  constructor(node: string) {
    this.node = node
  }

  kinds(to: string): ReadonlyArray<ChannelEvent["t"]> {
    return this.frames.filter((frame) => frame.to === to).map(({ event }) => event.t)
  }

  last(to: string): ChannelEvent | undefined {
    return this.frames.findLast((frame) => frame.to === to)?.event
  }

  receive(items: ReadonlyArray<ChannelOutput>): void {
    assert.isFalse(this.over, "end is the last output")
    for (const item of items) {
      this.items += 1
      if ("frame" in item) this.bytes += item.frame.length
      this.#handleOutput(item)
    }
  }

  #handleOutput(item: ChannelOutput): void {
    switch (item.kind) {
      case "event": {
        const event = decodeFrame(item.frame)
        for (const player of item.to ?? this.members.keys()) {
          if (this.members.has(player)) this.#deliver(player, event)
        }
        if (item.listeners)
          for (const connection of this.listeners) this.#deliver(connection, event)
        return
      }
      case "enter": {
        const event = decodeFrame(item.frame)
        for (const { connection, joinedAt, player } of item.players) {
          assert.strictEqual(this.pendingJoins.get(connection), player, "a pending join enters")
          this.members.set(player, { connectionId: connection, joinedAt })
          this.#deliver(player, event)
        }
        for (const connection of item.listeners) {
          this.listeners.add(connection)
          this.#deliver(connection, event)
        }
        return
      }
      case "exit":
        if (this.members.get(item.player)?.connectionId !== item.connection) return
        this.members.delete(item.player)
        this.views.delete(item.player)
        return
      case "exitListeners":
        for (const connection of this.listeners) this.views.delete(connection)
        return this.listeners.clear()
      case "reply":
        this.replies.set(item.seq, "ok")
        return
      case "refuse":
        this.replies.set(item.seq, item.error.code)
        return
      case "end":
        this.over = true
        this.members.clear()
        this.listeners.clear()
        this.views.clear()
    }
  }

  #deliver(to: string, event: ChannelEvent): void {
    this.frames.push({ to, event })
    const next = applyEvent(this.views.get(to), event)
    if (next === undefined) this.views.delete(to)
    else this.views.set(to, next)
  }
}

export type Node = "n1" | "n2"

export class ChannelHarness {
  now = start
  actor: ChannelActor
  gateways: Readonly<Record<Node, Gateway>>
  closed = false
  /** Since when players of the environment wait for admission. */
  heldFrom: number | null = null
  writes = 0
  /** The players that the channel has reported as members. */
  readonly indexed = new Set<string>()
  #wakeAt = Number.POSITIVE_INFINITY
  #flushAt = Number.POSITIVE_INFINITY
  #connections = 0
  #seq = 0

  constructor(options: Partial<ChannelOptions> = {}) {
    this.gateways = { n1: new Gateway("n1"), n2: new Gateway("n2") }
    const managed = options.managed ?? options.ownerId === undefined
    const state = openChannel(
      { ...defaultOptions(environmentId, name, start), managed, ...options },
      start
    )
    this.actor = this.#activate(1)
    this.actor.open(state)
    this.watch("n1")
    this.watch("n2")
  }

  get state(): ChannelState {
    const { state } = this.actor
    if (state === undefined) throw new Error("The channel is over")
    return state
  }

  get members(): ReadonlyArray<string> {
    return membersOf(this.state).map(({ id }) => id)
  }

  #activate(epoch: number, state?: ChannelState, links: ReadonlyArray<StoredLink> = []) {
    this.#wakeAt = Number.POSITIVE_INFINITY
    this.#flushAt = Number.POSITIVE_INFINITY
    const runtime: ChannelRuntime = {
      now: () => this.now,
      hasLease: () => true,
      heldFrom: () => this.heldFrom,
      wakeAt: (millis) => {
        if (this.actor !== undefined && this.actor.epoch !== epoch) return
        this.#wakeAt = Math.min(this.#wakeAt, millis)
      },
      flushSoon: () => {
        this.#flushAt = Math.min(this.#flushAt, this.now + channelLimits.flushMillis)
      },
      changed: () => void (this.writes += 1),
      closed: () => void (this.closed = true),
      memberAdded: (playerId) => this.indexed.add(playerId),
      memberRemoved: (playerId) => this.indexed.delete(playerId)
    }
    return new ChannelActor({ id: `${environmentId}/${name}`, name, epoch, state, runtime, links })
  }

  /** Attaches the node, possibly again, with its members and listeners. */
  watch(node: Node): void {
    const gateway = this.gateways[node]
    const { epoch } = this.actor
    let attached = false
    const watcher: Watcher<ChannelOutput> = {
      send: (items) => {
        if (gateway.watcher !== undefined && gateway.watcher !== watcher) return
        if (items.length === 0) attached = true
        assert.isTrue(attached, "no output before the attachment is confirmed")
        gateway.receive(items)
      },
      end: () => {
        if (gateway.watcher === watcher) gateway.watcher = undefined
      }
    }
    gateway.watcher = watcher
    const players = Array.from(gateway.members, ([playerId, member]) => ({
      playerId,
      displayName: playerId,
      openChat: true,
      ...member
    }))
    this.actor.attach(node, watcher, gateway.epoch, players, gateway.listeners.size, 1)
    gateway.epoch = epoch
  }

  unwatch(node: Node): void {
    const { watcher } = this.gateways[node]
    this.gateways[node].watcher = undefined
    if (watcher !== undefined) this.actor.activation.detach(node, watcher)
  }

  /** Restores the channel from its row on another runner; nodes must watch it again. */
  move(): void {
    this.#restore(0, false)
  }

  /** Stops the runner of the channel, which wakes on another one after a time. */
  stop(awayMillis: number): void {
    this.actor.activation.retired = true
    this.#restore(awayMillis, true)
  }

  /** Players of the environment begin to wait for admission, or wait no more. */
  hold(isHeld: boolean): void {
    this.heldFrom = isHeld ? this.now : null
    this.actor.tick()
  }

  #restore(awayMillis: number, isLast: boolean): void {
    const { epoch, executed } = this.actor.activation
    const absent = isLast ? absentOf(this.state, this.now) : []
    const row = toRow(this.state, epoch, "n0", this.now, executed.stored(), absent)
    this.now += awayMillis
    this.actor.activation.fence()
    this.indexed.clear()
    for (const gateway of Object.values(this.gateways)) gateway.watcher = undefined
    const { links, state } = Effect.runSync(fromRow({ ...row }, this.now))
    this.actor = this.#activate(epoch + 1, state, links)
    for (const { id } of membersOf(state)) this.indexed.add(id)
    this.actor.reschedule()
  }

  connection(node: Node, player: string | null): string {
    this.#connections += 1
    const connectionId = `c${String(this.#connections).padStart(6, "0")}`
    this.gateways[node].pendingJoins.set(connectionId, player)
    return connectionId
  }

  /** Sends commands in one batch, and returns `ok` or the error code of the last. */
  send(node: Node, ...commands: ReadonlyArray<GatewayCommand>): string {
    const inputs = commands.map((command): ChannelInput => {
      this.#seq += 1
      return { seq: this.#seq, command }
    })
    this.actor.submit(node, inputs)
    this.flush()
    return this.gateways[node].replies.get(this.#seq) ?? "no reply"
  }

  joinCommand(player: string, node: Node = "n1", openChat = true): GatewayCommand {
    const connectionId = this.connection(node, player)
    return { t: "join", playerId: player, displayName: player, openChat, connectionId }
  }

  join(player: string, node: Node = "n1"): string {
    return this.send(node, this.joinCommand(player, node))
  }

  listen(node: Node = "n1"): string {
    const connectionId = this.connection(node, null)
    const listeners = this.gateways[node].listeners.size + 1
    return this.send(node, { t: "listen", connectionId, listeners })
  }

  leave(player: string, node: Node = "n1"): string {
    const connectionId = this.gateways[node].members.get(player)?.connectionId ?? "z"
    return this.send(node, { t: "leave", playerId: player, connectionId, reason: "left" })
  }

  drop(player: string, node: Node = "n1", drained = false): void {
    const gateway = this.gateways[node]
    const connectionId = gateway.members.get(player)?.connectionId
    if (connectionId === undefined) return
    gateway.members.delete(player)
    gateway.views.delete(player)
    this.send(node, { t: "disconnect", playerId: player, connectionId, drained })
  }

  sendMessage(player: string, node: Node = "n1"): string {
    return this.send(node, { t: "send", playerId: player, type: "x" })
  }

  moderate(
    player: string,
    op: ModerateOp,
    target: string,
    seconds?: number,
    node: Node = "n1"
  ): string {
    const command = { t: "moderate", playerId: player, op, target } as const
    return this.send(node, seconds === undefined ? command : { ...command, seconds })
  }

  /** Returns the error code of a call through the server API, or `ok`. */
  outcome(result: Result.Result<unknown, { readonly _tag: string }>): string {
    this.flush()
    return Result.isSuccess(result) ? "ok" : result.failure._tag
  }

  /** Flushes the outputs that a large channel delays for the flush window. */
  flush(): void {
    if (this.#flushAt > this.now + channelLimits.flushMillis) return
    this.#flushAt = Number.POSITIVE_INFINITY
    this.actor.watchers.flush()
  }

  /** Advances the clock, with a tick at each deadline of the channel. */
  wait(millis: number): void {
    const end = this.now + millis
    for (let ticks = 0; !this.closed && this.#wakeAt <= end; ticks++) {
      assert.isBelow(ticks, 10_000, "the ticks of the channel come to an end")
      this.now = Math.max(this.now, this.#wakeAt)
      this.#wakeAt = Number.POSITIVE_INFINITY
      this.actor.tick()
      this.flush()
    }
    this.now = end
  }
}

/** A channel of players, who joined in this order; the first is the owner. */
export const channelOf = (...players: ReadonlyArray<string>): ChannelHarness => {
  const harness = new ChannelHarness({ ownerId: players[0] ?? null })
  for (const player of players) {
    harness.join(player)
    harness.wait(1)
  }
  return harness
}

/** Asserts that every view equals the channel. Pending presence events are not in the views yet. */
export const checkViews = (harness: ChannelHarness): void => {
  if (harness.closed) return
  const { state } = harness
  const players = membersOf(state).map(playerView)
  for (const gateway of Object.values(harness.gateways)) {
    if (gateway.watcher === undefined) continue
    for (const [id, view] of gateway.views) {
      assert.deepStrictEqual(view.settings, settingsView(state.options), id)
      assert.sameDeepMembers(Array.from(view.members.values()), [...players], id)
      if (!gateway.members.has(id)) continue
      const { canSend, mutedUntil } = view
      assert.deepStrictEqual({ canSend, mutedUntil }, selfOf(state, id, harness.now), id)
    }
    const local = membersOf(state).filter(({ attachment }) => attachment?.node === gateway.node)
    const localIds = local.map(({ id }) => id)
    assert.sameMembers(localIds, Array.from(gateway.members.keys()))
    assert.strictEqual(state.listeners.get(gateway.node) ?? 0, gateway.listeners.size)
  }
}
