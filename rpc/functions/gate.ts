/** The feature gate of Functions, which have no switch in the config: an endpoint turns them on. */
import { Context } from "effect"
import { HttpApiMiddleware } from "effect/http-api"
import type { CurrentEnvironment } from "../auth.ts"
import { FeatureDisabled, FeatureUnavailable, wire } from "../errors/codes.ts"

/** What enables Functions, where other features have a path in the config: this endpoint. */
export const functionsConfigPath = "functions/enable"

/** Marks an endpoint that needs Functions to be on; read by {@link FunctionsGate}. */
export const RequiresFunctions = Context.Reference<boolean>(
  "rpc/functions/gate/RequiresFunctions",
  {
    defaultValue: () => false
  }
)

/**
 * Middleware that refuses disabled Functions before anything is read or written: 403
 * `feature_disabled`, or `feature_unavailable` where the machine cannot run Functions.
 */
export class FunctionsGate extends HttpApiMiddleware.Service<
  FunctionsGate,
  { requires: CurrentEnvironment }
>()("rpc/functions/gate/FunctionsGate", {
  error: [wire(FeatureDisabled), wire(FeatureUnavailable)]
}) {}
