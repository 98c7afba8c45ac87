/**
 * A live channel: holds the state, asks the state machine to decide, and tells the watching nodes. A
 * batch is one synchronous step. An event is encoded once and sent to each node once.
 */
import { HashMap, Result } from "effect"
import {
  ChannelForbidden,
  type ChannelListFull,
  ChannelNotFound,
  NotInChannel,
  toWire,
  type VoiceInUse,
  type VoiceTooLarge
} from "#rpc/errors/codes"
import type { ChannelChanges, ChannelEvent, ChannelReport } from "#rpc/channels"
import { channels as limits } from "#rpc/limits"
import type { Watcher } from "../output-queue.ts"
import {
  type ModerationAct,
  audienceOf,
  type ChannelCommand,
  type ChannelState,
  type Decision,
  type Emission,
  memberOf,
  reached,
  reportOf
} from "./model.ts"
import { moderate } from "./moderation.ts"
import { Watchers } from "./watchers.ts"
import type { ChannelRuntime } from "./runtime.ts"
import { Presence } from "./presence.ts"
import type { ChannelInput, ChannelOutput, GatewayCommand, PresentMember } from "./messages.ts"
import { refreshMillis } from "./snapshot.ts"
import { close, decide, removePlayer, nextDeadline, placed, publish, put } from "./state.ts"
import { ChannelView, type Entry, notTakenBack } from "./view.ts"

const never = Number.POSITIVE_INFINITY

type Decide<E> = (state: ChannelState, now: number) => Result.Result<Decision, E>

export class ChannelActor {
  readonly id: string
  readonly epoch: number
  readonly watchers = new Watchers()
  state: ChannelState | undefined
  /** A newer activation owns the channel: this one is deaf and dumb. */
  fenced = false
  /** The activation ends: what there is can still be saved, but nothing is said or taken any more. */
  retired = false
  readonly #name: string
  readonly #port: ChannelRuntime
  readonly #view = new ChannelView()
  readonly #presence: Presence
  /** Who comes in with this batch, and the replies to be told after that. */
  #entries: Array<Entry> = []
  #replies: Array<{ readonly node: string; readonly item: ChannelOutput }> = []
  /** When what is stored last changed, or had to be written for being old. */
  #changedAt: number
  /** After a move, members gather until then. */
  #gatherUntil: number | undefined
  #gathered = false

  constructor(options: {
    readonly id: string
    readonly name: string
    readonly epoch: number
    readonly state: ChannelState | undefined
    readonly port: ChannelRuntime
  }) {
    this.id = options.id
    this.epoch = options.epoch
    this.state = options.state
    this.#name = options.name
    this.#port = options.port
    this.#presence = new Presence(options.name)
    this.#changedAt = options.port.now()
  }

  /** The commands of one node in one turn. */
  submit(node: string, inputs: ReadonlyArray<ChannelInput>): void {
    if (!this.#acts || !this.watchers.has(node)) return
    const now = this.#port.now()
    for (const input of inputs) this.#input(node, input, now)
    this.#settle(now)
  }

  /** The channel begins. */
  open(state: ChannelState): void {
    this.state = state
    this.reschedule()
  }

  put(changes: ChannelChanges): Result.Result<void, VoiceInUse | VoiceTooLarge | ChannelNotFound> {
    return this.#serve((state, now) => put(state, changes, now))
  }

  moderate(act: ModerationAct): Result.Result<void, ChannelListFull | ChannelNotFound> {
    return this.#serve((state, now) => moderate(state, act, now))
  }

  /** Removes a banned or deleted player. */
  removePlayer(playerId: string, reason: "banned" | "deleted"): void {
    this.#serve((state, now) => Result.succeed(removePlayer(state, playerId, reason, now)))
  }

  close(reason: "deleted" | "feature_disabled"): void {
    this.#serve((state) => Result.succeed(close(state, reason)))
  }

  /** A message from the server; answers to how many sockets it goes. */
  publish(message: {
    readonly type: string
    readonly data?: unknown
  }): Result.Result<number, ChannelNotFound> {
    return Result.map(
      this.#serve((state, now) => publish(state, message, now)),
      () => (this.state === undefined ? 0 : reached(this.state, (node) => this.watchers.has(node)))
    )
  }

  report(): ChannelReport | undefined {
    return this.state === undefined ? undefined : reportOf(this.state, this.#port.now())
  }

  /** A newer activation owns the channel: from now on this one says and takes nothing. */
  fence(): void {
    this.fenced = true
    for (const watcher of this.watchers.clear()) watcher.end()
  }

  /** Attaches a node with the members and listeners it holds. */
  attach(
    node: string,
    watcher: Watcher<ChannelOutput>,
    heardEpoch: number,
    present: ReadonlyArray<PresentMember>,
    listeners: number
  ): void {
    if (!this.#acts || this.state === undefined) return watcher.end()
    const now = this.#port.now()
    this.watchers.remove(node)
    if (heardEpoch !== 0 && heardEpoch !== this.epoch) this.#gather(now)
    const refused = this.#reconcileMembers(node, present, listeners, now)
    this.watchers.add(node, watcher)
    watcher.send([])
    for (const item of refused) this.watchers.push(node, item)
    if (heardEpoch !== 0 && this.#gatherUntil === undefined) this.#tellAnew(node, now)
    this.#settle(now)
  }

  /** A node stopped watching; its members have until the absence is noticed to come back. */
  detach(node: string, watcher: Watcher<ChannelOutput>): void {
    if (!this.watchers.hears(node, watcher)) return
    this.watchers.remove(node)
    if (this.state === undefined) return
    this.watchers.expect(node, this.#port.now())
    this.reschedule()
  }

  tick(): void {
    if (!this.#acts || this.state === undefined) return
    const now = this.#port.now()
    for (const node of this.watchers.takeGone(now)) this.#decide({ t: "dropNode", node }, now)
    this.#decide({ t: "tick" }, now)
    if (this.#gatherUntil !== undefined && now >= this.#gatherUntil) {
      this.#gatherUntil = undefined
      for (const node of this.watchers.names) this.#tellAnew(node, now)
    }
    if (now >= this.#refreshAt) this.#changed()
    this.#settle(now)
    this.reschedule()
  }

  flush(): void {
    this.watchers.flush()
  }

  /** Asks to be woken when there is something to do. */
  reschedule(): void {
    if (this.state === undefined || this.fenced) return
    const due = Math.min(nextDeadline(this.state), this.watchers.dueAt, this.#refreshAt)
    this.#port.wakeAt(Math.min(due, this.#presence.dueAt, this.#gatherUntil ?? never))
  }

  /** May this activation still speak for the channel? One that may not, never may again. */
  get #acts(): boolean {
    if (!this.fenced && !this.#port.hasLease()) this.fence()
    return !this.fenced && !this.retired
  }

  /** The row of a channel of players is written now and then, to say that it is alive. */
  get #refreshAt(): number {
    return this.state?.options.managed === false ? this.#changedAt + refreshMillis : never
  }

  #serve<E>(act: Decide<E>): Result.Result<void, E | ChannelNotFound> {
    const now = this.#port.now()
    const result = this.#apply(act, now)
    this.#settle(now)
    return result
  }

  #input(node: string, { command, seq }: ChannelInput, now: number): void {
    const enters = command.t === "join" || command.t === "listen"
    if (!enters) this.#letIn(now)
    const result = this.#isElsewhere(node, command)
      ? Result.fail(new NotInChannel())
      : this.#decide(placed(node, command), now)
    if (Result.isFailure(result)) {
      const player = "playerId" in command ? command.playerId : null
      this.#answer(node, enters, { kind: "refuse", seq, player, error: toWire(result.failure) })
    } else if (seq > 0) {
      this.#answer(node, enters, { kind: "reply", seq })
    }
  }

  #answer(node: string, enters: boolean, item: ChannelOutput): void {
    if (enters) this.#replies.push({ node, item })
    else this.watchers.push(node, item)
  }

  /** Has the member come in through another node since? What it said before comes too late. */
  #isElsewhere(node: string, command: GatewayCommand): boolean {
    if (command.t !== "send" && command.t !== "moderate") return false
    const member = this.state === undefined ? undefined : memberOf(this.state, command.playerId)
    return member !== undefined && member.attachment?.node !== node
  }

  /** Members are on their way back: until they are here, nobody is told who comes and goes. */
  #gather(now: number): void {
    if (this.#gathered) return
    this.#gathered = true
    this.#gatherUntil = now + limits.rejoinMillis
    this.#presence.forget()
    this.reschedule()
  }

  /** The members a node holds are in; answers what those hear whom the channel does not take. */
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
    const refused = present.flatMap((player): ReadonlyArray<ChannelOutput> => {
      if (this.watchers.takeOut(player.connectionId)) {
        return notTakenBack(this.#name, player, new ChannelForbidden())
      }
      const result = this.#decide({ t: "join", node, ...player }, now)
      return Result.isSuccess(result) ? [] : notTakenBack(this.#name, player, result.failure)
    })
    // They are in already, where they are.
    this.#entries = []
    return refused
  }

  #tellAnew(node: string, now: number): void {
    if (this.state === undefined) return
    for (const item of this.#view.anew(this.state, node, now)) this.watchers.push(node, item)
  }

  #decide(command: ChannelCommand, now: number) {
    return this.#apply((state) => decide(state, command, now), now)
  }

  #apply<E>(act: Decide<E>, now: number): Result.Result<void, E | ChannelNotFound> {
    const before = this.state
    if (before === undefined || !this.#acts) return Result.fail(new ChannelNotFound())
    const result = act(before, now)
    if (Result.isFailure(result)) return Result.fail(result.failure)
    const { emissions, state } = result.success
    this.state = state
    for (const emission of emissions) this.#emit(before, emission, now)
    if (state.closed !== null) {
      this.state = undefined
      this.#port.closed()
    } else if (state !== before) {
      if (state.options !== before.options || state.lists !== before.lists) this.#changed()
      this.reschedule()
    }
    return Result.succeed(undefined)
  }

  #changed(): void {
    this.#changedAt = this.#port.now()
    this.#port.changed()
  }

  #emit(before: ChannelState, emission: Emission, now: number): void {
    switch (emission.kind) {
      case "all":
        return this.#tellAll(emission.event)
      case "to":
        return this.#tellThese(before, emission.to, emission.event)
      case "listeners": {
        const frame = JSON.stringify(emission.event)
        return this.watchers.everywhere({ kind: "event", to: [], listeners: true, frame })
      }
      case "joined":
      case "left":
        return this.#tellPresence(emission)
      case "enter": {
        const { playerId } = emission
        const member = this.state === undefined ? undefined : memberOf(this.state, playerId)
        if (member?.attachment) this.#entries.push({ ...member.attachment, playerId })
        return
      }
      case "listen": {
        const { connectionId, node } = emission
        this.#entries.push({ node, connectionId, playerId: null })
        return
      }
      case "exit": {
        const { connectionId: connection, node, playerId: player } = emission
        this.#letIn(now)
        return this.watchers.exit(node, player, connection)
      }
      case "exitListeners":
        return this.watchers.everywhere({ kind: "exitListeners" })
      case "end":
        return this.#end()
    }
  }

  #tellAll(event: ChannelEvent): void {
    this.watchers.everywhere({
      kind: "event",
      to: null,
      listeners: true,
      frame: JSON.stringify(event)
    })
  }

  #tellThese(before: ChannelState, to: ReadonlyArray<string>, event: ChannelEvent): void {
    const item: ChannelOutput = {
      kind: "event",
      to,
      listeners: false,
      frame: JSON.stringify(event)
    }
    const nodes = new Set(to.map((player) => memberOf(before, player)?.attachment?.node))
    for (const node of nodes) if (node !== undefined) this.watchers.push(node, item)
  }

  #tellPresence(emission: Extract<Emission, { readonly kind: "joined" | "left" }>): void {
    if (this.state === undefined || this.#gatherUntil !== undefined) return
    const audience = audienceOf(this.state)
    const event =
      emission.kind === "joined"
        ? this.#presence.joined(emission.member, audience)
        : this.#presence.left(emission.playerId, emission.reason, audience)
    if (event !== undefined) this.#tellAll(event)
  }

  /** Those who have come in since get the channel as it is, then their replies. */
  #letIn(now: number): void {
    const entries = this.#entries
    const replies = this.#replies
    if (entries.length === 0 && replies.length === 0) return
    this.#entries = []
    this.#replies = []
    const { state } = this
    if (state !== undefined) {
      const byNode = Map.groupBy(entries, ({ node }) => node)
      for (const [node, here] of byNode) {
        for (const item of this.#view.enter(state, here, now)) this.watchers.push(node, item)
      }
    }
    for (const { item, node } of replies) this.watchers.push(node, item)
  }

  #settle(now: number): void {
    const news = this.state === undefined ? undefined : this.#presence.take(now)
    // Those who come in now have it in what they get.
    if (news !== undefined) this.#tellAll(news)
    this.#letIn(now)
    const { state } = this
    if (state === undefined) return this.watchers.flush()
    if (this.#presence.dueAt !== never) this.reschedule()
    if (audienceOf(state) > limits.largeAudience) this.#port.flushSoon()
    else this.watchers.flush()
  }

  #end(): void {
    this.watchers.everywhere({ kind: "end" })
    this.watchers.flush()
    this.watchers.clear()
    this.#presence.forget()
    this.#gatherUntil = undefined
  }
}
