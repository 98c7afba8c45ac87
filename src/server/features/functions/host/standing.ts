/**
 * Standing of an environment: what it has used of its CPU time and its storage, measured outside of its
 * process, and what follows for the work that wants to begin.
 */
import { Data } from "effect"
import type { FunctionsUsage } from "#rpc/functions/responses"
import { CpuBudget } from "#server/platform/workerd/cpu-budget"
import { type EntryKind, GateClosed } from "#server/platform/workerd/supervisor"
import type { HostContext } from "./host-context.ts"
import { storedBytes, writtenBytes } from "./stored-bytes.ts"
import { storageLimitsOf, type StorageState, StorageUse } from "./storage-use.ts"

/** Error: the environment has used up what it may. `message` is for the developer. */
export class UsedUp extends Data.TaggedError("UsedUp")<{
  readonly limit: "cpu" | "storage"
  readonly message: string
}> {}

const mebibyte = 1024 * 1024

const inMebibytes = (bytes: number): string => `${Math.ceil(bytes / mebibyte)} MiB`

const seconds = (millis: number): number => Math.ceil(millis / 1000)

export interface StandingOptions {
  readonly environmentId: string
  readonly context: HostContext
  /** Writes a line to the logs of the environment. */
  readonly note: (level: "info" | "error", message: string) => void
  /** Called when the code has to stop, or may run again. */
  readonly onStop: () => void
  readonly onResume: () => void
}

export class Standing {
  readonly budget: CpuBudget
  readonly storage: StorageUse
  readonly #options: StandingOptions
  #isThrottled = false

  constructor(options: StandingOptions) {
    this.#options = options
    const { context, environmentId } = options
    const { cpuMillisPerMinute, directories, diskSpace, looks, now, programs, storageBytes } =
      context
    const directory = directories.dataOf(environmentId)
    this.budget = new CpuBudget(cpuMillisPerMinute, now())
    this.storage = new StorageUse({
      limits: storageLimitsOf(storageBytes),
      reader: {
        storedBytes: (pid, enough) => storedBytes(programs.find, directory, pid, enough),
        writtenBytes
      },
      looks,
      isDiskLow: () => diskSpace.isLow,
      now,
      onChange: (state, before) => this.#storageChanged(state, before),
      onFailure: context.onStorageFailure
    })
  }

  /** Whether bindings refuse to add. */
  get isFull(): boolean {
    return this.storage.state !== "free" || this.#options.context.diskSpace.isLow
  }

  /** Whether the code of the environment does not run. */
  get isStopped(): boolean {
    return this.storage.state === "over"
  }

  /**
   * Bytes of the largest file of a process, which the kernel enforces: twice the ceiling, since the next
   * look ends the process before. Statements of the service without its code have no such limit.
   */
  get fileBytes(): number {
    return this.isStopped ? 0 : 2 * storageLimitsOf(this.#options.context.storageBytes).ceilingBytes
  }

  /** Returns the error for work that must not begin now. */
  refusalOf(kind: EntryKind, calls: number): Error | undefined {
    const { callsMax, now } = this.#options.context
    const wait = this.budget.waitMillis(now())
    if (wait > 0) return new UsedUp({ limit: "cpu", message: cpuMessage(wait) })
    if (kind === "maintenance") return undefined
    if (this.isStopped) return new UsedUp({ limit: "storage", message: this.#overMessage() })
    if (kind === "call" && calls >= callsMax) return new GateClosed({ reason: "busy" })
    return undefined
  }

  /** Writes to the logs when the CPU time is used up, and when calls begin again. */
  noteThrottling(): void {
    const wait = this.budget.waitMillis(this.#options.context.now())
    if (wait > 0 === this.#isThrottled) return
    this.#isThrottled = wait > 0
    if (wait > 0) this.#options.note("error", cpuMessage(wait))
    else this.#options.note("info", "The functions have CPU time again, and answer calls.")
  }

  /** What the environment has used, for its status. */
  get usage(): FunctionsUsage {
    const { cpuMillisPerMinute, now, storageBytes } = this.#options.context
    return {
      cpu: {
        usedMs: Math.max(0, Math.round(this.budget.usedMillis(now()))),
        maxMs: cpuMillisPerMinute,
        waitMs: Math.ceil(this.budget.waitMillis(now()))
      },
      storage: { bytes: this.storage.bytes, maxBytes: storageBytes, state: this.storage.state }
    }
  }

  #storageChanged(state: StorageState, before: StorageState): void {
    const { note, onResume, onStop } = this.#options
    if (state === "over") {
      note("error", this.#overMessage())
      return onStop()
    }
    if (state === "full")
      note("error", this.#options.context.diskSpace.isLow ? lowMessage : fullMessage)
    else note("info", freeMessage)
    if (before === "over") onResume()
  }

  #overMessage(): string {
    const { storageBytes } = this.#options.context
    const stored = inMebibytes(this.storage.bytes)
    const allowed =
      storageBytes === 0
        ? "the disk of the service is nearly full"
        : `the limit is ${inMebibytes(storageBytes)}`
    return (
      `The functions are stopped: this environment stores ${stored} or more, and ${allowed}. Delete rows ` +
      "by db/query, keys or files, or all data by DELETE functions?purge=true. They run again below the limit."
    )
  }
}

const cpuMessage = (waitMillis: number): string =>
  "The functions of this environment have used the CPU time of a minute. Calls begin again in " +
  `${seconds(waitMillis)} s. The operator sets SVC_FUNCTIONS_CPU_SECONDS_PER_MINUTE.`

const fullMessage =
  "The storage of this environment is full: writes are refused until data is deleted, or the operator " +
  "raises SVC_FUNCTIONS_STORAGE_MB."
const lowMessage =
  "The disk of the service is nearly full: writes are refused until the operator has freed space."
const freeMessage = "The storage of this environment takes data again."

/** Lines about the end of a process. */
export const endMessages = {
  budget: "The process was ended: it used more than the CPU time of a minute.",
  cpu: "The process was ended: a call used more CPU time than limits.cpuMs.",
  memory: "The process was ended: it used more memory than an environment may.",
  storage: "The process was ended: the environment stores more than it may.",
  crash: "The process has crashed."
} as const
