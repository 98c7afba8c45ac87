/** Timer of an actor: fires once, at the earliest of the times it was set to. */
import { Clock, Effect, FiberHandle } from "effect"

/** Returns a function that sets the timer, in Unix milliseconds. */
export const makeTimer = Effect.fnUntraced(function* (fire: () => void) {
  const clock = yield* Clock.Clock
  const run = yield* FiberHandle.makeRuntime<never>()
  let deadline = Number.POSITIVE_INFINITY
  return (millis: number): void => {
    if (millis >= deadline) return
    deadline = millis
    // At least 1 ms: `fire` may set the timer again, and the handle keeps only the newest fiber.
    const wait = Math.max(1, millis - clock.currentTimeMillisUnsafe())
    run(
      Effect.delay(
        Effect.sync(() => {
          deadline = Number.POSITIVE_INFINITY
          fire()
        }),
        wait
      )
    )
  }
})
