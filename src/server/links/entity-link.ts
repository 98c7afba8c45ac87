/**
 * Link from this node to one entity, wherever it lives: commands leave in one batch per flush, outputs
 * arrive through one stream per node. When the entity moves, the stream ends and the link attaches
 * again with back-off; a bounded number of commands waits meanwhile. Every command has a number, in the
 * order of sending. A command whose outcome is unknown is sent again under its number if the entity
 * executes it only once, and fails as `unavailable` otherwise.
 *
 * Each kind of entity has a subclass, which says how to reach it and what its outputs do.
 */
import { Cause, Clock, Effect, Exit, Fiber, Option, Stream } from "effect"
import { type CodedError, Unavailable } from "#rpc/errors/codes"
import type { WatchedActor } from "#entities/live-entity"
import type { OutputBatch } from "#entities/output-queue"
import type { FlushScheduler } from "#server/platform/flush"
import { monotonicMillis } from "#entities/monotonic"
import * as State from "./link-state.ts"

const inputBatchMax = 4096
export const detachedInputsMax = 1024

/** The outcome of a command. */
export type CommandResult<Data> =
  | { readonly ok: true; readonly data: Data }
  | { readonly ok: false; readonly error: CodedError }

export type ReplyCallback<Data> = (result: CommandResult<Data>) => void

/** A command on its way and its number; the sender of a negative number wants no reply. */
export interface Numbered<Command> {
  readonly seq: number
  readonly command: Command
}

/** An entity that takes commands without a call. */
export interface DirectTarget<Command> {
  readonly submit: (node: string, inputs: ReadonlyArray<Numbered<Command>>) => void
}

/** Dependencies of a link on its node. */
export interface NodeContext {
  readonly node: string
  readonly scheduler: FlushScheduler
  /** Numbers the links of this node and their attachments, counting up. */
  readonly nextAttachment: () => number
  /** Returns a number in [0, 1). */
  readonly random: () => number
  /** Waits for a slot in which a link that lost its entity may attach again; the result releases it. */
  readonly reattachment: Effect.Effect<() => void>
  readonly run: (effect: Effect.Effect<void>) => Fiber.Fiber<void>
}

/** The entity that a link leads to, and how it reaches it. */
export interface LinkOptions<Client, Local> {
  readonly id: string
  readonly environmentId: string
  /** The entity's name in its environment. */
  readonly name: string
  readonly client: Client
  /** The registry of the entities on this node. */
  readonly local: Local
  readonly context: NodeContext
}

interface Pending<Command, Data> {
  readonly command: Command
  readonly onReply: ReplyCallback<Data>
}

const errorOf = (exit: Exit.Exit<void, CodedError>): CodedError | undefined =>
  Exit.isSuccess(exit) ? undefined : Option.getOrUndefined(Cause.findErrorOption(exit.cause))

export abstract class EntityLink<
  Command,
  Output,
  Data,
  Options extends LinkOptions<
    unknown,
    { readonly actors: ReadonlyMap<string, WatchedActor<Numbered<Command>, Output>> }
  >
> {
  protected readonly options: Options
  protected readonly context: NodeContext
  /** The number of this link, unique on its node: the commands of another link have other numbers. */
  protected readonly link: number
  readonly #pending = new Map<number, Pending<Command, Data>>()
  #queued: Array<Numbered<Command>> = []
  #seq = 0
  #state: State.LinkState = State.initialState
  #closeStream: () => void = () => undefined
  #releaseSlot: () => void = () => undefined
  #onEnded: () => void = () => undefined
  #fiber: Fiber.Fiber<void> | undefined

  constructor(options: Options) {
    this.options = options
    this.context = options.context
    this.link = options.context.nextAttachment()
  }

  get environmentId(): string {
    return this.options.environmentId
  }

  get name(): string {
    return this.options.name
  }

  /** The entity, if it lives on this node or a runner link leads to it. */
  protected directTarget(): DirectTarget<Command> | undefined {
    const actor = this.options.local.actors.get(this.options.id)
    const isHere = actor?.activation.accepts(this.context.node, this.attachment) === true
    return isHere ? actor : undefined
  }

  /** Sends commands in a call; its number is greater than that of the call before. */
  protected abstract call(
    inputs: ReadonlyArray<Numbered<Command>>,
    call: number
  ): Effect.Effect<void, unknown>

  /** Attaches to the entity; `epoch` is the activation last attached to, 0 for none. */
  protected abstract watch(epoch: number): Stream.Stream<OutputBatch<Output>, CodedError>

  /** Handles a batch of outputs, which is not empty. */
  protected abstract handle(outputs: ReadonlyArray<Output>): void

  /**
   * Whether the command may be sent again, in the order of the numbers, when its outcome is
   * unknown.
   */
  protected abstract isRepeatable(command: Command): boolean

  /** The command as it is sent again: what has changed since then must not be taken back. */
  protected renewed(command: Command): Command {
    return command
  }

  /** Whether anybody on this node uses the link. */
  protected abstract isInUse(): boolean

  /** Most commands that may wait to be sent. */
  protected get waitingMax(): number {
    return detachedInputsMax
  }

  /** Handles an attachment. The link may call it twice for one attachment. */
  protected onAttached(): void {}

  /** Handles an entity that does not exist. */
  protected onLost(error: CodedError): void {
    this.end(error)
  }

  /** Starts to attach; `onEnded` is called once, when the link has ended. */
  start(onEnded: () => void): void {
    this.#onEnded = onEnded
    this.#fiber = this.context.run(this.#stayAttached())
  }

  get attached(): boolean {
    return this.#state.tag === "attached"
  }

  get ended(): boolean {
    return this.#state.tag === "ended"
  }

  /** The number of the newest attachment. */
  protected get attachment(): number {
    return this.#state.attachment
  }

  /** The epoch of the activation that the link last received from; 0 for none. */
  get epoch(): number {
    return this.#state.epoch
  }

  /** Sends a command; without `onReply`, only an error comes back, as an output. */
  send(command: Command, onReply?: ReplyCallback<Data>): void {
    const state = this.#state
    if (state.tag === "ended" || this.#queued.length >= this.waitingMax) {
      const error = state.tag === "ended" ? state.error : new Unavailable()
      onReply?.({ ok: false, error })
      return
    }
    this.#seq += 1
    const seq = onReply === undefined ? -this.#seq : this.#seq
    if (onReply !== undefined) this.#pending.set(seq, { command, onReply })
    this.#queued.push({ seq, command })
    this.context.scheduler.scheduleInput(this)
  }

  /** Sends commands before those that wait, without replies. Their number is bounded by the caller. */
  protected sendFirst(commands: ReadonlyArray<Command>): void {
    const first = commands.map((command) => ({ seq: -++this.#seq, command }))
    this.#queued = [...first, ...this.#queued]
    this.context.scheduler.scheduleInput(this)
  }

  /** Sends a command and waits for the reply. */
  request(command: Command): Effect.Effect<Data, CodedError> {
    return Effect.callback((resume) => {
      this.send(command, (result) =>
        resume(result.ok ? Effect.succeed(result.data) : Effect.fail(result.error))
      )
    })
  }

  /** Submits the queued commands: directly where possible, else in one call at a time. */
  flush(): void {
    const state = this.#state
    if (state.tag !== "attached" || state.calling || this.#queued.length === 0) return
    const batch = this.#queued.splice(0, inputBatchMax)
    const target = this.directTarget()
    if (target === undefined) return this.#callWith(batch)
    target.submit(this.context.node, batch)
    if (this.#queued.length > 0) this.context.scheduler.scheduleInput(this)
  }

  /** Receives a batch of outputs. An empty one confirms the attachment. */
  receive(epoch: number, outputs: ReadonlyArray<Output>): void {
    const before = this.#state
    if (before.tag === "attached" && before.epoch === epoch) {
      if (outputs.length > 0) this.handle(outputs)
      else this.onAttached()
      return
    }
    const after = State.receive(before, epoch, outputs.length === 0)
    if (after === before) return
    this.#state = after
    if (after.tag === "moved") return this.#closeStream()
    this.#releaseSlot()
    this.onAttached()
    this.context.scheduler.scheduleInput(this)
  }

  /** Ends the attachment after a loss of commands. The next attachment determines their outcome. */
  detach(): void {
    this.#move(State.leave(this.#state))
  }

  /** The commands without a reply. */
  protected get unreplied(): ReadonlyArray<Command> {
    return Array.from(this.#pending.values(), ({ command }) => command)
  }

  /** Completes the command of this number. */
  protected reply(seq: number, result: CommandResult<Data>): void {
    const pending = this.#pending.get(seq)
    this.#pending.delete(seq)
    pending?.onReply(result)
  }

  /** Ends the link when nobody uses it, no reply is due and no command waits. */
  closeIfIdle(): void {
    if (this.isInUse() || this.#pending.size + this.#queued.length > 0) return
    this.end()
  }

  /** Ends the link; commands that wait, or come later, fail with this error. */
  protected end(error: CodedError = new Unavailable()): void {
    if (this.ended) return
    this.#state = State.end(this.#state, error)
    this.#releaseSlot()
    this.#failAll(error)
    if (this.#fiber !== undefined) this.context.run(Fiber.interrupt(this.#fiber))
    this.#onEnded()
  }

  #callWith(batch: ReadonlyArray<Numbered<Command>>): void {
    this.#state = State.beginCall(this.#state)
    const { calls } = this.#state
    this.context.run(
      this.call(batch, calls).pipe(
        Effect.catchCause((cause) =>
          Effect.map(Effect.logDebug("Failed to call an entity", cause), () =>
            this.#move(State.failCall(this.#state, calls))
          )
        ),
        Effect.ensuring(
          Effect.sync(() => {
            if (!State.isCurrentCall(this.#state, calls)) return
            this.#state = State.completeCall(this.#state, calls)
            if (this.#queued.length > 0) this.context.scheduler.scheduleInput(this)
          })
        )
      )
    )
  }

  #move(after: State.LinkState): void {
    if (after === this.#state) return
    this.#state = after
    this.#closeStream()
  }

  /** Attaches again and again while the link lives: the entity may move any number of times. */
  #stayAttached(): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      const now = monotonicMillis(yield* Clock.Clock)
      let retry = State.firstRetry(now())
      while (!this.ended) {
        if (this.#state.epoch > 0) this.#releaseSlot = yield* this.context.reattachment
        const exit = yield* Effect.exit(this.#watchOnce(State.attachMillis(retry, now())))
        this.#releaseSlot()
        const decision = State.afterStream(retry, {
          wasAttached: State.wasAttached(this.#state),
          error: errorOf(exit),
          now: now()
        })
        this.#state = State.close(this.#state)
        if (decision.tag === "lost") return this.onLost(decision.error)
        this.#requeue()
        if (decision.failsCommands) this.#failAll(new Unavailable())
        yield* Effect.sleep(decision.delayMillis)
        retry = decision.retry
      }
    })
  }

  #watchOnce(attachMillis: number): Effect.Effect<void, CodedError> {
    return Effect.suspend(() => {
      const attachment = this.context.nextAttachment()
      this.#state = State.open(this.#state, attachment)
      const received = Stream.runForEach(this.watch(this.#state.epoch), (batch) =>
        Effect.sync(() => {
          if (attachment === this.#state.attachment) this.receive(batch.epoch, batch.items)
        })
      )
      // Interrupting a call to a runner that is gone can take long: nothing waits for that.
      const streaming = Effect.callback<void, CodedError>((resume) => {
        const fiber = this.context.run(Effect.map(Effect.exit(received), resume))
        return Effect.sync(() => void this.context.run(Fiber.interrupt(fiber)))
      })
      const moved = Effect.callback<void>((resume) => {
        this.#closeStream = () => resume(Effect.void)
        if (this.#state.tag === "moved") this.#closeStream()
      })
      const unattached = Effect.delay(
        Effect.suspend(() => (this.attached ? Effect.never : Effect.void)),
        attachMillis
      )
      return Effect.raceFirst(Effect.raceFirst(streaming, moved), unattached)
    })
  }

  /** Queues again every command that has no reply, before those that were never sent. */
  #requeue(): void {
    const again: Array<Numbered<Command>> = []
    const queued = new Set(this.#queued.map((input) => input.seq))
    for (const [seq, { command, onReply }] of this.#pending) {
      if (queued.has(seq)) continue
      if (this.isRepeatable(command)) {
        again.push({ seq, command: this.renewed(command) })
      } else {
        this.#pending.delete(seq)
        onReply({ ok: false, error: new Unavailable() })
      }
    }
    this.#queued = [...again, ...this.#queued]
  }

  #failAll(error: CodedError): void {
    const pending = Array.from(this.#pending.values())
    this.#pending.clear()
    this.#queued = []
    for (const { onReply } of pending) onReply({ ok: false, error })
  }
}
