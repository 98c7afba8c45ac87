/**
 * Bytes that an environment takes on disk, measured now and then by a program beside the service: to look at
 * many files would delay calls.
 */
import { execFile } from "node:child_process"
import { promisify } from "node:util"
import { functionStorage as limits } from "#rpc/function-runtime-limits"

const run = promisify(execFile)

/** Bytes of the blocks below a directory; a file that is removed meanwhile does not count. */
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

  /** Measures again, if the environment was used since. */
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
