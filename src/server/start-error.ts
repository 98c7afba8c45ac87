/** A failed start, or a refused command, whose reason is already on stderr. */
import { Console, Data, Effect, Runtime } from "effect"

/** The runtime prints no stack trace for it. */
class StartError extends Data.TaggedError("StartError") {
  override readonly [Runtime.errorReported] = false
}

/** Prints the reason and fails. */
export const failCommand = (reason: string) =>
  Effect.andThen(Console.error(reason), Effect.fail(new StartError()))

/** Prints that the service does not start, and why, and fails. */
export const failStart = (reason: string) => failCommand(`Failed to start the service.\n${reason}`)
