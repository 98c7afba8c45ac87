/** Work that a connection has started, and that ends with it. */
import { type Effect, Fiber } from "effect"

export type RunFork = (effect: Effect.Effect<void>) => Fiber.Fiber<void>

export class ConnectionWork {
  readonly #run: RunFork
  readonly #fibers = new Set<Fiber.Fiber<void>>()

  constructor(run: RunFork) {
    this.#run = run
  }

  start(effect: Effect.Effect<void>): void {
    const fiber = this.#run(effect)
    if (fiber.pollUnsafe() !== undefined) return
    this.#fibers.add(fiber)
    fiber.addObserver(() => this.#fibers.delete(fiber))
  }

  /** Interrupts what still runs. */
  interrupt(): void {
    for (const fiber of this.#fibers) this.#run(Fiber.interrupt(fiber))
    this.#fibers.clear()
  }
}
