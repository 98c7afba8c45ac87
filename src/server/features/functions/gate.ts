/** The feature gate of Functions. */
import { Context, Effect, Layer } from "effect"
import { CurrentEnvironment } from "#rpc/auth"
import { FeatureDisabled, FeatureUnavailable } from "#rpc/errors/codes"
import { functionsConfigPath, FunctionsGate, RequiresFunctions } from "#rpc/functions/gate"
import { FunctionsRepository } from "#sql/functions/settings"
import { FunctionsRuntime } from "./runtime.ts"

/** Returns the error for a machine that cannot run Functions. */
export const unavailableFor = (reason: string) =>
  new FeatureUnavailable({
    message: `This service cannot run Functions: ${reason}`,
    details: { features: ["functions"] }
  })

const disabled = new FeatureDisabled({
  message: "Functions are turned off. Turn them on with POST .../functions/enable.",
  details: { feature: "functions", configPath: functionsConfigPath }
})

export const FunctionsGateLive = Layer.effect(
  FunctionsGate,
  Effect.gen(function* () {
    const repository = yield* FunctionsRepository
    const { unavailable } = yield* FunctionsRuntime
    return FunctionsGate.of(
      Effect.fnUntraced(function* (handler, { endpoint }) {
        if (!Context.get(endpoint.annotations, RequiresFunctions)) return yield* handler
        if (unavailable !== undefined) return yield* unavailableFor(unavailable)
        const { environmentId } = yield* CurrentEnvironment
        const { enabled } = yield* repository.find(environmentId)
        return yield* enabled ? handler : disabled
      })
    )
  })
)
