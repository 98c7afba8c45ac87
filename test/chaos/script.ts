/** How a long run is started by hand: it says why it has failed, and ends when it is through. */
import { NodeRuntime } from "@effect/platform-node"
import { Effect } from "effect"

export const runScript = <E>(script: Effect.Effect<void, E>): void =>
  script.pipe(
    Effect.tapCause((cause) => {
      process.exitCode = 1
      return Effect.logError("The run has failed", cause)
    }),
    // Connections that are kept alive for the next call hold nobody up.
    Effect.ensuring(Effect.sync(() => process.exit())),
    NodeRuntime.runMain
  )
