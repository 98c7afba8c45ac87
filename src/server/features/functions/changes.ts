/**
 * Distributes changes of Functions to every node: a deployment, limits, secrets, a suspension, or the
 * end of the project. The receiving session must not wait, so each node passes changes to its runtime
 * outside that session.
 */
import { Context, Duration, Effect, Fiber, Layer, Schema } from "effect"
import { functions } from "#rpc/functions/limits"
import { EnvironmentId } from "#rpc/ids"
import { Invalidation } from "#server/platform/invalidation"
import { FunctionsRuntime } from "./runtime.ts"

const isEnvironmentId = Schema.is(EnvironmentId)

export class FunctionsChanges extends Context.Service<
  FunctionsChanges,
  {
    /** Sends a change to all nodes. Within a transaction, sends it at the commit. */
    readonly publish: (environmentId: string) => Effect.Effect<void>
    /**
     * Waits until all nodes have received the published changes, and the node that runs the
     * functions has applied them.
     */
    readonly awaitApplied: (environmentId: EnvironmentId) => Effect.Effect<void>
  }
>()("server/features/functions/changes/FunctionsChanges") {
  static readonly layer = Layer.effect(
    FunctionsChanges,
    Effect.gen(function* () {
      const invalidation = yield* Invalidation
      const runtime = yield* FunctionsRuntime
      const scope = yield* Effect.scope
      const applying = new Map<string, Fiber.Fiber<void>>()
      const apply = Effect.fnUntraced(function* (environmentId: EnvironmentId) {
        const before = applying.get(environmentId)
        const change = (before === undefined ? Effect.void : Fiber.await(before)).pipe(
          Effect.andThen(runtime.changed(environmentId)),
          Effect.catchCause((cause) =>
            Effect.logWarning("Failed to apply a change of functions", cause)
          )
        )
        const fiber = yield* Effect.forkIn(change, scope)
        applying.set(environmentId, fiber)
        fiber.addObserver(() => {
          if (applying.get(environmentId) === fiber) applying.delete(environmentId)
        })
      })
      const applyMissed = runtime.missedChanges.pipe(
        Effect.catchCause((cause) =>
          Effect.logWarning("Failed to apply missed changes of functions", cause)
        ),
        Effect.forkIn(scope)
      )
      yield* invalidation.subscribe(({ id, kind }) => {
        if (kind === "everything") return applyMissed
        return kind === "functions" && isEnvironmentId(id) ? apply(id) : Effect.void
      })
      return FunctionsChanges.of({
        publish: (id) => invalidation.publish({ kind: "functions", id }),
        awaitApplied: Effect.fnUntraced(function* (environmentId) {
          yield* invalidation.awaitAcknowledgements
          const fiber = applying.get(environmentId)
          yield* Effect.all(
            [
              fiber === undefined ? Effect.void : Fiber.await(fiber),
              runtime.settled(environmentId)
            ],
            { concurrency: "unbounded" }
          ).pipe(Effect.timeoutOption(Duration.millis(functions.changeMillis)))
        })
      })
    })
  )
}
