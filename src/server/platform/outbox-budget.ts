/**
 * Budget in bytes that the sockets of a node share for what their clients have not read yet. When it is
 * exhausted, the environment with the most unread bytes loses the sockets with the largest backlogs.
 * A closed socket has a moment for its close frame, unless the budget is exhausted once more.
 */

/** Unsent output of one socket. */
export interface Backlog {
  /** The environment of the socket; empty before its credentials are checked. */
  readonly environmentId: string
  /** Bytes that wait now. */
  readonly waitingBytes: number
  /** The socket sends nothing more, and waits for its client to confirm that. */
  readonly isClosing: boolean
  /** Closes the socket with 1013. */
  readonly closeSlow: () => void
  /** Cuts the connection. */
  readonly cut: () => void
}

/** The backlog of one socket as the budget last counted it. */
interface Share {
  readonly backlog: Backlog
  bytes: number
}

/** Open sockets keep this part of an exhausted budget, so that it is not exhausted again at once. */
const openPart = 3 / 4
/** Open and closing sockets keep this part together. */
const totalPart = 7 / 8

export class OutboxBudget {
  readonly #maxBytes: number
  /** Sockets with unread bytes, in the order in which they fell behind. */
  readonly #behind = new Map<Backlog, Share>()
  #bytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Unread bytes as last counted. */
  get bytes(): number {
    return this.#bytes
  }

  /** Counts what waits for a socket. May close sockets, this one included. */
  count(backlog: Backlog): void {
    const { waitingBytes } = backlog
    const share = this.#behind.get(backlog)
    if (share !== undefined) this.#set(share, waitingBytes)
    else if (waitingBytes > 0) this.#set(this.#add(backlog), waitingBytes)
    if (this.#bytes > this.#maxBytes) this.#enforce()
  }

  /** Releases the backlog of a connection that has ended. */
  release(backlog: Backlog): void {
    const share = this.#behind.get(backlog)
    if (share !== undefined) this.#set(share, 0)
  }

  /** Counts all sockets once more: clients read without notice. */
  sweep(): void {
    for (const share of this.#behind.values()) this.#set(share, share.backlog.waitingBytes)
  }

  #add(backlog: Backlog): Share {
    const share = { backlog, bytes: 0 }
    this.#behind.set(backlog, share)
    return share
  }

  #set(share: Share, bytes: number): void {
    this.#bytes += bytes - share.bytes
    share.bytes = bytes
    if (bytes === 0) this.#behind.delete(share.backlog)
  }

  #enforce(): void {
    this.sweep()
    if (this.#bytes <= this.#maxBytes * totalPart) return
    const shares = Array.from(this.#behind.values())
    for (const { backlog } of overBudget(shares, this.#maxBytes * openPart)) backlog.closeSlow()
    // The oldest first: its client has had the longest time for its close frame.
    const closing = shares.filter(({ backlog }) => backlog.isClosing)
    for (const share of closing) {
      if (this.#bytes <= this.#maxBytes * totalPart) return
      this.#set(share, 0)
      share.backlog.cut()
    }
  }
}

/** The shares to close so that the open ones have at most `maxBytes`. */
const overBudget = (all: ReadonlyArray<Share>, maxBytes: number): ReadonlyArray<Share> => {
  const open = all.filter(({ backlog }) => !backlog.isClosing)
  const tenants = Map.groupBy(open, ({ backlog }) => backlog.environmentId)
  const ranked = Array.from(tenants.values(), (shares) => ({
    // The largest is last.
    shares: shares.toSorted((a, b) => a.bytes - b.bytes),
    bytes: shares.reduce((sum, { bytes }) => sum + bytes, 0)
  }))
  let left = ranked.reduce((sum, { bytes }) => sum + bytes, 0)
  const chosen: Array<Share> = []
  while (left > maxBytes) {
    const largest = ranked.reduce((max, tenant) => (tenant.bytes > max.bytes ? tenant : max))
    const share = largest.shares.pop()
    if (share === undefined) break
    largest.bytes -= share.bytes
    left -= share.bytes
    chosen.push(share)
  }
  return chosen
}
