/**
 * Supervisor of one process of untrusted code. It starts the process when the first call comes. It
 * ends the process when a call uses too much CPU time or the process too much memory, and starts the
 * next one. Calls that arrive meanwhile wait at a gate, so only calls that were under way fail. It
 * knows nothing of what the process runs.
 */
import { Data } from "effect"
import { type CpuAccount, CpuAccounts } from "./cpu-accounts.ts"
import type { CpuBudget } from "./cpu-budget.ts"
import type { ProcessUsage } from "../process-usage.ts"
import { RestartPace } from "./restart-pace.ts"

/** A running process, as the supervisor sees it. */
export interface Supervised {
  readonly pid: number
  /** Resolves when the process has ended. */
  readonly exited: Promise<unknown>
  readonly kill: () => void
}

/** Reason why calls under way failed. */
export type EndReason = "budget" | "cpu" | "memory" | "storage" | "crash" | "stopped"

/** Work that enters. The service's own operations on stored data are maintenance. */
export type EntryKind = "call" | "maintenance" | "socket"

/** Error for a call that cannot begin. */
export class GateClosed extends Data.TaggedError("GateClosed")<{
  readonly reason: "busy" | "stopped"
}> {}

export interface SupervisorLimits {
  /** CPU time of a call, and of a second of work outside calls. */
  readonly cpuMillis: number
  readonly memoryBytes: number
}

export interface SupervisorOptions<P extends Supervised> {
  /** Starts a process; a failure reaches the calls that wait. */
  readonly start: () => Promise<P>
  readonly limits: () => SupervisorLimits
  readonly usageOf: (pid: number) => ProcessUsage | undefined
  /** CPU time over minutes, which outlasts each process. */
  readonly budget: CpuBudget
  /** Returns the error for work that must not begin now. */
  readonly refusalOf: (kind: EntryKind) => Error | undefined
  readonly now: () => number
  /** Callback for a process that the supervisor ended for its usage, or that crashed. */
  readonly onEnd: (reason: Exclude<EndReason, "stopped">) => void
  readonly onCpu: (cpuMillis: number) => void
  /** Called whenever the usage of the process has been read. */
  readonly onCheck: (pid: number) => void
  /** Calls that may wait at the gate, and for how long. */
  readonly waitingMax: number
  readonly waitMillis: number
}

/** A call, or a socket, under way. */
export class Call<P extends Supervised> {
  readonly process: P
  readonly account: CpuAccount | undefined
  /** Ends the call; repeated calls have no effect. */
  readonly end: () => void
  #onProcessEnd: (reason: EndReason) => void = () => undefined
  #endedBy: EndReason | undefined

  constructor(process: P, account: CpuAccount | undefined, end: (call: Call<P>) => void) {
    this.process = process
    this.account = account
    this.end = () => end(this)
  }

  /** Sets the callback for a process that ends before the call does; replaces the one before. */
  onProcessEnd(run: (reason: EndReason) => void): void {
    this.#onProcessEnd = run
  }

  /** Why the process has ended before the call; undefined if it has not. */
  get endedBy(): EndReason | undefined {
    return this.#endedBy
  }

  /** Ends the call of a process that has ended. */
  processEnded(reason: EndReason): void {
    this.#endedBy = reason
    this.#onProcessEnd(reason)
    this.end()
  }
}

const noUsage: ProcessUsage = { cpuMillis: 0, memoryBytes: 0 }
const busyCheckMillis = 10
const idleCheckMillis = 100
/** Calls that begin or end within this time share what is used in it. */
const settleMillis = 2
/** A young process compiles what the first calls run, which they could not avoid. */
const youngMillis = 2000
const youngAllowanceMillis = 300

export class Supervisor<P extends Supervised> {
  readonly #options: SupervisorOptions<P>
  readonly #accounts = new CpuAccounts()
  readonly #calls = new Set<Call<P>>()
  readonly #sockets = new Set<Call<P>>()
  readonly #pace: RestartPace
  #process: P | undefined
  #startedAt = 0
  #starting: Promise<void> | undefined
  /** Gate that is closed while an operation needs the process to be away. */
  #closed: Promise<unknown> | undefined
  #stopped = false
  #waiting = 0
  #drained: (() => void) | undefined
  /**
   * End of the process before. The next one must not start beside it: both would write the same
   * files.
   */
  #ending: Promise<unknown> = Promise.resolve()
  #timer: NodeJS.Timeout | undefined
  #isTimerBusy = false
  #usage: ProcessUsage = noUsage
  #checkedAt = 0
  /** Time at which the last call ended, or the process started. */
  lastUsedAt: number

  constructor(options: SupervisorOptions<P>) {
    this.#options = options
    this.#pace = new RestartPace(options.now)
    this.lastUsedAt = options.now()
  }

  get process(): P | undefined {
    return this.#process
  }

  /** Calls under way. */
  get calls(): number {
    return this.#calls.size
  }

  /** Calls and sockets under way. */
  get load(): number {
    return this.#calls.size + this.#sockets.size
  }

  /** Whether nothing starts, stops or waits. */
  get isQuiet(): boolean {
    return this.#closed === undefined && this.#starting === undefined && this.#waiting === 0
  }

  /** Resolves when nothing holds the gate closed. */
  get settled(): Promise<unknown> {
    return this.#closed?.catch(() => undefined) ?? Promise.resolve()
  }

  get memoryBytes(): number {
    return this.#usage.memoryBytes
  }

  /** Starts a call; waits while the process starts or the gate is closed. */
  async enter(kind: EntryKind): Promise<Call<P>> {
    const deadline = this.#options.now() + this.#options.waitMillis
    // It may end the process, which then must get no more calls.
    this.#settle()
    this.#requireAdmission(kind)
    while (this.#process === undefined || this.#closed !== undefined) {
      if (this.#stopped) throw new GateClosed({ reason: "stopped" })
      if (this.#waiting >= this.#options.waitingMax || this.#options.now() > deadline) {
        throw new GateClosed({ reason: "busy" })
      }
      this.#waiting += 1
      try {
        await within(this.#closed ?? this.#ensureStarted(), deadline - this.#options.now())
      } finally {
        this.#waiting -= 1
      }
      this.#settle()
      this.#requireAdmission(kind)
    }
    return this.#begin(this.#process, kind)
  }

  #requireAdmission(kind: EntryKind): void {
    const refusal = this.#options.refusalOf(kind)
    if (refusal !== undefined) throw refusal
  }

  #begin(process: P, kind: EntryKind): Call<P> {
    const { cpuMillis } = this.#options.limits()
    const isYoung = this.#options.now() - this.#startedAt < youngMillis
    const account =
      kind === "socket"
        ? undefined
        : this.#accounts.open(cpuMillis + (isYoung ? youngAllowanceMillis : 0))
    const calls = kind === "socket" ? this.#sockets : this.#calls
    const call = new Call(process, account, (ended) => {
      if (!calls.has(ended)) return
      this.#settle()
      if (account !== undefined) this.#accounts.close(account)
      if (!calls.delete(ended)) return
      this.lastUsedAt = this.#options.now()
      if (this.#calls.size === 0) this.#drained?.()
    })
    calls.add(call)
    this.#watch()
    return call
  }

  /** Records that the process has written to a client. */
  progressed(): void {
    this.#accounts.progressed()
  }

  #ensureStarted(): Promise<void> {
    this.#starting ??= this.#start().finally(() => {
      this.#starting = undefined
    })
    return this.#starting
  }

  async #start(): Promise<void> {
    const delay = this.#pace.delay()
    if (delay > 0) await new Promise((resolve) => setTimeout(resolve, delay))
    if (this.#stopped) return
    await this.#ending
    const process = await this.#options.start().catch((error: unknown) => {
      this.#pace.failed()
      throw error
    })
    if (this.#stopped) return process.kill()
    this.#process = process
    this.#startedAt = this.#options.now()
    this.lastUsedAt = this.#startedAt
    this.#checkedAt = this.#startedAt
    this.#usage = this.#options.usageOf(process.pid) ?? noUsage
    // The start counts, since its code runs then, too.
    this.#options.budget.charge(this.#usage.cpuMillis, this.#startedAt)
    this.#watch()
    void process.exited.then(() => this.#ended(process, "crash"))
  }

  /** Ends the calls of a process that has ended. */
  #ended(process: P, reason: EndReason): void {
    if (this.#process !== process) return
    this.#process = undefined
    this.#ending = process.exited
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#accounts.clear()
    const ended = [...this.#calls, ...this.#sockets]
    if (reason !== "stopped") {
      this.#pace.failed()
      this.#options.onEnd(reason)
    }
    for (const call of ended) call.processEnded(reason)
  }

  #watch(): void {
    if (this.#process === undefined) return
    const isBusy = this.#calls.size > 0
    if (this.#timer !== undefined && (this.#isTimerBusy || !isBusy)) return
    clearTimeout(this.#timer)
    this.#isTimerBusy = isBusy
    this.#timer = setTimeout(
      () => {
        this.#timer = undefined
        this.#check()
        this.#watch()
      },
      isBusy ? busyCheckMillis : idleCheckMillis
    )
    this.#timer.unref()
  }

  /** Charges the usage so far to the calls that were under way. */
  #settle(): void {
    if (this.#options.now() - this.#checkedAt >= settleMillis) this.#check()
  }

  #check(): void {
    const process = this.#process
    if (process === undefined) return
    const usage = this.#options.usageOf(process.pid)
    if (usage === undefined) return
    const { cpuMillis: limit, memoryBytes } = this.#options.limits()
    const cpuMillis = usage.cpuMillis - this.#usage.cpuMillis
    const now = this.#options.now()
    const elapsed = now - this.#checkedAt
    this.#usage = usage
    this.#checkedAt = now
    if (cpuMillis > 0) this.#options.onCpu(cpuMillis)
    const budget = this.#options.budget.charge(cpuMillis, now)
    const isYoung = now - this.#startedAt < youngMillis
    const background = limit + (isYoung ? youngAllowanceMillis : 0)
    if (this.#accounts.charge(cpuMillis, elapsed, background, this.#sockets.size > 0)) {
      this.#kill(process, "cpu")
    } else if (usage.memoryBytes > memoryBytes) {
      this.#kill(process, "memory")
    } else if (budget === "overdrawn") {
      this.#kill(process, "budget")
    } else {
      this.#options.onCheck(process.pid)
    }
  }

  /** Ends the process, if one runs, and what is under way in it. */
  end(reason: "storage"): void {
    if (this.#process !== undefined) this.#kill(this.#process, reason)
  }

  #kill(process: P, reason: Exclude<EndReason, "stopped">): void {
    process.kill()
    this.#ended(process, reason)
    if (reason === "budget" || reason === "storage") return
    // Before a call needs it.
    if (this.#closed === undefined && !this.#stopped) this.#ensureStarted().catch(() => undefined)
  }

  #hold<A>(work: Promise<A>): Promise<A> {
    const held: Promise<A> = work.finally(() => {
      if (this.#closed === held) this.#closed = undefined
    })
    held.catch(() => undefined)
    return held
  }

  /**
   * Closes the gate, lets calls under way end, stops the process, runs the work and opens the gate. Sockets
   * end with the process. Several of these run one after the other.
   */
  exclusively<A>(drainMillis: number, work: () => Promise<A>): Promise<A> {
    const before = this.#closed
    const run = async (): Promise<A> => {
      await before?.catch(() => undefined)
      await this.#starting?.catch(() => undefined)
      await this.#halt(drainMillis)
      return work()
    }
    const held = this.#hold(run())
    this.#closed = held
    return held
  }

  async #halt(drainMillis: number): Promise<void> {
    if (this.#calls.size > 0) {
      const drained = new Promise<void>((resolve) => {
        this.#drained = resolve
      })
      await within(drained, drainMillis)
      this.#drained = undefined
    }
    const process = this.#process
    process?.kill()
    if (process !== undefined) this.#ended(process, "stopped")
    await this.#ending
  }

  /** Stops the process for good. */
  async stop(drainMillis: number): Promise<void> {
    await this.exclusively(drainMillis, async () => {
      this.#stopped = true
    })
  }
}

/** Waits for the work, or for the time to pass. */
const within = (work: Promise<unknown>, millis: number): Promise<unknown> => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, Math.max(0, millis))
  return Promise.race([work, promise]).finally(() => clearTimeout(timer))
}
