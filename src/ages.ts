/** What a player may do by age (spec section 2.2, decisions 3.3.13). */
import { Effect } from "effect"
import { ageBandOf, capabilitiesOf } from "#rpc/ages"
import type { EnvironmentId } from "#rpc/ids"
import { Configs } from "./config.ts"

/** The capabilities of a player of this environment who has declared no age. */
export const capabilitiesIn = Effect.fnUntraced(function* (environmentId: EnvironmentId) {
  const configs = yield* Configs
  const { config } = yield* configs.current(environmentId)
  return capabilitiesOf(ageBandOf(config.audience, null))
})
