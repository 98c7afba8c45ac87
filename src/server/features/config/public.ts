/**
 * What an environment shows of its config: its public part to pages and apps (spec section 4.3,
 * decisions 3.5.4), its features to servers and the CLI (spec section 4.7, decisions 3.5.5).
 */
import { Effect, Function, Layer } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { Api } from "#rpc/api"
import { CurrentEnvironment } from "#rpc/auth"
import type { FeatureState } from "#rpc/config"
import { publicConfig } from "#rpc/config-document/definitions"
import { featureTable } from "#rpc/config-document/features"
import { Settings } from "#server/platform/settings/settings"
import { Configs, type CurrentConfig, etagOf, namesVersion } from "./service.ts"

/** The definitions of a config as they are answered, made once for each version. */
const definitionsText = Function.memoize(({ config, version }: CurrentConfig): string =>
  JSON.stringify(publicConfig(config, version))
)

const maxAgeSeconds = 60

const DefinitionsHttp = HttpApiBuilder.group(
  Api,
  "definitions",
  Effect.fn(function* (handlers) {
    const configs = yield* Configs
    return handlers.handle(
      "read",
      Effect.fnUntraced(function* ({ headers: { "if-none-match": known } }) {
        const { environmentId } = yield* CurrentEnvironment
        const current = yield* configs.current(environmentId)
        const headers = {
          etag: etagOf(current.version),
          "cache-control": `max-age=${maxAgeSeconds}`,
          // The same address is another document under another key, and none to some pages.
          vary: "Origin, X-Svc-Key"
        }
        if (known !== undefined && namesVersion(known, current.version)) {
          return HttpServerResponse.empty({ status: 304, headers })
        }
        return HttpServerResponse.text(definitionsText(current), {
          headers,
          contentType: "application/json"
        })
      })
    )
  })
)

/** Turned on by an endpoint of theirs, which this service does not have yet. */
const functions: FeatureState = {
  key: "functions",
  title: "Functions",
  configPath: null,
  source: "endpoint",
  enabled: false,
  offered: false
}

const makeFeatures = Effect.gen(function* () {
  const configs = yield* Configs
  const settings = yield* Settings
  return {
    list: Effect.fnUntraced(function* () {
      const { environmentId } = yield* CurrentEnvironment
      const { features } = (yield* configs.current(environmentId)).config
      const states = Object.values(featureTable).map((feature): FeatureState => {
        const offered = settings.features.has(feature.key)
        const enabled = offered && features[feature.key]
        return { ...feature, source: "config", enabled, offered }
      })
      return { features: [...states, functions] }
    })
  }
})

/** The groups `definitions`, `features` and `projectFeatures`. */
export const PublicConfigHttp = Layer.mergeAll(
  DefinitionsHttp,
  HttpApiBuilder.group(Api, "features", (handlers) =>
    Effect.map(makeFeatures, (all) => handlers.handleAll(all))
  ),
  HttpApiBuilder.group(Api, "projectFeatures", (handlers) =>
    Effect.map(makeFeatures, (all) => handlers.handleAll(all))
  )
)
