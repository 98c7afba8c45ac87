/**
 * The joins of a batch of commands. They take effect together: all joined connections receive the same
 * snapshot text, and then their replies.
 */
import type { ChannelOutput } from "./messages.ts"
import type { ChannelState } from "./model.ts"
import type { ChannelView, Entry } from "./view.ts"

/** An output and the node that receives it. */
interface NodeOutput {
  readonly node: string
  readonly output: ChannelOutput
}

export class PendingJoins {
  #entries: Array<Entry> = []
  #replies: Array<NodeOutput> = []

  add(entry: Entry): void {
    this.#entries.push(entry)
  }

  /** Adds a reply that follows the snapshots. */
  addReply(node: string, output: ChannelOutput): void {
    this.#replies.push({ node, output })
  }

  /** Drops the joined connections: their node already delivers to them. */
  dropEntries(): void {
    this.#entries = []
  }

  /**
   * Returns the snapshots of the collected joins, then their replies, and empties the collection.
   */
  take(state: ChannelState | undefined, view: ChannelView, now: number): ReadonlyArray<NodeOutput> {
    const entries = this.#entries
    const replies = this.#replies
    if (entries.length === 0) {
      if (replies.length > 0) this.#replies = []
      return replies
    }
    this.#entries = []
    this.#replies = []
    if (state === undefined) return replies
    const snapshots = Array.from(
      Map.groupBy(entries, (entry) => entry.node),
      ([node, here]) => view.enter(state, here, now).map((output) => ({ node, output }))
    )
    return [...snapshots.flat(), ...replies]
  }
}
