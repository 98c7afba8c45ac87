/**
 * A live room: holds the state, asks the state machine to decide, and tells the watching nodes. All
 * of it is synchronous, so a batch is one step that nothing can interleave. Each event is encoded to
 * JSON once, whoever hears it.
 */
import { Result } from "effect"
import { NotInRoom, RoomNotFound, toWire } from "#rpc/errors/codes"
import { rooms } from "#rpc/limits"
import type { CloseReason, JsonObject, RoomEvent } from "#rpc/rooms"
import {
  type Emission,
  isReachable,
  type JoiningPlayer,
  type RoomCommand,
  type RoomError,
  roomJoined,
  type RoomState
} from "./model.ts"
import { Attachments } from "../attachments.ts"
import type { Watcher } from "../output-queue.ts"
import type { RoomInput, RoomOutput } from "./messages.ts"
import { nextDeadline } from "./seats.ts"
import { refreshMillis } from "./snapshot.ts"
import { decide } from "./state.ts"
import { PendingWrites } from "./pending-writes.ts"

/** What the actor asks of its surroundings. */
export interface RoomRuntime {
  readonly now: () => number
  /** Is the room surely still this process's? */
  readonly hasLease: () => boolean
  /** Call `tick` at this time (Unix milliseconds), or earlier. */
  readonly wakeAt: (millis: number) => void
  /** The state is worth a snapshot. */
  readonly changed: () => void
  /** Answers wait until the state is written (or the row removed): call `saved` soon. */
  readonly flushSoon: () => void
  /** Can the room wake on another node while it lives here? */
  readonly shared: boolean
  /** The room is over. */
  readonly closed: (reason: CloseReason) => void
}

const absenceMillis = rooms.watchAbsenceSeconds * 1000

export class RoomActor {
  readonly id: string
  readonly epoch: number
  state: RoomState | undefined
  /** An epoch after which the room had a row, or would have one if it lived. */
  since: number
  /** A newer activation owns the room: this one is deaf and dumb. */
  fenced = false
  #retired = false
  readonly #port: RoomRuntime
  /** When the state was last worth a snapshot, or had to be written for being old. */
  #changedAt: number
  readonly #unsaved = new PendingWrites()
  readonly #watchers = new Map<
    string,
    { readonly watcher: Watcher<RoomOutput>; batch: Array<RoomOutput> }
  >()
  readonly attachments = new Attachments()
  /** Nodes with members that do not watch (any more), and since when. */
  readonly #absentNodes = new Map<string, number>()

  constructor(id: string, epoch: number, state: RoomState | undefined, port: RoomRuntime) {
    this.id = id
    this.epoch = epoch
    this.since = epoch
    this.state = state
    this.#port = port
    this.#changedAt = port.now()
  }

  /**
   * Does this attachment of the node hear what is told? A command of one that does not would go
   * without an answer, or come after what its node has said since.
   */
  watches(node: string, watch: number): boolean {
    return this.#watchers.has(node) && this.attachments.isLast(node, watch)
  }

  /** The commands of one node in one turn. */
  submit(node: string, inputs: ReadonlyArray<RoomInput>): void {
    if (!this.#acts) return
    const now = this.#port.now()
    this.#expect(node, now)
    for (const { seq, command } of inputs) {
      const result = this.#isElsewhere(node, command)
        ? Result.fail(new NotInRoom())
        : this.#decide(this.#placed(node, command), now)
      const player = command.playerId
      const answer: RoomOutput | undefined = Result.isFailure(result)
        ? { kind: "refuse", seq, player, error: toWire(result.failure) }
        : seq > 0
          ? { kind: "reply", seq, data: result.success }
          : undefined
      if (answer === undefined) continue
      if (this.#withholds(command, now)) this.#unsaved.withhold(node, answer)
      else this.#watchers.get(node)?.batch.push(answer)
    }
    this.#flush()
    if (this.#unsaved.waited) this.#port.flushSoon()
  }

  /** The state is about to be written: what `saved` wants to be told once it is. */
  beginWrite(): number {
    return this.#unsaved.beginWrite()
  }

  /** The state of so many changes is written, or the room that is over removed. */
  commitWrite(changes: number): void {
    const due = this.#unsaved.commitWrite(changes)
    if (due.length === 0 || !this.#acts) return
    for (const { answer, node } of due) this.#watchers.get(node)?.batch.push(answer)
    this.#flush()
  }

  /**
   * Seats joiningPlayers on the queue's word, as many as fit; they count as connected until their node
   * says otherwise. Answers who now has a seat.
   */
  seat(
    joiningPlayers: ReadonlyArray<JoiningPlayer>
  ): Result.Result<ReadonlyArray<string>, RoomError | RoomNotFound> {
    const now = this.#port.now()
    const result = this.#decide({ t: "seat", joiningPlayers }, now)
    for (const { node } of joiningPlayers) this.#expect(node, now)
    this.#flush()
    return Result.map(result, () =>
      joiningPlayers.map((joiningPlayer) => joiningPlayer.playerId).filter((id) => this.#seats(id))
    )
  }

  /** The room begins, with the seats it was opened with. */
  open(state: RoomState): void {
    this.state = state
    this.since = this.epoch
    this.expectNodes()
  }

  /** The activation ends: what there is can still be saved, but nothing is said or taken any more. */
  retire(): void {
    this.#retired = true
  }

  /** A newer activation owns the room: from now on this one says and takes nothing. */
  fence(): void {
    this.fenced = true
    this.dismiss()
  }

  /** Ends what the nodes hear: they ask where the room is now. */
  dismiss(): void {
    const watchers = Array.from(this.#watchers.values())
    this.#watchers.clear()
    for (const { watcher } of watchers) watcher.end()
  }

  /**
   * Starts telling a node. One that heard the room before has missed something: its members get the
   * room anew, and hear nothing before that.
   */
  attach(
    node: string,
    watcher: Watcher<RoomOutput>,
    heardEpoch: number,
    present: ReadonlyArray<JoiningPlayer>
  ): void {
    if (!this.#acts) return watcher.end()
    this.#watchers.delete(node)
    this.#absentNodes.delete(node)
    if (heardEpoch !== 0) this.#reconcileMembers(node, present)
    else this.#decide({ t: "expect", node }, this.#port.now())
    this.#watchers.set(node, { watcher, batch: [] })
    if (heardEpoch !== 0) this.#welcome(node, present)
    watcher.send([])
    this.#flush()
  }

  /** A node stopped watching; its members have until the absence is noticed to come back. */
  detach(node: string, watcher: Watcher<RoomOutput>): void {
    if (this.#watchers.get(node)?.watcher !== watcher) return
    this.#watchers.delete(node)
    this.#expect(node, this.#port.now())
  }

  /** After a wake: every node named by the snapshot is expected back. */
  expectNodes(): void {
    const now = this.#port.now()
    for (const member of this.state?.members.values() ?? []) {
      if (member.attachment !== null) this.#expect(member.attachment.node, now)
    }
    this.#reschedule()
  }

  tick(): void {
    if (!this.#acts) return
    const now = this.#port.now()
    for (const [node, since] of this.#absentNodes) {
      if (now < since + absenceMillis) continue
      this.#absentNodes.delete(node)
      this.#decide({ t: "dropNode", node }, now)
    }
    this.#decide({ t: "tick" }, now)
    if (now >= this.#changedAt + refreshMillis) this.#changed()
    this.#flush()
    this.#reschedule()
  }

  /** A player is out, wherever its connection is: the service has decided. */
  removePlayer(playerId: string, reason: "banned" | "deleted"): void {
    this.#decide({ t: "leave", playerId, reason }, this.#port.now())
    this.#flush()
  }

  /** Ends the room for its members. */
  close(reason: CloseReason): void {
    this.#decide({ t: "close", reason }, this.#port.now())
    this.#flush()
  }

  /** May this activation still speak for the room? One that may not, never may again. */
  get #acts(): boolean {
    if (!this.fenced && !this.#port.hasLease()) this.fence()
    return !this.fenced && !this.#retired
  }

  /**
   * May the answer not be given yet? Where rooms wake on other nodes, a seat that was given up must not
   * be there again when the runner dies; who asks twice is told no sooner that it is gone. And when
   * snapshots fail on this node alone, the room may wake elsewhere before it knows: all that was granted
   * until then would be forgotten, so nothing is granted after the promised second.
   */
  #withholds({ t }: RoomInput["command"], now: number): boolean {
    if (!this.#port.shared) return false
    return t === "leave" || this.#unsaved.millis(now) > rooms.snapshotDeadlineMillis
  }

  /**
   * Has the member come in through another node since, or gone there? What it said before comes too
   * late. Who is away can still leave.
   */
  #isElsewhere(node: string, { playerId, t }: RoomInput["command"]): boolean {
    if (t === "join" || t === "resume" || t === "disconnect") return false
    const member = this.state?.members.get(playerId)
    if (member === undefined || (member.attachment === null && t === "leave")) return false
    return member.attachment?.node !== node
  }

  #seats(playerId: string): boolean {
    return this.state?.members.has(playerId) === true
  }

  #placed(node: string, command: RoomInput["command"]): RoomCommand {
    return command.t === "join" || command.t === "resume" ? { ...command, node } : command
  }

  #expect(node: string, now: number): void {
    if (this.#watchers.has(node) || this.#absentNodes.has(node)) return
    this.#absentNodes.set(node, now)
    this.#reschedule()
  }

  /**
   * Members that the room does not know (any more) are seated again where there is a seat; those the
   * node lost are dropped, save those it has yet to bring in.
   */
  #reconcileMembers(node: string, present: ReadonlyArray<JoiningPlayer>): void {
    const now = this.#port.now()
    const here = new Set(present.map((member) => member.playerId))
    for (const member of this.state?.members.values() ?? []) {
      if (member.attachment?.node !== node || !isReachable(member) || here.has(member.id)) continue
      const { connectionId } = member.attachment
      this.#decide({ t: "disconnect", playerId: member.id, connectionId, replaced: false }, now)
    }
    for (const member of present) this.#decide({ t: "join", ...member }, now)
  }

  /**
   * The room as it is for those who have a seat, its end for those who have none. Those who are on a
   * newer connection elsewhere have it there.
   */
  #welcome(node: string, present: ReadonlyArray<JoiningPlayer>): void {
    const { state } = this
    const batch = this.#watchers.get(node)?.batch
    if (state === undefined || batch === undefined) return
    const lost: RoomEvent = { t: "room_closed", roomId: this.id, reason: "lost" }
    for (const { playerId } of present) {
      const member = state.members.get(playerId)
      if (member?.attachment?.node === node) {
        this.#enter(playerId, JSON.stringify(roomJoined(state, playerId, true)))
      } else if (member === undefined) {
        batch.push(
          { kind: "event", to: [playerId], except: null, frame: JSON.stringify(lost) },
          { kind: "exit", player: playerId }
        )
      }
    }
  }

  #decide(command: RoomCommand, now: number): Result.Result<JsonObject, RoomError | RoomNotFound> {
    const before = this.state
    if (before === undefined || before.closed !== null || !this.#acts) {
      return Result.fail(new RoomNotFound())
    }
    const result = decide(before, command, now)
    if (Result.isFailure(result)) return Result.fail(result.failure)
    const { state, emissions, data } = result.success
    this.state = state
    for (const emission of emissions) this.#emit(before, emission)
    if (state !== before) this.#settle(state)
    return Result.succeed(data)
  }

  #settle(state: RoomState): void {
    this.#unsaved.changed(this.#port.now())
    if (state.closed !== null) return this.#port.closed(state.closed)
    this.#changed()
    this.#reschedule()
  }

  #changed(): void {
    this.#changedAt = this.#port.now()
    this.#port.changed()
  }

  #reschedule(): void {
    if (this.state === undefined || this.state.closed !== null || this.fenced) return
    const absence = Math.min(...this.#absentNodes.values()) + absenceMillis
    const refresh = this.#changedAt + refreshMillis
    this.#port.wakeAt(Math.min(nextDeadline(this.state), absence, refresh))
  }

  #emit(before: RoomState, { event, except, to, membership: turn }: Emission): void {
    const frame = JSON.stringify(event)
    if (turn === "enter" && to !== null) {
      for (const id of to) this.#enter(id, frame)
      return
    }
    const item: RoomOutput = { kind: "event", to, except, frame }
    const nodes = to === null ? undefined : this.#nodesOf(to)
    for (const [node, watcher] of this.#watchers) {
      if (nodes === undefined || nodes.has(node)) watcher.batch.push(item)
    }
    if (turn === "exit" && except !== null) {
      const node = before.members.get(except)?.attachment?.node
      if (node !== undefined) {
        this.#watchers.get(node)?.batch.push({ kind: "exit", player: except })
      }
    }
  }

  #enter(player: string, frame: string): void {
    const attachment = this.state?.members.get(player)?.attachment
    if (attachment === undefined || attachment === null) return
    this.#watchers.get(attachment.node)?.batch.push({
      kind: "enter",
      player,
      connection: attachment.connectionId,
      frame
    })
  }

  #nodesOf(players: ReadonlyArray<string>): ReadonlySet<string> {
    const nodes = new Set<string>()
    for (const id of players) {
      const node = this.state?.members.get(id)?.attachment?.node
      if (node !== undefined) nodes.add(node)
    }
    return nodes
  }

  /** Tells each node what it has to hear of this step; the end of the room comes after everything. */
  #flush(): void {
    const over = this.state !== undefined && this.state.closed !== null && !this.#unsaved.waited
    for (const entry of this.#watchers.values()) {
      if (over) entry.batch.push({ kind: "end" })
      if (entry.batch.length === 0) continue
      const batch = entry.batch
      entry.batch = []
      entry.watcher.send(batch)
    }
    if (over) this.#watchers.clear()
  }
}
