/** What all links of a node share: its flushes, its numbers of attachments, and the fibers of the hub. */
import { Clock, Effect, Fiber, Random } from "effect"
import { ThisNode } from "#entities/local-actors"
import { monotonicMillis } from "#entities/monotonic"
import { FlushScheduler, FlushTimers, NodeFlush } from "#server/platform/flush"
import type { NodeContext } from "./entity-link.ts"
import { makeReattachments } from "./reattachments.ts"

export interface NodeContexts {
  readonly context: NodeContext
  /** Sends at once: sessions and queues take one command after the other, so a wait only adds latency. */
  readonly immediateContext: NodeContext
}

export const makeNodeContexts = Effect.gen(function* () {
  const { id: node } = yield* ThisNode
  const scope = yield* Effect.scope
  const clock = yield* Clock.Clock
  const timers = yield* FlushTimers
  const random = yield* Random.Random
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  let attachments = 0
  const context: NodeContext = {
    node,
    scheduler: yield* NodeFlush,
    nextAttachment: () => ++attachments,
    random: () => random.nextDoubleUnsafe(),
    reattachment: yield* makeReattachments,
    /** Runs a fiber that ends with the hub. */
    run: (effect: Effect.Effect<void>): Fiber.Fiber<void> => Fiber.runIn(runFork(effect), scope)
  }
  const scheduler = new FlushScheduler(monotonicMillis(clock), { ...timers, busyMillis: () => 0 })
  const contexts: NodeContexts = { context, immediateContext: { ...context, scheduler } }
  return contexts
})
