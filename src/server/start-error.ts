/** A failed start whose reason is already on stderr. */
import { Console, Data, Effect, Runtime } from "effect"

/** The runtime prints no stack trace for it. */
class StartError extends Data.TaggedError("StartError") {
  override readonly [Runtime.errorReported] = false
}

/** Prints the reason and fails. */
export const failStart = (reason: string) =>
  Effect.andThen(
    Console.error(`Failed to start the service.\n${reason}`),
    Effect.fail(new StartError())
  )
