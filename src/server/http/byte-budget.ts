/**
 * Budget in bytes that all connections of a process share, for bodies that are being read and for
 * responses that are not read yet. When it is exhausted, the owner with the most bytes loses its oldest
 * holding: a client that holds little, and only for a moment, is not affected.
 */

/** Why a holding is cut: the budget is exhausted, or the client took longer than its deadline. */
export type CutReason = "exhausted" | "late"

/** Bytes that one connection holds. */
export interface Holding {
  /** Adds bytes. May cut other holdings, or this one. */
  readonly add: (bytes: number) => void
  /** From now on the holding is not cut: the bytes wait for the service, not for the client. */
  readonly keep: () => void
  readonly release: () => void
}

interface Entry {
  readonly owner: string
  readonly deadline: number
  readonly cut: (reason: CutReason) => void
  bytes: number
}

/** Shares `maxBytes` among holdings. Times are in milliseconds, of any monotonic clock. */
export class ByteBudget {
  readonly #maxBytes: number
  /** In the order of their opening. */
  readonly #cuttable = new Set<Entry>()
  readonly #open = new Set<Entry>()
  #bytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Bytes of all holdings. */
  get bytes(): number {
    return this.#bytes
  }

  /** Opens a holding. `cut` runs at most once, after the holding was released. */
  open(owner: string, deadline: number, cut: (reason: CutReason) => void): Holding {
    const entry: Entry = { owner, deadline, cut, bytes: 0 }
    this.#open.add(entry)
    this.#cuttable.add(entry)
    return {
      add: (bytes) => {
        if (!this.#open.has(entry)) return
        entry.bytes += bytes
        this.#bytes += bytes
        while (this.#bytes > this.#maxBytes && this.#cuttable.size > 0) {
          this.#cut(this.#largest(), "exhausted")
        }
      },
      keep: () => void this.#cuttable.delete(entry),
      release: () => this.#release(entry)
    }
  }

  /** Cuts the holdings whose deadline has passed. */
  sweep(now: number): void {
    for (const entry of this.#cuttable) if (entry.deadline <= now) this.#cut(entry, "late")
  }

  #release(entry: Entry): void {
    this.#cuttable.delete(entry)
    if (this.#open.delete(entry)) this.#bytes -= entry.bytes
  }

  #cut(entry: Entry | undefined, reason: CutReason): void {
    if (entry === undefined) return
    this.#release(entry)
    entry.cut(reason)
  }

  /** The oldest holding of the owner with the most bytes. */
  #largest(): Entry | undefined {
    const byOwner = new Map<string, number>()
    for (const { bytes, owner } of this.#cuttable) {
      byOwner.set(owner, (byOwner.get(owner) ?? 0) + bytes)
    }
    const most = Math.max(...byOwner.values())
    for (const entry of this.#cuttable) if (byOwner.get(entry.owner) === most) return entry
    return undefined
  }
}
