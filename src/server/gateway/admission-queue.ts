/**
 * Queue of connections that wait for admission. After a deploy all players of a node come back at once. Started
 * together, they would all be admitted at the end, later than their clients wait. So a bounded number
 * starts in each iteration of the event loop, in order of arrival, and environments alternate. A node with
 * time to spare starts each connection at once.
 */
import { Effect } from "effect"

/** Connections that start in one iteration of the event loop; they share the statements of look-ups. */
export const startsPerIteration = 64

export class AdmissionQueue {
  readonly #soon: (run: () => void) => void
  /** Waiting connections by environment; the first set is the next one. */
  readonly #queues = new Map<string, Set<() => void>>()
  #started = 0
  #scheduled = false

  /** Makes the queue; `soon` calls back in the next iteration of the event loop. */
  constructor(soon: (run: () => void) => void) {
    this.#soon = soon
  }

  /** Waits until the connection may start. At most as many wait as there are sockets. */
  await(environmentId: string): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.#schedule()
      if (this.#queues.size === 0 && this.#started < startsPerIteration) {
        this.#started += 1
        return Effect.void
      }
      return Effect.callback<void>((resume) => {
        const start = (): void => resume(Effect.void)
        const queue = this.#queues.get(environmentId) ?? new Set()
        this.#queues.set(environmentId, queue.add(start))
        return Effect.sync(() => this.#remove(environmentId, start))
      })
    })
  }

  #remove(environmentId: string, start: () => void): void {
    const queue = this.#queues.get(environmentId)
    queue?.delete(start)
    if (queue?.size === 0) this.#queues.delete(environmentId)
  }

  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    this.#soon(() => this.#startNext())
  }

  #startNext(): void {
    this.#scheduled = false
    this.#started = 0
    while (this.#started < startsPerIteration) {
      const [next] = this.#queues
      if (next === undefined) return
      const [environmentId, queue] = next
      const [start] = queue
      this.#started += 1
      // The other environments come before the next connection of this one.
      this.#queues.delete(environmentId)
      if (start !== undefined) queue.delete(start)
      if (queue.size > 0) this.#queues.set(environmentId, queue)
      start?.()
    }
    this.#schedule()
  }
}
