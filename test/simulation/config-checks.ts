/** The invariants of configs. After everything has been healthy for a while the newest one is in force. */
import { Effect } from "effect"
import { isDeserted } from "#entities/room/model"
import { Configs } from "#server/features/config/service"
import type { ConfigPushes } from "./config-pushes.ts"
import { environmentId } from "./environment.ts"
import type { RoomRecord } from "./record.ts"
import type { Runner } from "./runner.ts"
import type { Simulator } from "./simulator.ts"

/**
 * All runners have the newest config, and without multiplayer no room is open. A room that nobody is
 * connected to may have woken after the push; it ends with the graces of its members.
 */
export const checkConfigs = (
  simulator: Simulator,
  configs: ConfigPushes,
  record: RoomRecord,
  runners: ReadonlyArray<Runner>
): void => {
  for (const runner of runners.filter(({ open }) => open)) {
    runner.run(
      Effect.gen(function* () {
        const { current } = yield* Configs
        const { version } = yield* current(environmentId)
        if (version !== configs.version) {
          simulator.fault(`${runner.name} has config ${version}, not ${configs.version}`)
        }
      })
    )
  }
  if (configs.multiplayer) return
  for (const { actor } of record.speaking()) {
    const { state } = actor
    if (state?.closed === null && !isDeserted(state))
      simulator.fault(`${actor.id} is open without multiplayer`)
  }
}
