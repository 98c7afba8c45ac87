/**
 * Actor of a live room: holds the state, lets the state machine decide, and sends outputs to the
 * watching nodes. A batch of commands is one synchronous step. The actor encodes an event to JSON
 * once for all receivers.
 */
import { Result } from "effect"
import { NotInRoom, RoomNotFound, toWire, Unavailable } from "#rpc/errors/codes"
import type { HeldSeat } from "#rpc/realtime"
import type { CloseReason } from "#rpc/rooms/events"
import type { JsonObject } from "#rpc/json"
import { StoredActivation } from "../activation.ts"
import type { LinkCommands, StoredLink } from "../executed-commands.ts"
import type { Watcher, Watchers } from "../watchers.ts"
import { snapshotDeadlineMillis } from "../write-behind.ts"
import { heldSeat } from "./held-seat.ts"
import { isElsewhere, isRestorable } from "./late-commands.ts"
import { commandOf, confirmed, isAct } from "./acts.ts"
import type { RoomInput, RoomOutput } from "./messages.ts"
import {
  type Emission,
  isReachable,
  type JoiningPlayer,
  type RoomCommand,
  type RoomError,
  roomJoined,
  type RoomState
} from "./model.ts"
import { isDurable, PendingWrites } from "./pending-writes.ts"
import type { RoomRuntime } from "./runtime.ts"
import { hasDropped, hold } from "./absences.ts"
import { nextDeadline } from "./seats.ts"
import { missedEnd } from "./removal.ts"
import { decide } from "./state.ts"

/** The command that the state machine decides for a command of this node. */
const roomCommand = (node: string, input: RoomInput["command"]) => {
  if (isAct(input)) return commandOf(input)
  return Result.succeed(
    input.t === "join" || input.t === "resume" ? { ...input, node } : (input satisfies RoomCommand)
  )
}

export class RoomActor {
  readonly id: string
  readonly activation: StoredActivation<RoomOutput>
  readonly watchers: Watchers<RoomOutput>
  state: RoomState | undefined
  /** Epoch after which the room had a row, or would have one if it lived. */
  since: number
  readonly #runtime: RoomRuntime
  readonly #pendingWrites: PendingWrites

  constructor(
    id: string,
    epoch: number,
    state: RoomState | undefined,
    runtime: RoomRuntime,
    links: ReadonlyArray<StoredLink> = [],
    since = epoch
  ) {
    this.id = id
    this.activation = new StoredActivation(epoch, runtime, links)
    this.watchers = this.activation.watchers
    this.since = since
    this.state = state
    this.#runtime = runtime
    this.#pendingWrites = new PendingWrites(runtime.clocks)
  }

  get epoch(): number {
    return this.activation.epoch
  }

  get fenced(): boolean {
    return this.activation.fenced
  }

  get environmentId(): string | undefined {
    return this.state?.settings.environmentId
  }

  get memberIds(): Iterable<string> {
    return this.state?.members.keys() ?? []
  }

  /** Executes the commands of one node; each at most once, however often the node sends it. */
  submit(node: string, inputs: ReadonlyArray<RoomInput>): void {
    if (!this.activation.isActive) return
    const now = this.#runtime.now()
    this.activation.expect(node, now)
    const link = this.activation.executed.of(node)
    const isLate = this.#pendingWrites.delayMillis > snapshotDeadlineMillis
    for (const input of inputs) {
      const { command, seq } = input
      const isNew = link === undefined || link.accept(seq)
      const reply = isNew ? this.#execute(node, input, now) : this.#repeat(node, input, link, now)
      if (reply === undefined) continue
      if (isNew && reply.kind === "refuse") link?.refused(seq, reply.error)
      if (this.#needsWrite(command, isLate)) this.#pendingWrites.defer(node, reply)
      else this.watchers.push(node, reply)
    }
    this.#flush()
    if (this.#pendingWrites.hasReplies) this.#runtime.flushSoon()
  }

  /**
   * The seat of a player, or null; undefined if this activation does not act for the room, which another
   * one may know better.
   */
  peek(playerId: string): HeldSeat | null | undefined {
    if (!this.activation.isActive || this.state === undefined) return undefined
    return heldSeat(this.state, playerId, this.#runtime.now())
  }

  /** Starts a write of the state. The result is the argument of `commitWrite`. */
  beginWrite(): number {
    return this.#pendingWrites.beginWrite()
  }

  /**
   * Records that the state with this many changes is written, to a table that began at this epoch.
   * For a closed room, it records that the row is removed.
   */
  commitWrite(changes: number, tableEpoch = this.since): void {
    this.since = Math.max(this.since, tableEpoch)
    const due = this.#pendingWrites.commitWrite(changes)
    if (due.length === 0 || !this.activation.isActive) return
    for (const { node, reply } of due) this.watchers.push(node, reply)
    this.#flush()
  }

  /**
   * Seats matched players, as many as fit. They count as connected until their node or the join
   * deadline says otherwise. Returns those who have a seat.
   */
  seat(
    joiningPlayers: ReadonlyArray<JoiningPlayer>
  ): Result.Result<ReadonlyArray<string>, RoomError | RoomNotFound> {
    const now = this.#runtime.now()
    const result = this.#decide({ t: "seat", joiningPlayers }, now)
    for (const { node } of joiningPlayers) this.activation.expect(node, now)
    this.#flush()
    return Result.map(result, () =>
      joiningPlayers.map(({ playerId }) => playerId).filter((id) => this.#hasSeat(id))
    )
  }

  /** Sets the state of a new room. */
  open(state: RoomState): void {
    this.state = state
    this.since = this.epoch
    for (const playerId of state.members.keys()) this.#runtime.memberAdded(playerId)
    this.expectNodes()
  }

  /**
   * Stops commands and outputs: the activation ends. The state can still be written. It must be if a player
   * dropped some time ago: the grace goes on from the time of the last snapshot.
   */
  retire(): void {
    this.activation.retired = true
    const isOld = this.#runtime.now() > this.activation.changedAt + snapshotDeadlineMillis
    if (isOld && this.state?.closed === null && hasDropped(this.state)) this.#runtime.changed()
  }

  /** Attaches a node. A node that watched before may have missed events, so it gets a snapshot. */
  attach(
    node: string,
    watcher: Watcher<RoomOutput>,
    lastEpoch: number,
    present: ReadonlyArray<JoiningPlayer>,
    link?: number
  ): void {
    if (!this.activation.isActive) return watcher.end()
    this.activation.prepare(node, link)
    if (lastEpoch !== 0) this.#reconcileMembers(node, present)
    else this.#decide({ t: "expect", node }, this.#runtime.now())
    this.watchers.add(node, watcher)
    if (lastEpoch !== 0) this.#sendSnapshots(node, present)
    watcher.send([])
    this.#flush()
  }

  /** Expects every node that the snapshot names to attach again. */
  expectNodes(): void {
    const now = this.#runtime.now()
    for (const member of this.state?.members.values() ?? []) {
      if (member.attachment !== null) this.activation.expect(member.attachment.node, now)
    }
    this.#reschedule()
  }

  tick(): void {
    if (!this.activation.isActive) return
    const now = this.#runtime.now()
    this.activation.executed.expire(now, this.watchers)
    for (const node of this.watchers.takeGone(now)) this.#decide({ t: "dropNode", node }, now)
    this.#decide({ t: "tick" }, now)
    if (now >= this.activation.refreshAt) this.activation.changed()
    this.#flush()
    this.#reschedule()
  }

  /** Applies an act of a server. */
  moderate(
    act: Omit<Extract<RoomCommand, { t: "moderate" }>, "by" | "t">
  ): Result.Result<JsonObject, RoomError | RoomNotFound> {
    const result = this.#decide({ t: "moderate", by: "server", ...act }, this.#runtime.now())
    this.#flush()
    return result
  }

  /** Removes a banned or deleted player, wherever its connection is. */
  removePlayer(playerId: string, reason: "banned" | "deleted"): void {
    this.#decide({ t: "leave", playerId, reason }, this.#runtime.now())
    this.#flush()
  }

  /** Sets the display name of a member. */
  renamePlayer(playerId: string, displayName: string): void {
    this.#decide({ t: "rename", playerId, displayName }, this.#runtime.now())
    this.#flush()
  }

  /** Sets whom a member has blocked. */
  setBlocks(playerId: string, blocks: ReadonlyArray<string>): void {
    this.#decide({ t: "block", playerId, blocks }, this.#runtime.now())
    this.#flush()
  }

  close(reason: CloseReason): void {
    this.#decide({ t: "close", reason }, this.#runtime.now())
    this.#flush()
  }

  /** Executes a command; returns its reply, if there is one. */
  #execute(node: string, { command, seq }: RoomInput, now: number): RoomOutput | undefined {
    const result = isElsewhere(this.state, node, command)
      ? Result.fail(new NotInRoom())
      : Result.flatMap(roomCommand(node, command), (decidable) => this.#decide(decidable, now))
    if (Result.isFailure(result)) {
      return { kind: "refuse", seq, player: command.playerId, error: toWire(result.failure) }
    }
    const data = isAct(command) ? confirmed(result.success) : result.success
    return seq > 0 ? { kind: "reply", seq, data } : undefined
  }

  /** Replies to a command that was executed before. */
  #repeat(node: string, input: RoomInput, link: LinkCommands, now: number): RoomOutput | undefined {
    const { command, seq } = input
    const known = link.errorOf(seq)
    if (known === undefined && isRestorable(this.state, command)) {
      return this.#execute(node, input, now)
    }
    if (seq <= 0) return undefined
    // A member that has come in and gone since has no seat to report.
    const error = known ?? (command.t === "join" ? toWire(new Unavailable()) : undefined)
    return error === undefined
      ? { kind: "reply", seq, data: {} }
      : { kind: "refuse", seq, player: command.playerId, error }
  }

  /**
   * Whether the reply must wait until the state is written. A seat given up must not come back when the
   * runner dies, nor a player who was removed. And what a reply grants after the promised second, another
   * activation may not forget.
   */
  #needsWrite(command: RoomInput["command"], isLate: boolean): boolean {
    if (isDurable(this.state?.settings, command.t)) return true
    return this.#runtime.shared && (command.t === "leave" || isAct(command) || isLate)
  }

  #hasSeat(playerId: string): boolean {
    return this.state?.members.has(playerId) === true
  }

  /**
   * Seats members again that the room does not know (any more), where a seat is free. Disconnects the
   * members that the node lost, except those whose join deadline is still to come.
   */
  #reconcileMembers(node: string, present: ReadonlyArray<JoiningPlayer>): void {
    const now = this.#runtime.now()
    const here = new Set(present.map((member) => member.playerId))
    for (const member of this.state?.members.values() ?? []) {
      if (member.attachment?.node !== node || !isReachable(member) || here.has(member.id)) continue
      const { connectionId } = member.attachment
      this.#decide({ t: "disconnect", playerId: member.id, connectionId, replaced: false }, now)
    }
    for (const member of present) this.#decide({ t: "join", ...member }, now)
  }

  /**
   * Sends the room to the node's members, and its end to those without a seat. A player on a newer
   * connection elsewhere receives the room there.
   */
  #sendSnapshots(node: string, present: ReadonlyArray<JoiningPlayer>): void {
    const { state } = this
    if (state === undefined) return
    for (const { playerId } of present) {
      const member = state.members.get(playerId)
      if (member?.attachment?.node === node) {
        this.#enter(playerId, JSON.stringify(roomJoined(state, playerId, true)))
      } else if (member === undefined) {
        for (const event of missedEnd(state, playerId)) {
          const frame = JSON.stringify(event)
          this.watchers.push(node, { kind: "event", to: [playerId], except: null, frame })
        }
        this.watchers.push(node, { kind: "exit", player: playerId })
      }
    }
  }

  #decide(command: RoomCommand, now: number): Result.Result<JsonObject, RoomError | RoomNotFound> {
    const before = this.state
    if (before === undefined || before.closed !== null || !this.activation.isActive) {
      return Result.fail(new RoomNotFound())
    }
    const heldFrom = this.#runtime.heldFrom(before.settings.environmentId)
    const result = decide(hold(before, heldFrom, now), command, now)
    if (Result.isFailure(result)) return Result.fail(result.failure)
    const { emissions, data } = result.success
    const state = hold(result.success.state, heldFrom, now)
    this.state = state
    this.#reportMembers(before.members, state.members)
    for (const emission of emissions) this.#emit(before, emission)
    if (state !== before) this.#stateChanged(state)
    return Result.succeed(data)
  }

  /** Reports new and removed members. No command both adds and removes members. */
  #reportMembers(before: RoomState["members"], after: RoomState["members"]): void {
    if (before.size === after.size) return
    for (const id of after.keys()) if (!before.has(id)) this.#runtime.memberAdded(id)
    for (const id of before.keys()) if (!after.has(id)) this.#runtime.memberRemoved(id)
  }

  #stateChanged(state: RoomState): void {
    this.#pendingWrites.changed()
    if (state.closed !== null) return this.#runtime.closed(state.closed)
    this.activation.changed()
    this.#reschedule()
  }

  #reschedule(): void {
    if (this.state === undefined || this.state.closed !== null) return
    this.activation.wakeAt(Math.min(nextDeadline(this.state), this.activation.refreshAt))
  }

  #emit(before: RoomState, { event, except, to, membership, without = [] }: Emission): void {
    const frame = JSON.stringify(event)
    if (membership === "enter" && to !== null) {
      for (const id of to) this.#enter(id, frame)
      return
    }
    const withheld = without.length === 0 ? {} : { without }
    const output: RoomOutput = { kind: "event", to, except, ...withheld, frame }
    if (to === null) this.watchers.broadcast(output)
    else for (const node of this.#nodesOf(to, before)) this.watchers.push(node, output)
    if (membership === "exit" && except !== null) {
      const node = before.members.get(except)?.attachment?.node
      if (node !== undefined) this.watchers.push(node, { kind: "exit", player: except })
    }
  }

  #enter(player: string, frame: string): void {
    const attachment = this.state?.members.get(player)?.attachment
    if (attachment === undefined || attachment === null) return
    const { connectionId: connection, node } = attachment
    this.watchers.push(node, { kind: "enter", player, connection, frame })
  }

  /** The nodes of these players; of one who is leaving, the one that it had. */
  #nodesOf(players: ReadonlyArray<string>, { members: before }: RoomState): ReadonlySet<string> {
    const nodes = new Set<string>()
    for (const id of players) {
      const node = (this.state?.members.get(id) ?? before.get(id))?.attachment?.node
      if (node !== undefined) nodes.add(node)
    }
    return nodes
  }

  /** Sends each node the outputs of this step. `end` follows the last reply of a closed room. */
  #flush(): void {
    const isOver =
      this.state !== undefined && this.state.closed !== null && !this.#pendingWrites.hasReplies
    if (isOver) this.watchers.broadcast({ kind: "end" })
    this.watchers.flush()
    if (isOver) this.watchers.clear()
  }
}
