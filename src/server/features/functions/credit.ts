/** Prepaid credit of an environment's project: the one question that Functions ask of billing. */
import { Context, Effect } from "effect"
import type { EnvironmentCaller } from "#rpc/auth"
import type { PrepaidRequired } from "#rpc/errors/codes"

/** Fails unless the environment may enable Functions. A service without billing asks for no credit. */
export const FunctionsCredit = Context.Reference<
  (environment: EnvironmentCaller) => Effect.Effect<void, PrepaidRequired>
>("server/features/functions/credit/FunctionsCredit", {
  defaultValue: () => () => Effect.void
})
