/**
 * Actor of a live channel: holds the state, lets the state machine decide, and sends outputs to the
 * watching nodes. A batch is one synchronous step. An event is encoded and sent to each node once.
 *
 * Consecutive joins of a batch take effect together. The others receive the presence events first,
 * then all joined connections receive the same snapshot text.
 */
import { HashMap, Result } from "effect"
import {
  type ChannelListFull,
  ChannelNotFound,
  NotInChannel,
  toWire,
  type VoiceInUse,
  type VoiceTooLarge,
  type WireError
} from "#rpc/errors/codes"
import type { ChannelChanges, ChannelEvent, ChannelReport } from "#rpc/channels/frames"
import { channelLimits } from "#rpc/channels/limits"
import { StoredActivation } from "../activation.ts"
import { Sink } from "../local-actors.ts"
import type { Watcher, Watchers } from "../watchers.ts"
import { holding } from "./absences.ts"
import { withBlocks } from "./delivery.ts"
import { isElsewhere, isKick, replayOf } from "./late-commands.ts"
import type { ChannelInput, ChannelOutput, GatewayCommand, PresentMember } from "./messages.ts"
import {
  type ModerationAct,
  audienceOf,
  type ChannelCommand,
  type ChannelState,
  type Decision,
  decided,
  type Emission,
  memberOf,
  nodesOf,
  reached,
  reportOf,
  type MessageContent
} from "./model.ts"
import { rename } from "./membership.ts"
import { moderate } from "./moderation.ts"
import { PendingJoins } from "./pending-joins.ts"
import { Presence } from "./presence.ts"
import { RejoinWait } from "./rejoin-wait.ts"
import { Removals } from "./removals.ts"
import type { ChannelActorOptions, ChannelRuntime } from "./runtime.ts"
import { close, decide, nextDeadline, publish, put, removePlayer, withNode } from "./state.ts"
import { ChannelView, entryOf, rejectedOutputs, removedOutputs } from "./view.ts"

const never = Number.POSITIVE_INFINITY

type Decide<E> = (state: ChannelState, now: number) => Result.Result<Decision, E>

export class ChannelActor {
  readonly id: string
  readonly activation: StoredActivation<ChannelOutput>
  readonly watchers: Watchers<ChannelOutput>
  state: ChannelState | undefined
  /** Signal after each step and after the fencing: the voice call follows the channel. */
  readonly steps = new Sink<[]>()
  /** Nodes that attach again to this activation, and may have missed events: those of the voice call, too. */
  readonly returns = new Sink<[node: string]>()
  readonly name: string
  readonly #runtime: ChannelRuntime
  readonly #view = new ChannelView()
  readonly #presence: Presence
  readonly #joins = new PendingJoins()
  readonly #removals = new Removals()
  readonly #rejoinWait = new RejoinWait()

  constructor(options: ChannelActorOptions) {
    this.id = options.id
    this.state = options.state
    this.name = options.name
    this.#runtime = options.runtime
    this.#presence = new Presence(options.name)
    const { epoch, links, runtime } = options
    this.activation = new StoredActivation(epoch, runtime, links, () => this.steps.send())
    this.watchers = this.activation.watchers
  }

  get epoch(): number {
    return this.activation.epoch
  }

  get fenced(): boolean {
    return this.activation.fenced
  }

  get environmentId(): string | undefined {
    return this.state?.options.environmentId
  }

  get memberIds(): Iterable<string> {
    return this.state === undefined ? [] : HashMap.keys(this.state.members)
  }

  /** Executes the commands of one node. */
  submit(node: string, inputs: ReadonlyArray<ChannelInput>): void {
    if (!this.activation.isActive || !this.watchers.has(node)) return
    const now = this.#runtime.now()
    for (const input of inputs) this.#input(node, input, now)
    this.#finishStep(now)
  }

  /** Sets the state of a new channel. */
  open(state: ChannelState): void {
    this.state = state
    this.reschedule()
  }

  put(changes: ChannelChanges): Result.Result<void, VoiceInUse | VoiceTooLarge | ChannelNotFound> {
    return this.#applyStep((state, now) => put(state, changes, now))
  }

  moderate(act: ModerationAct): Result.Result<void, ChannelListFull | ChannelNotFound> {
    return this.#applyStep((state, now) => moderate(state, act, now))
  }

  /** Removes a banned or deleted player, wherever its connection is. */
  removePlayer(playerId: string, reason: "banned" | "deleted"): void {
    this.#applyStep((state, now) => Result.succeed(removePlayer(state, playerId, reason, now)))
  }

  renamePlayer(playerId: string, displayName: string): void {
    this.#applyStep((state) => Result.succeed(rename(state, playerId, displayName)))
  }

  /** Sets whom a member has blocked. */
  setBlocks(playerId: string, blocks: ReadonlyArray<string>): void {
    this.#applyStep((state) =>
      decided(memberOf(state, playerId) === undefined ? state : withBlocks(state, playerId, blocks))
    )
  }

  close(reason: "deleted" | "feature_disabled"): void {
    this.#applyStep((state) => Result.succeed(close(state, reason)))
  }

  /** Sends a message from the server; returns the number of receiving sockets. */
  publish(message: MessageContent): Result.Result<number, ChannelNotFound> {
    return Result.map(
      this.#applyStep((state, now) => publish(state, message, now)),
      () => (this.state === undefined ? 0 : reached(this.state, (node) => this.watchers.has(node)))
    )
  }

  /** Sets how many members are in the voice call. The row does not contain it, so nothing is written. */
  setInCall(inCall: number): void {
    if (this.state === undefined || this.state.inCall === inCall) return
    this.state = { ...this.state, inCall }
  }

  report(): ChannelReport | undefined {
    return this.state === undefined ? undefined : reportOf(this.state, this.#runtime.now())
  }

  /**
   * Attaches a node with its members and listeners. A node that watched this activation before may
   * have missed events, so it gets a snapshot. A node that watched an older activation gets it when
   * all nodes had the time to bring their members back.
   */
  attach(
    node: string,
    watcher: Watcher<ChannelOutput>,
    lastEpoch: number,
    present: ReadonlyArray<PresentMember>,
    listeners: number,
    link?: number
  ): void {
    if (!this.activation.isActive || this.state === undefined) return watcher.end()
    const now = this.#runtime.now()
    const { epoch, executed } = this.activation
    executed.expire(now, this.watchers)
    this.activation.prepare(node, link)
    const hasMoved = lastEpoch !== 0 && lastEpoch !== epoch
    if (hasMoved && this.#rejoinWait.begin(now)) {
      this.#presence.forget()
      this.reschedule()
    }
    const rejected = this.#reconcileMembers(node, present, listeners, now)
    this.watchers.add(node, watcher)
    watcher.send([])
    for (const output of rejected) this.watchers.push(node, output)
    if (lastEpoch !== 0 && !this.#rejoinWait.isUnderWay) this.#sendSnapshots(node, now)
    if (lastEpoch === epoch) this.returns.send(node)
    this.#finishStep(now)
  }

  tick(): void {
    if (!this.activation.isActive || this.state === undefined) return
    const now = this.#runtime.now()
    for (const node of this.watchers.takeGone(now)) this.#decide({ t: "dropNode", node }, now)
    this.#decide({ t: "tick" }, now)
    if (now >= this.#rejoinWait.endsAt) {
      this.#rejoinWait.end()
      for (const node of this.watchers.nodes) this.#sendSnapshots(node, now)
    }
    if (now >= this.#refreshAt) this.activation.changed()
    this.#finishStep(now)
    this.reschedule()
  }

  /** Sets the timer for the next `tick`. */
  reschedule(): void {
    if (this.state === undefined) return
    const due = Math.min(nextDeadline(this.state), this.#refreshAt)
    this.activation.wakeAt(Math.min(due, this.#presence.dueAt, this.#rejoinWait.endsAt))
  }

  /** Time at which the row of an unmanaged channel is written again, to show that it is alive. */
  get #refreshAt(): number {
    return this.state?.options.managed === false ? this.activation.refreshAt : never
  }

  #applyStep<E>(act: Decide<E>): Result.Result<void, E | ChannelNotFound> {
    const now = this.#runtime.now()
    const result = this.#apply(act, now)
    this.#finishStep(now)
    return result
  }

  #input(node: string, input: ChannelInput, now: number): void {
    const { command, seq } = input
    const link = this.activation.executed.of(node)
    const enters = command.t === "join" || command.t === "listen"
    if (!enters) this.#enterAll(now)
    const isNew = link === undefined || link.accept(seq)
    const replay = isNew ? undefined : replayOf(this.state, input, link)
    const error = replay === undefined ? this.#execute(node, command, now) : replay.error
    if (isNew && error !== undefined) link?.refused(seq, error)
    if (error === undefined && seq <= 0) return
    const player = "playerId" in command ? command.playerId : null
    const output: ChannelOutput =
      error === undefined ? { kind: "reply", seq } : { kind: "refuse", seq, player, error }
    if (enters) this.#joins.addReply(node, output)
    else this.watchers.push(node, output)
  }

  /** Executes a command; returns the error if it is refused. */
  #execute(node: string, command: GatewayCommand, now: number): WireError | undefined {
    if (isElsewhere(this.state, node, command)) return toWire(new NotInChannel())
    const before = this.state
    const result = this.#decide(withNode(node, command), now)
    if (Result.isFailure(result)) return toWire(result.failure)
    // A kick changes no list, and must not be repeated after a move either.
    if (isKick(command) && this.state !== before) this.activation.changed()
    return undefined
  }

  /** Joins the members that a node holds; returns the outputs for those that are rejected. */
  #reconcileMembers(
    node: string,
    present: ReadonlyArray<PresentMember>,
    listeners: number,
    now: number
  ): ReadonlyArray<ChannelOutput> {
    const here = new Set(present.map(({ playerId }) => playerId))
    const members = this.state === undefined ? [] : HashMap.toValues(this.state.members)
    for (const { attachment, id: playerId } of members) {
      if (attachment?.node !== node || here.has(playerId)) continue
      const { connectionId } = attachment
      this.#decide({ t: "disconnect", playerId, connectionId }, now)
    }
    this.#decide({ t: "listeners", node, listeners }, now)
    const rejected = present.flatMap((player): ReadonlyArray<ChannelOutput> => {
      const reason = this.#removals.reasonOf(player.playerId)
      if (reason !== undefined) return removedOutputs(this.name, player, reason)
      const result = this.#decide({ t: "join", node, ...player }, now)
      return Result.isSuccess(result) ? [] : rejectedOutputs(this.name, player, result.failure)
    })
    this.#joins.dropEntries()
    return rejected
  }

  #sendSnapshots(node: string, now: number): void {
    if (this.state === undefined) return
    const outputs = this.#view.snapshots(this.state, node, now)
    for (const output of outputs) this.watchers.push(node, output)
  }

  #decide(command: ChannelCommand, now: number) {
    return this.#apply((state) => decide(state, command, now), now)
  }

  #apply<E>(act: Decide<E>, now: number): Result.Result<void, E | ChannelNotFound> {
    const before = this.state
    if (before === undefined || !this.activation.isActive) return Result.fail(new ChannelNotFound())
    const result = holding(act, this.#runtime.heldFrom(before.options.environmentId))(before, now)
    if (Result.isFailure(result)) return Result.fail(result.failure)
    const { emissions, state } = result.success
    this.state = state
    for (const emission of emissions) this.#emit(before, emission, now)
    if (state.closed !== null) {
      this.state = undefined
      this.#runtime.closed()
    } else if (state !== before) {
      if (state.options !== before.options || state.lists !== before.lists)
        this.activation.changed()
      this.reschedule()
    }
    return Result.succeed(undefined)
  }

  #emit(before: ChannelState, emission: Emission, now: number): void {
    switch (emission.kind) {
      case "all":
        return this.#broadcast(emission.event, null, emission.without)
      case "to":
        return this.#sendTo(before, emission.to, emission.event)
      case "listeners":
        return this.#broadcast(emission.event, [])
      case "joined":
      case "left":
        return this.#emitPresence(emission)
      case "enter": {
        const attachment = this.state && memberOf(this.state, emission.playerId)?.attachment
        if (attachment) this.#joins.add(entryOf(attachment, emission.playerId))
        return
      }
      case "listen":
        return this.#joins.add(entryOf(emission, null))
      case "exit": {
        const { connectionId: connection, node, playerId: player } = emission
        this.#enterAll(now)
        return this.watchers.push(node, { kind: "exit", player, connection })
      }
      case "exitListeners":
        return this.watchers.broadcast({ kind: "exitListeners" })
      case "end":
        for (const id of HashMap.keys(before.members)) this.#runtime.memberRemoved(id)
        return this.#end()
    }
  }

  /** Sends an event to all listeners, and to these members; null means all of them. */
  #broadcast(
    event: ChannelEvent,
    to: ReadonlyArray<string> | null = null,
    without: ReadonlyArray<string> = []
  ): void {
    const withheld = without.length === 0 ? {} : { without }
    const frame = JSON.stringify(event)
    this.watchers.broadcast({ kind: "event", to, listeners: true, ...withheld, frame })
  }

  #sendTo(before: ChannelState, to: ReadonlyArray<string>, event: ChannelEvent): void {
    const frame = JSON.stringify(event)
    const output: ChannelOutput = { kind: "event", to, listeners: false, frame }
    for (const node of nodesOf(before, to)) this.watchers.push(node, output)
  }

  #emitPresence(emission: Extract<Emission, { readonly kind: "joined" | "left" }>): void {
    this.#removals.record(emission)
    if (emission.kind === "joined") this.#runtime.memberAdded(emission.member.id)
    else this.#runtime.memberRemoved(emission.playerId)
    if (this.state === undefined || this.#rejoinWait.isUnderWay) return
    const event = this.#presence.eventOf(emission, audienceOf(this.state))
    if (event !== undefined) this.#broadcast(event)
  }

  /** Sends the collected joins their snapshots, then their replies. */
  #enterAll(now: number): void {
    const outputs = this.#joins.take(this.state, this.#view, now)
    for (const { node, output } of outputs) this.watchers.push(node, output)
  }

  /** Sends the outputs of a step: at once in a small channel, after the flush window in a large one. */
  #finishStep(now: number): void {
    const changes = this.state === undefined ? undefined : this.#presence.take(now, this.state)
    // Before the joins: their snapshots already contain these changes.
    if (changes !== undefined) this.#broadcast(changes)
    this.#enterAll(now)
    const { state } = this
    if (state !== undefined && this.#presence.dueAt !== never) this.reschedule()
    this.steps.send()
    if (state !== undefined && audienceOf(state) > channelLimits.largeAudience)
      this.#runtime.flushSoon()
    else this.watchers.flush()
  }

  #end(): void {
    this.watchers.broadcast({ kind: "end" })
    this.watchers.flush()
    this.watchers.clear()
    this.#presence.forget()
    this.#rejoinWait.end()
  }
}
