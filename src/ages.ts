/** What a player may do by age (spec section 2.2, decisions 3.3.13). */
import { Effect } from "effect"
import { type AgeBand, ageProfileOf } from "#rpc/ages"
import type { EnvironmentId } from "#rpc/ids"
import { Configs } from "./config.ts"

/** The capabilities of a player of this environment. */
export const capabilitiesIn = Effect.fnUntraced(function* (
  environmentId: EnvironmentId,
  declared: AgeBand | null
) {
  const configs = yield* Configs
  const { config } = yield* configs.current(environmentId)
  return ageProfileOf(config.audience, declared).capabilities
})
