/**
 * Watches what an environment stores, from outside of its process. Beyond the limit its bindings refuse
 * to add. Code can get around them, so beyond the ceiling it does not run any more.
 */
import { functionStorage } from "#rpc/functions/runtime-limits"

/** `full`: bindings refuse to add. `over`: the code of the environment does not run. */
export type StorageState = "free" | "full" | "over"

export interface StorageLimits {
  /** Bytes beyond which the environment is full. */
  readonly maxBytes: number
  /** Bytes beyond which its code does not run; 0 and Infinity mean no ceiling. */
  readonly ceilingBytes: number
}

/** Returns the limits for a number of bytes that the operator has set; 0 means no limit. */
export const storageLimitsOf = (storageBytes: number): StorageLimits =>
  storageBytes === 0
    ? { maxBytes: Infinity, ceilingBytes: 0 }
    : {
        maxBytes: storageBytes,
        ceilingBytes:
          storageBytes +
          Math.max(functionStorage.ceilingMinBytes, storageBytes * functionStorage.ceilingShare)
      }

/** What one look at an environment finds. */
export interface Finding {
  readonly bytes: number
  readonly isDiskLow: boolean
  /** Bytes that it had when the disk became low. */
  readonly bytesWhenLow: number
}

/** Returns the next state. Code that was stopped runs again when there is room below the limit. */
export const nextState = (
  before: StorageState,
  { ceilingBytes, maxBytes }: StorageLimits,
  { bytes, bytesWhenLow, isDiskLow }: Finding
): StorageState => {
  const ceiling = ceilingBytes === 0 ? Infinity : ceilingBytes
  const allowed = isDiskLow
    ? Math.min(ceiling, bytesWhenLow + functionStorage.ceilingMinBytes)
    : ceiling
  if (bytes > allowed) return "over"
  if (!isDiskLow && bytes <= maxBytes) return "free"
  return before === "over" && bytes > Math.min(maxBytes, bytesWhenLow) ? "over" : "full"
}

/** Facts that decide when to look again. */
export interface Waited {
  readonly sinceMillis: number
  /** Duration of the last look. */
  readonly tookMillis: number
  /** Bytes that the process has written since the last look; undefined if unknown. */
  readonly written: number | undefined
  /** Bytes that it may still add. */
  readonly roomBytes: number
}

/** Whether to look again: soon if much was written, and not so often that looking is the main work. */
export const isDue = ({ roomBytes, sinceMillis, tookMillis, written }: Waited): boolean => {
  const rest = Math.max(
    functionStorage.measureMinMillis,
    tookMillis * functionStorage.measureRestFactor
  )
  if (sinceMillis < rest) return false
  if (sinceMillis >= functionStorage.measureMillis) return true
  if (written === undefined) return sinceMillis >= functionStorage.measureBlindMillis
  return written > Math.max(functionStorage.writtenMinBytes, roomBytes / 2)
}

/** Reads of files and of the process. */
export interface StorageReader {
  readonly storedBytes: (pid: number | undefined, enoughBytes: number) => Promise<number>
  readonly writtenBytes: (pid: number) => number | undefined
}

/** Looks that run at once on a runner. */
export class Looks {
  #running = 0

  take(): boolean {
    if (this.#running >= functionStorage.measuredAtOnce) return false
    this.#running += 1
    return true
  }

  release(): void {
    this.#running -= 1
  }
}

export interface StorageUseOptions {
  readonly limits: StorageLimits
  readonly reader: StorageReader
  readonly looks: Looks
  readonly isDiskLow: () => boolean
  readonly now: () => number
  readonly onChange: (state: StorageState, before: StorageState) => void
  readonly onFailure: (error: unknown) => void
}

export class StorageUse {
  readonly #options: StorageUseOptions
  #state: StorageState = "free"
  #bytes = 0
  #bytesWhenLow = Infinity
  #measuredAt = -Infinity
  #tookMillis = 0
  #measuring: Promise<void> | undefined
  /** Process that has written since the last look, and what it had written then. */
  #writer: { readonly pid: number; readonly writtenBefore: number } | undefined
  #checkedAt = -Infinity

  constructor(options: StorageUseOptions) {
    this.#options = options
  }

  get state(): StorageState {
    return this.#state
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Looks again if a process has run since the last look and it is time. Costs little otherwise. */
  refresh(pid: number | undefined): void {
    const { isDiskLow, limits: own, looks, now, reader } = this.#options
    if (this.#measuring !== undefined) return
    if (own.ceilingBytes === 0 && !isDiskLow() && this.#state === "free") return
    const at = now()
    if (at - this.#checkedAt < functionStorage.checkMillis) return
    this.#checkedAt = at
    if (pid !== undefined && this.#writer?.pid !== pid) this.#writer = { pid, writtenBefore: 0 }
    if (this.#writer === undefined && this.#state === "free") return
    const total = pid === undefined ? undefined : reader.writtenBytes(pid)
    const written = total === undefined ? undefined : total - (this.#writer?.writtenBefore ?? 0)
    const roomBytes = own.ceilingBytes - this.#bytes
    const waited = { sinceMillis: at - this.#measuredAt, tookMillis: this.#tookMillis }
    if (!isDue({ ...waited, written, roomBytes }) || !looks.take()) return
    this.#writer =
      pid === undefined || total === undefined ? undefined : { pid, writtenBefore: total }
    void this.#measure(pid).finally(() => looks.release())
  }

  /** Looks now. */
  async measure(pid: number | undefined): Promise<void> {
    await this.#measuring
    await this.#measure(pid)
  }

  /** Looks unless that was done before. */
  async ensureMeasured(): Promise<void> {
    const hasLimit = this.#options.limits.ceilingBytes > 0 || this.#options.isDiskLow()
    if (hasLimit && this.#measuredAt === -Infinity) await this.measure(undefined)
  }

  #measure(pid: number | undefined): Promise<void> {
    const { limits: own, now, onFailure, reader } = this.#options
    this.#measuredAt = now()
    const enough = own.ceilingBytes === 0 ? Infinity : own.ceilingBytes
    const measuring = reader.storedBytes(pid, enough).then(
      (bytes) => this.#found(bytes),
      (error: unknown) => onFailure(error)
    )
    this.#measuring = measuring.finally(() => {
      this.#measuring = undefined
      this.#tookMillis = now() - this.#measuredAt
    })
    return this.#measuring
  }

  #found(bytes: number): void {
    const isDiskLow = this.#options.isDiskLow()
    if (!isDiskLow) this.#bytesWhenLow = Infinity
    else if (this.#bytesWhenLow === Infinity) this.#bytesWhenLow = bytes
    this.#bytes = bytes
    const before = this.#state
    const finding = { bytes, isDiskLow, bytesWhenLow: this.#bytesWhenLow }
    this.#state = nextState(before, this.#options.limits, finding)
    if (this.#state !== before) this.#options.onChange(this.#state, before)
  }
}
