/** Runs a long test by hand: logs why it failed, and exits when it is done. */
import { NodeRuntime } from "@effect/platform-node"
import { Effect } from "effect"

export const runScript = <E>(script: Effect.Effect<void, E>): void =>
  script.pipe(
    Effect.tapCause((cause) => {
      process.exitCode = 1
      return Effect.logError("Failed to complete the run", cause)
    }),
    // Idle keep-alive connections would keep the process running.
    Effect.ensuring(Effect.sync(() => process.exit())),
    NodeRuntime.runMain
  )
