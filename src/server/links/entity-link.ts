/**
 * A gateway's line to one entity: commands go out in a batch per turn, what the entity tells comes
 * back through one stream per node. When the entity moves the stream ends; the link attaches again
 * with back-off, and commands wait meanwhile (bounded). Commands whose fate is unknown are sent again
 * when doing them twice does no harm, and answered `unavailable` when it might.
 */
import { Cause, Clock, Effect, Exit, Fiber, Option, Stream } from "effect"
import { type CodedError, Unavailable } from "#rpc/errors/codes"
import { rooms } from "#rpc/limits"
import type { OutputBatch } from "#entities/output-queue"
import type { FlushScheduler } from "#server/platform/flush"

/** The outcome of a command. */
export type CommandResult<Data> =
  | { readonly ok: true; readonly data: Data }
  | { readonly ok: false; readonly error: CodedError }

export type ReplyCallback<Data> = (answer: CommandResult<Data>) => void

/** A command on its way; `seq` 0 wants no answer. */
export interface Numbered<Command> {
  readonly seq: number
  readonly command: Command
}

/** What makes a link a link to a room or to a queue. */
export interface LinkTarget<Command, Item> {
  /** The entity when it is reached without a call: on this node, or over a line to another. */
  readonly local: () =>
    | { submit(node: string, inputs: ReadonlyArray<Numbered<Command>>): void }
    | undefined
  /** A call with commands; its number is greater than that of the call before. */
  readonly input: (
    inputs: ReadonlyArray<Numbered<Command>>,
    call: number
  ) => Effect.Effect<void, CodedError>
  /** Told with the epoch last heard, 0 at first. */
  readonly watch: (epoch: number) => Stream.Stream<OutputBatch<Item>, CodedError>
  readonly receive: (items: ReadonlyArray<Item>) => void
  /** May the command be sent again when it is unknown whether it was done? */
  readonly repeatable: (command: Command) => boolean
  /** The stream stands (again); more than once is no harm. */
  readonly attached?: () => void
  /** The entity does not exist: the link ends. */
  readonly lost: (error: CodedError) => void
}

interface Pending<Command, Data> {
  readonly command: Command
  readonly answered: ReplyCallback<Data>
}

const backOffMillis = 20
const backOffMaxMillis = 500
/** Low, so that an entity that is back is found soon: after a third again of the time it was away. */
const backOffFactor = 1.5
const backOffSteps = 8
/** How long the entity may take to let the link in, before it is asked anew. */
const answerMillis = 3000
/** How long an entity may be missing: for longer than a statement takes to fail that has no answer. */
const missingMillis = 6000
/** How long commands wait for an entity that is nowhere; of one that may be gone they hear whether it is. */
const patienceMillis = 10_000

/** What says that the entity is no more. */
const gone: ReadonlySet<string> = new Set(["room_not_found", "channel_not_found"])
/** What says that it was there, and that its last state may still be on its way. */
const missing = "room_missing"

const errorOf = (exit: Exit.Exit<void, CodedError>): CodedError | undefined =>
  Exit.isSuccess(exit) ? undefined : Option.getOrUndefined(Cause.findErrorOption(exit.cause))

export class EntityLink<Command, Item, Data> {
  readonly #node: string
  readonly #turn: FlushScheduler
  readonly #target: LinkTarget<Command, Item>
  readonly #run: (effect: Effect.Effect<void>) => Fiber.Fiber<void>
  readonly #pending = new Map<number, Pending<Command, Data>>()
  #waiting: Array<Numbered<Command>> = []
  #seq = 0
  #epoch = 0
  #attached = false
  #sending = false
  /** Counts the calls; the answer of an older one is of no interest. */
  #call = 0
  /** Counts the streams; what an older one tells is of no interest either. */
  #watch = 0
  /** Why the link has ended, once it has. */
  #end: CodedError | undefined
  #moved = false
  #leave: () => void = () => undefined
  #fiber: Fiber.Fiber<void> | undefined

  constructor(options: {
    readonly node: string
    readonly turn: FlushScheduler
    readonly target: LinkTarget<Command, Item>
    readonly run: (effect: Effect.Effect<void>) => Fiber.Fiber<void>
  }) {
    this.#node = options.node
    this.#turn = options.turn
    this.#target = options.target
    this.#run = options.run
  }

  start(): void {
    this.#fiber = this.#run(this.#watching())
  }

  get attached(): boolean {
    return this.#attached
  }

  get ended(): boolean {
    return this.#end !== undefined
  }

  /** Nobody waits for an answer and nothing waits to be sent. */
  get idle(): boolean {
    return this.#pending.size === 0 && this.#waiting.length === 0
  }

  /** Sends a command; without `answered`, only a refusal comes back, through `receive`. */
  send(command: Command, answered?: ReplyCallback<Data>): void {
    if (this.#end !== undefined || this.#waiting.length >= rooms.detachedInputsMax) {
      answered?.({ ok: false, error: this.#end ?? new Unavailable() })
      return
    }
    const seq = answered === undefined ? 0 : ++this.#seq
    if (answered !== undefined) this.#pending.set(seq, { command, answered })
    this.#waiting.push({ seq, command })
    this.#turn.scheduleInput(this)
  }

  /** The same, as an effect. */
  request(command: Command): Effect.Effect<Data, CodedError> {
    return Effect.callback((resume) => {
      this.send(command, (answer) =>
        resume(answer.ok ? Effect.succeed(answer.data) : Effect.fail(answer.error))
      )
    })
  }

  /** Hands the turn's batch over: to an actor on this node directly, else in one call at a time. */
  flush(): void {
    if (!this.#attached || this.#sending || this.#waiting.length === 0) return
    const batch = this.#waiting.splice(0, rooms.inputBatchMax)
    const local = this.#target.local()
    if (local !== undefined) {
      local.submit(this.#node, batch)
      if (this.#waiting.length > 0) this.#turn.scheduleInput(this)
      return
    }
    this.#sending = true
    const call = (this.#call += 1)
    this.#run(
      this.#target.input(batch, call).pipe(
        Effect.catchCause((cause) =>
          Effect.map(Effect.logDebug("A batch did not reach its entity", cause), () => {
            if (call === this.#call) this.#detach()
          })
        ),
        Effect.ensuring(
          Effect.sync(() => {
            if (call !== this.#call) return
            this.#sending = false
            if (this.#waiting.length > 0) this.#turn.scheduleInput(this)
          })
        )
      )
    )
  }

  /**
   * What the entity tells. The first batch of a stream, empty, says that it stands; until then, and
   * from older activations, nothing is heard. A batch of a newer activation means that the cluster
   * has found the entity elsewhere: it does not know yet what this node holds, so the link attaches
   * anew.
   */
  receive(epoch: number, items: ReadonlyArray<Item>): void {
    if (epoch < this.#epoch || this.ended) return
    if (this.#attached) {
      if (epoch !== this.#epoch) this.#detach()
      else if (items.length > 0) this.#target.receive(items)
      else this.#target.attached?.()
    } else if (items.length === 0 && !this.#moved) {
      this.#epoch = epoch
      this.#attached = true
      this.#target.attached?.()
      this.#turn.scheduleInput(this)
    }
  }

  /** Commands did not reach the entity: what became of it is found out by attaching anew. */
  broken(): void {
    if (this.#attached) this.#detach()
  }

  /** The answer to a numbered command. */
  answer(seq: number, answer: CommandResult<Data>): void {
    const pending = this.#pending.get(seq)
    this.#pending.delete(seq)
    pending?.answered(answer)
  }

  /** Ends the link; what still waits, or comes later, is answered with this error. */
  end(error: CodedError = new Unavailable()): void {
    if (this.ended) return
    this.#end = error
    this.#attached = false
    this.#failAll(error)
    if (this.#fiber !== undefined) this.#run(Fiber.interrupt(this.#fiber))
  }

  /** Watches for as long as the link lives; the entity may move any number of times. */
  #watching(): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      let attempts = 0
      let heardAt = yield* Clock.currentTimeMillis
      let missingAt: number | undefined
      while (!this.ended) {
        const exit = yield* Effect.exit(this.#watchOnce())
        const now = yield* Clock.currentTimeMillis
        if (this.#attached || this.#moved) {
          attempts = 0
          heardAt = now
        }
        this.#attached = false
        // What still comes, over a line, is of an attachment that is over.
        this.#moved = true
        const error = errorOf(exit)
        missingAt = error?._tag === missing ? (missingAt ?? now) : undefined
        const given = missingAt !== undefined && now - missingAt >= missingMillis
        if (error !== undefined && (given || gone.has(error._tag))) {
          return this.#target.lost(error)
        }
        this.#requeue()
        const patient = missingAt !== undefined || now - heardAt <= patienceMillis
        if (!patient) this.#failAll(new Unavailable())
        yield* Effect.sleep(Math.min(backOffMaxMillis, backOffMillis * backOffFactor ** attempts))
        attempts = Math.min(attempts + 1, backOffSteps)
      }
    })
  }

  #watchOnce(): Effect.Effect<void, CodedError> {
    return Effect.suspend(() => {
      this.#moved = false
      const watch = (this.#watch += 1)
      const told = Stream.runForEach(this.#target.watch(this.#epoch), (batch) =>
        Effect.sync(() => {
          if (watch === this.#watch) this.receive(batch.epoch, batch.items)
        })
      )
      // A call to a runner that is gone may take long to be called off: that is not waited for.
      const listening = Effect.callback<void, CodedError>((resume) => {
        const fiber = this.#run(Effect.map(Effect.exit(told), resume))
        return Effect.sync(() => void this.#run(Fiber.interrupt(fiber)))
      })
      const moved = Effect.callback<void>((resume) => {
        this.#leave = () => resume(Effect.void)
        if (this.#moved) this.#leave()
      })
      const unanswered = Effect.delay(
        Effect.suspend(() => (this.#attached ? Effect.never : Effect.void)),
        answerMillis
      )
      return Effect.raceFirst(Effect.raceFirst(listening, moved), unanswered)
    })
  }

  #detach(): void {
    this.#attached = false
    this.#moved = true
    this.#leave()
  }

  /** A call under way may wait for its runner for long: what it carried is asked again. */
  #requeue(): void {
    this.#call += 1
    this.#sending = false
    const again: Array<Numbered<Command>> = []
    const queued = new Set(this.#waiting.map((input) => input.seq))
    for (const [seq, { answered, command }] of this.#pending) {
      if (queued.has(seq)) continue
      if (this.#target.repeatable(command)) {
        again.push({ seq, command })
      } else {
        this.#pending.delete(seq)
        answered({ ok: false, error: new Unavailable() })
      }
    }
    this.#waiting = [...again, ...this.#waiting]
  }

  #failAll(error: CodedError): void {
    const pending = Array.from(this.#pending.values())
    this.#pending.clear()
    this.#waiting = []
    for (const { answered } of pending) answered({ ok: false, error })
  }
}
