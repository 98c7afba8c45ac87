/**
 * Bytes of an environment on disk. A program beside the service measures them periodically, since a
 * scan of many files would delay calls.
 */
import { execFile } from "node:child_process"
import { promisify } from "node:util"
import { functionStorage as limits } from "#rpc/function-runtime-limits"

const run = promisify(execFile)

/** Returns the bytes of the blocks below a directory. Ignores files that disappear meanwhile. */
const bytesBelow = async (directory: string): Promise<number> => {
  const { stdout } = await run("du", ["-sk", directory], {
    timeout: limits.measureTimeoutMillis
  }).catch((error: { readonly stdout?: string }) => ({ stdout: error.stdout ?? "" }))
  return (Number.parseInt(stdout, 10) || 0) * 1024
}

export class StorageUse {
  readonly #maxBytes: number
  readonly #now: () => number
  readonly #onChange: (isFull: boolean) => void
  #measuredAt = -Infinity
  #isMeasuring = false
  isFull = false

  constructor(maxBytes: number, now: () => number, onChange: (isFull: boolean) => void) {
    this.#maxBytes = maxBytes
    this.#now = now
    this.#onChange = onChange
  }

  /** Measures again if a call used the environment since the last measurement. */
  refresh(directory: string, usedAt: number): void {
    if (this.#maxBytes === 0 || this.#isMeasuring || usedAt < this.#measuredAt) return
    if (this.#now() - this.#measuredAt < limits.measureMillis) return
    this.#isMeasuring = true
    this.#measuredAt = this.#now()
    void bytesBelow(directory).then((bytes) => {
      this.#isMeasuring = false
      const isFull = bytes > this.#maxBytes
      if (isFull === this.isFull) return
      this.isFull = isFull
      this.#onChange(isFull)
    })
  }
}
