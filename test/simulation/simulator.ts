/**
 * Simulated processes on virtual time. One thread runs the event loops of all processes, in an order
 * drawn from the seed. A process can be killed (nothing of it runs again, finalizers included) or
 * frozen like a suspended machine (its work waits and happens late).
 *
 * Invariant: a run is a function of its seed. Work outside the simulation (the database) starts and is
 * awaited at virtual times, so its real duration changes nothing.
 */
import {
  Cause,
  Clock,
  Context,
  Duration,
  Effect,
  type Fiber,
  Logger,
  Random,
  References,
  Scheduler
} from "effect"
import { SecureRandom } from "effect/crypto"
import { FlushTimers } from "#server/platform/flush"
import type { Chance } from "./random.ts"

type Task = () => void

interface Timer {
  readonly at: number
  readonly order: number
  readonly process: Process | undefined
  readonly fire: Task
  /** External work that must have finished before this task runs. */
  readonly awaited: Promise<unknown> | undefined
  cancelled: boolean
}

/** More tasks than this without time passing are an endless loop. */
const tasksPerInstant = 200_000

const earlier = (a: Timer, b: Timer): boolean => a.at < b.at || (a.at === b.at && a.order < b.order)

/** A binary heap of timers, the earliest first. */
class Timers {
  readonly #heap: Array<Timer> = []

  get first(): Timer | undefined {
    return this.#heap[0]
  }

  push(timer: Timer): void {
    const heap = this.#heap
    let index = heap.length
    heap.push(timer)
    while (index > 0) {
      const parent = (index - 1) >> 1
      const above = heap[parent]
      if (above === undefined || !earlier(timer, above)) break
      heap[index] = above
      index = parent
    }
    heap[index] = timer
  }

  pop(): void {
    const heap = this.#heap
    const last = heap.pop()
    if (last === undefined || heap.length === 0) return
    let index = 0
    for (;;) {
      let child = 2 * index + 1
      const left = heap[child]
      const right = heap[child + 1]
      if (left === undefined) break
      let smallest = left
      if (right !== undefined && earlier(right, left)) {
        child += 1
        smallest = right
      }
      if (!earlier(smallest, last)) break
      heap[index] = smallest
      index = child
    }
    heap[index] = last
  }
}

/** Runs simulated processes in virtual time, and collects their log and the violations found. */
export class Simulator {
  /** Unix milliseconds with fractions; a process sees whole milliseconds. */
  now = 1_800_000_000_000
  readonly chance: Chance
  readonly #timers = new Timers()
  readonly #busy: Array<Process> = []
  #order = 0
  /** The event log, printed when a check fails. */
  readonly log: Array<string> = []
  readonly startedAt = this.now

  constructor(chance: Chance) {
    this.chance = chance
  }

  /** Violations found so far. */
  readonly faults: Array<string> = []

  /** Records a violation. */
  fault(text: string): void {
    this.note(`FAULT ${text}`)
    this.faults.push(text)
  }

  /** Adds a line to the log. */
  note(text: string): void {
    this.log.push(`${((this.now - this.startedAt) / 1000).toFixed(3)} ${text}`)
  }

  /** Runs a task after a delay, inside a process or outside all of them; returns how to cancel it. */
  after(
    millis: number,
    fire: Task,
    options: { readonly process?: Process; readonly awaited?: Promise<unknown> } = {}
  ): () => void {
    const timer: Timer = {
      at: this.now + Math.max(0, millis),
      order: this.#order++,
      process: options.process,
      fire,
      awaited: options.awaited,
      cancelled: false
    }
    this.#timers.push(timer)
    return () => {
      timer.cancelled = true
    }
  }

  /** Marks a process as runnable. */
  wake(process: Process): void {
    this.#busy.push(process)
  }

  /** Advances the time. */
  async pass(millis: number): Promise<void> {
    const end = this.now + millis
    this.#work()
    for (;;) {
      const timer = this.#timers.first
      if (timer === undefined || timer.at > end) break
      this.#timers.pop()
      if (timer.cancelled) continue
      if (timer.awaited !== undefined) await timer.awaited
      this.now = Math.max(this.now, timer.at)
      if (timer.process === undefined) timer.fire()
      else timer.process.enqueue(timer.fire)
      this.#work()
    }
    this.now = end
  }

  /** Runs everything that can run without time passing; the order of processes is random. */
  #work(): void {
    const busy = this.#busy
    for (let tasks = 0; busy.length > 0; tasks++) {
      if (tasks > tasksPerInstant) throw new Error("A loop that takes no time")
      const index = busy.length === 1 ? 0 : this.chance.integer(0, busy.length - 1)
      const process = busy[index]
      if (process === undefined) return
      if (!process.step()) {
        const last = busy.pop()
        if (last !== undefined && index < busy.length) busy[index] = last
      }
    }
  }
}

/** A process: its event loop, its clock, its random numbers. */
export class Process {
  readonly name: string
  readonly simulator: Simulator
  /** The context of every fiber of the process. */
  readonly context: Context.Context<SecureRandom.SecureRandom>
  state: "running" | "frozen" | "dead" = "running"
  /** Its whole machine is lost: nothing closes its connections. */
  vanished = false
  /** How far its time of day is off, in milliseconds. */
  clockOffset = 0
  #tasks: Array<Task> = []
  #next = 0
  #awake = false

  constructor(name: string, simulator: Simulator, chance: Chance) {
    this.name = name
    this.simulator = simulator
    // Decides how long the process waits between two flushes.
    const busyShare = chance.fraction()
    this.context = Context.empty().pipe(
      Context.add(
        Scheduler.Scheduler,
        new Scheduler.MixedScheduler("async", (task) => this.enqueue(task))
      ),
      Context.add(Clock.Clock, this.#clock()),
      Context.add(FlushTimers, {
        soon: (run) => void this.enqueue(run),
        later: (run, millis) => void simulator.after(millis, run, { process: this }),
        busyMillis: () => simulator.now * busyShare
      }),
      Context.add(Random.Random, {
        nextIntUnsafe: () => chance.integer(0, 2 ** 32 - 1),
        nextDoubleUnsafe: () => chance.fraction()
      }),
      Context.add(Logger.CurrentLoggers, new Set([this.#logger()])),
      Context.add(References.MinimumLogLevel, "Warn"),
      Context.add(References.TracerEnabled, false),
      Context.add(
        SecureRandom.SecureRandom,
        SecureRandom.make((size) => chance.bytes(size))
      )
    )
  }

  /** Appends a task to the event loop; returns how to cancel it. */
  enqueue(task: Task): Task {
    let cancelled = false
    if (this.state !== "dead") {
      this.#tasks.push(() => {
        if (!cancelled) task()
      })
      this.#stir()
    }
    return () => {
      cancelled = true
    }
  }

  /** Runs the next task; returns false when there is none. */
  step(): boolean {
    const task = this.state === "running" ? this.#tasks[this.#next] : undefined
    if (task === undefined) {
      this.#awake = false
      return false
    }
    this.#next += 1
    if (this.#next === this.#tasks.length) {
      this.#tasks = []
      this.#next = 0
    }
    task()
    return true
  }

  /** Runs an effect, from its first step on as a task of the event loop if the process is frozen. */
  run<A, E>(effect: Effect.Effect<A, E, SecureRandom.SecureRandom>): Fiber.Fiber<A, E> {
    const isRunning = this.state === "running"
    return Effect.runForkWith(this.context)(
      isRunning ? effect : Effect.andThen(Effect.yieldNow, effect)
    )
  }

  /** Kills the process: no finalizer runs. */
  kill(silently = false): void {
    this.state = "dead"
    this.vanished = silently
    this.#tasks = []
    this.#next = 0
  }

  freeze(): void {
    if (this.state === "running") this.state = "frozen"
  }

  thaw(): void {
    if (this.state !== "frozen") return
    this.state = "running"
    this.#stir()
  }

  #stir(): void {
    if (this.#awake || this.state !== "running" || this.#tasks.length === 0) return
    this.#awake = true
    this.simulator.wake(this)
  }

  #clock(): Clock.Clock {
    const millis = () => Math.floor(this.simulator.now + this.clockOffset)
    const nanosOf = (time: number) => BigInt(Math.floor(time * 1000)) * 1000n
    const nanos = () => nanosOf(this.simulator.now + this.clockOffset)
    const monotonic = () => nanosOf(this.simulator.now - this.simulator.startedAt)
    return {
      currentTimeMillisUnsafe: millis,
      currentTimeMillis: Effect.sync(millis),
      currentTimeNanosUnsafe: nanos,
      currentTimeNanos: Effect.sync(nanos),
      monotonicTimeNanosUnsafe: monotonic,
      monotonicTimeNanos: Effect.sync(monotonic),
      sleep: (duration) => this.#sleep(duration)
    }
  }
  #sleep(duration: Duration.Duration): Effect.Effect<void> {
    const millis = Duration.toMillis(duration)
    if (!Number.isFinite(millis)) return Effect.never
    return Effect.callback<void>((resume) => {
      const cancel = this.simulator.after(millis, () => resume(Effect.void), { process: this })
      return Effect.sync(cancel)
    })
  }

  /** Forwards warnings and errors to the event log. */
  #logger(): Logger.Logger<unknown, void> {
    return Logger.make(({ cause, logLevel, message }) => {
      const parts = Array.isArray(message) ? message : [message]
      const reason = cause.reasons.length === 0 ? "" : ` ${String(Cause.squash(cause))}`
      this.simulator.note(`${this.name} [${logLevel}] ${parts.map(String).join(" ")}${reason}`)
    })
  }
}
