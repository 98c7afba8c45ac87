/**
 * Free space of the disk on which functions store their data. While little is left, no environment may
 * add to it: the service and other environments need it.
 */
import { statfs } from "node:fs/promises"
import { functionStorage } from "#rpc/functions/runtime-limits"

export class DiskSpace {
  readonly #directory: string
  readonly #reserveBytes: number
  readonly #now: () => number
  readonly #onChange: (isLow: boolean) => void
  #readAt = -Infinity
  isLow = false

  /** `reserveBytes` of 0 means that all space may be used. */
  constructor(
    directory: string,
    reserveBytes: number,
    now: () => number,
    onChange: (isLow: boolean) => void
  ) {
    this.#directory = directory
    this.#reserveBytes = reserveBytes
    this.#now = now
    this.#onChange = onChange
  }

  /** Looks at the disk, unless that was done a moment ago. */
  async refresh(): Promise<void> {
    if (this.#reserveBytes === 0 || this.#now() - this.#readAt < functionStorage.diskCheckMillis)
      return
    this.#readAt = this.#now()
    const { bavail, bsize } = await statfs(this.#directory)
    const isLow = bavail * bsize < this.#reserveBytes
    if (isLow === this.isLow) return
    this.isLow = isLow
    this.#onChange(isLow)
  }
}
