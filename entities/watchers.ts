/**
 * The nodes that watch an entity: the outputs that wait for each, its current attachment, and since
 * when an expected node is absent. The cluster repeats a call when its connection breaks, so
 * attachments and calls carry numbers, and a repeated number is ignored.
 */

/** Absence of a gateway's watch after which its members count as disconnected. */
const watchAbsenceSeconds = 5

/** Nodes whose last attachment an entity remembers, to ignore a repeated older one. */
export const watchersRememberedMax = 256

/** Receiver of an entity's outputs to one node. */
export interface Watcher<Output> {
  readonly send: (outputs: ReadonlyArray<Output>) => void
  /** Ends the stream, so that the node looks up the entity again. */
  readonly end: () => void
}

interface Watching<Output> {
  readonly watcher: Watcher<Output>
  batch: Array<Output>
}

const absenceMillis = watchAbsenceSeconds * 1000

export class Watchers<Output> {
  readonly #watching = new Map<string, Watching<Output>>()
  /** The newest attachment of each node, and the newest call that came through it; oldest first. */
  readonly #attachments = new Map<string, { readonly watch: number; call: number }>()
  /** Expected nodes that do not watch, with the start of their absence. */
  readonly #absentSince = new Map<string, number>()

  /** Starts an attachment of a node; false for a repeated or older one. */
  admit(node: string, watch: number): boolean {
    if ((this.#attachments.get(node)?.watch ?? 0) >= watch) return false
    this.#attachments.delete(node)
    this.#attachments.set(node, { watch, call: 0 })
    this.#forgetOldest()
    return true
  }

  /** Whether this is the attachment through which the node watches now. */
  isAttached(node: string, watch: number): boolean {
    return this.has(node) && this.#attachments.get(node)?.watch === watch
  }

  /** Registers a call of the current attachment; false for a repeated or older one. */
  acceptCall(node: string, call: number): boolean {
    const attachment = this.#attachments.get(node)
    if (attachment === undefined || attachment.call >= call) return false
    attachment.call = call
    return true
  }

  has(node: string): boolean {
    return this.#watching.has(node)
  }

  /** Whether any node watches. */
  get isWatched(): boolean {
    return this.#watching.size > 0
  }

  get nodes(): Iterable<string> {
    return this.#watching.keys()
  }

  add(node: string, watcher: Watcher<Output>): void {
    this.#absentSince.delete(node)
    this.#watching.set(node, { watcher, batch: [] })
  }

  /** Stops sending to a node. Given a watcher that a newer one replaced, returns false. */
  remove(node: string, watcher?: Watcher<Output>): boolean {
    if (watcher !== undefined && this.#watching.get(node)?.watcher !== watcher) return false
    return this.#watching.delete(node)
  }

  /** Marks a node as expected to watch. Returns false if it watches, or is expected already. */
  expect(node: string, now: number): boolean {
    if (this.#watching.has(node) || this.#absentSince.has(node)) return false
    this.#absentSince.set(node, now)
    return true
  }

  /** Stops counting the absence of a node that is about to watch. */
  cancelExpectation(node: string): void {
    this.#absentSince.delete(node)
  }

  /**
   * Time at which the next absent node counts as gone, Unix milliseconds; infinite without absent
   * nodes.
   */
  get absenceDeadline(): number {
    return Math.min(...this.#absentSince.values()) + absenceMillis
  }

  /** Removes and returns the nodes that have been absent for too long. */
  takeGone(now: number): ReadonlyArray<string> {
    const gone = Array.from(this.#absentSince)
      .filter(([, since]) => now >= since + absenceMillis)
      .map(([node]) => node)
    for (const node of gone) this.#absentSince.delete(node)
    return gone
  }

  /** Adds an output to the batch of one node; drops it if the node does not watch. */
  push(node: string, output: Output): void {
    this.#watching.get(node)?.batch.push(output)
  }

  /** Adds an output to the batch of every node. */
  broadcast(output: Output): void {
    for (const { batch } of this.#watching.values()) batch.push(output)
  }

  /** Sends each node its batch. */
  flush(): void {
    for (const watching of this.#watching.values()) {
      if (watching.batch.length === 0) continue
      const { batch } = watching
      watching.batch = []
      watching.watcher.send(batch)
    }
  }

  /** Removes all watching nodes without ending their streams. */
  clear(): void {
    this.#watching.clear()
    this.#absentSince.clear()
  }

  /**
   * Removes the absent nodes that attached longest ago, beyond the bound: each process is a new
   * node.
   */
  #forgetOldest(): void {
    for (const node of this.#attachments.keys()) {
      if (this.#attachments.size <= watchersRememberedMax) return
      if (!this.#watching.has(node)) this.#attachments.delete(node)
    }
  }

  /** Ends the streams of all nodes. */
  end(): void {
    const watchers = Array.from(this.#watching.values(), ({ watcher }) => watcher)
    this.clear()
    for (const watcher of watchers) watcher.end()
  }
}
