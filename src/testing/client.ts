/** Clients of the player backend on the clock of an Effect program, which a test can advance. */
import { Clock, Context, Effect, Fiber, Random } from "effect"
import { type Client, type ClientOptions, createClient, type Timers } from "#client/client"

/** Clock, timers and randomness of the current program: virtual ones in tests of `@effect/vitest`. */
export const effectTimers: Effect.Effect<Timers> = Effect.gen(function* () {
  const context = yield* Effect.context<never>()
  const clock = yield* Clock.clockWith(Effect.succeed)
  const run = Effect.runForkWith(context)
  return {
    now: () => clock.currentTimeMillisUnsafe(),
    elapsed: () => Number(clock.monotonicTimeNanosUnsafe() / 1_000_000n),
    random: () => Context.get(context, Random.Random).nextDoubleUnsafe(),
    after: (millis, task) => {
      const fiber = run(Effect.andThen(Effect.sleep(millis), Effect.sync(task)))
      return () => void run(Fiber.interrupt(fiber))
    }
  }
})

/** Makes a client on the program's clock. */
export const makeClient = (options: ClientOptions): Effect.Effect<Client> =>
  Effect.map(effectTimers, (timers) => createClient({ timers, ...options }))
