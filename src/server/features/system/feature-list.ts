/** List of features: those with a switch in the config, and Functions, which an endpoint enables. */
import { Effect } from "effect"
import { Api } from "#rpc/api"
import { CurrentEnvironment } from "#rpc/auth"
import type { FeatureState } from "#rpc/config"
import { featureTable } from "#rpc/config-document/features"
import { functionsConfigPath } from "#rpc/functions/gate"
import type { EnvironmentId } from "#rpc/ids"
import { FunctionsRepository } from "#sql/functions/settings"
import { apiGroup, mounted } from "#server/platform/api-group"
import { Settings } from "#server/platform/settings/settings"
import { Configs } from "../config/service.ts"
import { FunctionsRuntime } from "../functions/runtime.ts"

/** State of Functions. A deployment offers them where its machine can run them. */
const makeFunctions = Effect.gen(function* () {
  const repository = yield* FunctionsRepository
  const { unavailable } = yield* FunctionsRuntime
  const offered = unavailable === undefined
  return Effect.fnUntraced(function* (environmentId: EnvironmentId) {
    const { enabled } = yield* repository.find(environmentId)
    const state: FeatureState = {
      key: "functions",
      title: "Functions",
      description:
        "Code of yours that runs beside the service, with its own address, database and hooks.",
      configPath: functionsConfigPath,
      source: "endpoint",
      enabled: offered && enabled,
      offered
    }
    return state
  })
})

const makeFeatures = Effect.gen(function* () {
  const configs = yield* Configs
  const functions = yield* makeFunctions
  const settings = yield* Settings
  return {
    list: Effect.fnUntraced(function* () {
      const { environmentId } = yield* CurrentEnvironment
      const { features } = (yield* configs.current(environmentId)).config
      const states = Object.values(featureTable).map((feature): FeatureState => {
        const offered = settings.features.has(feature.key)
        return { ...feature, source: "config", enabled: features[feature.key], offered }
      })
      return { features: [...states, yield* functions(environmentId)] }
    })
  }
})

/** The groups `features` and `projectFeatures`. */
export const FeaturesHttp = mounted(makeFeatures, (all) => [
  apiGroup(Api, "features", (handlers) => handlers.handleAll(all)),
  apiGroup(Api, "projectFeatures", (handlers) => handlers.handleAll(all))
])
