/**
 * The nodes that hear a channel, what is about to be told to each, and those that have fallen silent.
 * An item for everyone goes into each node's batch once.
 */
import { rooms } from "#rpc/limits"
import { Attachments } from "../attachments.ts"
import type { Watcher } from "../output-queue.ts"
import type { ChannelOutput } from "./messages.ts"

const absenceMillis = rooms.watchAbsenceSeconds * 1000

export class Watchers {
  readonly #watching = new Map<
    string,
    { readonly watcher: Watcher<ChannelOutput>; batch: Array<ChannelOutput> }
  >()
  readonly attachments = new Attachments()
  /** Nodes that do not watch (any more), and since when. */
  readonly #absent = new Map<string, number>()
  /** Connections that are out and could not be told so: their node does not watch. */
  readonly #out = new Set<string>()

  /** Is this the attachment that the node hears through? */
  watches(node: string, watch: number): boolean {
    return this.has(node) && this.attachments.isLast(node, watch)
  }

  has(node: string): boolean {
    return this.#watching.has(node)
  }

  get names(): Iterable<string> {
    return this.#watching.keys()
  }

  add(node: string, watcher: Watcher<ChannelOutput>): void {
    this.#absent.delete(node)
    this.#watching.set(node, { watcher, batch: [] })
  }

  /** Nothing more is told to the node for now. */
  remove(node: string): void {
    this.#watching.delete(node)
  }

  /** Is this what the node hears through? Not when it has attached anew since. */
  hears(node: string, watcher: Watcher<ChannelOutput>): boolean {
    return this.#watching.get(node)?.watcher === watcher
  }

  /** The node does not watch: from now on its absence counts. */
  expect(node: string, now: number): void {
    if (!this.#watching.has(node) && !this.#absent.has(node)) this.#absent.set(node, now)
  }

  /** When the next absent node counts as gone, Unix milliseconds; infinite when none is absent. */
  get dueAt(): number {
    return Math.min(...this.#absent.values()) + absenceMillis
  }

  /** The nodes that have been away for too long. */
  takeGone(now: number): ReadonlyArray<string> {
    const gone = Array.from(this.#absent).filter(([, since]) => now >= since + absenceMillis)
    if (gone.length === this.#absent.size) this.#out.clear()
    for (const [node] of gone) {
      this.#absent.delete(node)
      this.attachments.delete(node)
    }
    return gone.map(([node]) => node)
  }

  push(node: string, item: ChannelOutput): void {
    this.#watching.get(node)?.batch.push(item)
  }

  /** The connection hears no more. One whose node does not watch learns it when that is back. */
  exit(node: string, player: string, connection: string): void {
    if (this.#watching.has(node)) this.push(node, { kind: "exit", player, connection })
    else this.#out.add(connection)
  }

  /** Is this connection out without having been told? */
  takeOut(connection: string): boolean {
    return this.#out.delete(connection)
  }

  everywhere(item: ChannelOutput): void {
    for (const { batch } of this.#watching.values()) batch.push(item)
  }

  /** Tells each node what has gathered for it. */
  flush(): void {
    for (const watching of this.#watching.values()) {
      if (watching.batch.length === 0) continue
      const { batch } = watching
      watching.batch = []
      watching.watcher.send(batch)
    }
  }

  /** Forgets everyone; answers who was watching. */
  clear(): ReadonlyArray<Watcher<ChannelOutput>> {
    const watchers = Array.from(this.#watching.values(), ({ watcher }) => watcher)
    this.#watching.clear()
    this.#absent.clear()
    return watchers
  }
}
