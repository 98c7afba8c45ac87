/** `svc features`: lists the features of an environment and the config path that enables each. */
import { Effect } from "effect"
import { Command } from "effect/cli"
import type { FeatureState } from "#rpc/config"
import { environmentFlag } from "./files.ts"
import { printResult, stateStyle, table } from "./output.ts"
import { readFeatures } from "./service.ts"
import { resolveTarget } from "./checked-target.ts"

const stateOf = ({ enabled, offered }: FeatureState): string => {
  if (!offered) return "not offered"
  return enabled ? "on" : "off"
}

/** `svc features`. */
export const featuresCommand = Command.make(
  "features",
  { env: environmentFlag },
  Effect.fn(function* ({ env }) {
    const target = yield* resolveTarget(env)
    const features = yield* readFeatures(target)
    const rows = features.map((feature) => [
      feature.key,
      stateOf(feature),
      feature.configPath,
      feature.title
    ])
    yield* printResult(
      { environment: target.place.environment, features },
      table(["FEATURE", "STATE", "SWITCH", "TITLE"], rows, stateStyle("on"))
    )
  })
).pipe(Command.withDescription("List the features of an environment with their state"))
