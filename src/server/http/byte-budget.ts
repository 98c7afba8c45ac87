/**
 * Budget in bytes that all connections of a process share, for bodies in progress and for unread
 * responses. When it is exhausted, the owner with the most bytes loses its oldest holding. So a
 * client that holds little, and only for a moment, is not affected.
 */
import { type Link, LinkedList } from "#server/platform/linked-list"

/**
 * Reason for which a holding is cut: the budget is exhausted, or the client took longer than its
 * deadline.
 */
export type CutReason = "exhausted" | "late"

/** Bytes that one connection holds. */
export interface Holding {
  /** Adds bytes. May cut other holdings, or this one. */
  readonly add: (bytes: number) => void
  /** Excludes the holding from cuts: the bytes now wait for the service, not for the client. */
  readonly keep: () => void
  readonly release: () => void
}

interface Entry {
  readonly owner: string
  readonly deadline: number
  readonly cut: (reason: CutReason) => void
  bytes: number
  isOpen: boolean
}

/** Shares `maxBytes` among holdings. Times are in milliseconds, of any monotonic clock. */
export class ByteBudget {
  readonly #maxBytes: number
  /** Holdings in the order of their opening. */
  readonly #cuttable = new LinkedList<Entry>()
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
    const entry: Entry = { owner, deadline, cut, bytes: 0, isOpen: true }
    const link = this.#cuttable.add(entry)
    return {
      add: (bytes) => {
        if (!entry.isOpen) return
        entry.bytes += bytes
        this.#bytes += bytes
        while (this.#bytes > this.#maxBytes && !this.#cuttable.isEmpty) {
          this.#cut(this.#largest(), "exhausted")
        }
      },
      keep: () => this.#cuttable.remove(link),
      release: () => this.#release(link)
    }
  }

  /** Cuts the holdings whose deadline has passed. */
  sweep(now: number): void {
    const late = Array.from(this.#cuttable).filter(({ value }) => value.deadline <= now)
    for (const link of late) if (link.isIn) this.#cut(link, "late")
  }

  #release(link: Link<Entry>): void {
    this.#cuttable.remove(link)
    if (link.value.isOpen) this.#bytes -= link.value.bytes
    link.value.isOpen = false
  }

  #cut(link: Link<Entry> | undefined, reason: CutReason): void {
    if (link === undefined) return
    this.#release(link)
    link.value.cut(reason)
  }

  /** The oldest holding of the owner with the most bytes. */
  #largest(): Link<Entry> | undefined {
    const byOwner = new Map<string, number>()
    for (const { value } of this.#cuttable) {
      byOwner.set(value.owner, (byOwner.get(value.owner) ?? 0) + value.bytes)
    }
    const largest = Math.max(...byOwner.values())
    for (const link of this.#cuttable) if (byOwner.get(link.value.owner) === largest) return link
    return undefined
  }
}
