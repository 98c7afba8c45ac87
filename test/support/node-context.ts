/** The node of a link that stands alone in a test. */
import { Effect, Fiber } from "effect"
import { FlushScheduler } from "#server/platform/flush"
import type { NodeContext } from "#server/links/entity-link"

/** Runs the link's effects until the scope closes. Attachments count up, and wait for nobody. */
export const makeNodeContext = Effect.gen(function* () {
  const scope = yield* Effect.scope
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  let attachments = 0
  const context: NodeContext = {
    node: "n1",
    scheduler: new FlushScheduler(() => 0),
    random: () => 0,
    nextAttachment: () => ++attachments,
    reattachment: Effect.succeed(() => undefined),
    run: (effect) => Fiber.runIn(runFork(effect), scope)
  }
  return context
})
