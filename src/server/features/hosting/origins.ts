/**
 * Checks the `Origin` header against the environment's `web.allowedOrigins`. A request without one does
 * not come from a page and is always allowed.
 */
import { Context, Effect, Layer } from "effect"
import type { EnvironmentCaller } from "#rpc/auth"
import type { EnvironmentConfig } from "#rpc/config-document/document"
import { originAllowed } from "#rpc/config-document/origins"
import { OriginNotAllowed } from "#rpc/errors/codes"
import { Settings } from "#server/platform/settings/settings"
import { Configs } from "../config/service.ts"
import { HostedApps } from "./apps.ts"

/** Most cached origins for one version of a config. */
const cachedMax = 1000

export class Origins extends Context.Service<
  Origins,
  {
    /** Fails if a page of this origin may not use a key of the environment. */
    readonly check: (
      environment: Pick<EnvironmentCaller, "environmentId" | "name">,
      origin: string | undefined
    ) => Effect.Effect<void, OriginNotAllowed>
  }
>()("server/features/hosting/origins/Origins") {
  static readonly layer = Layer.effect(
    Origins,
    Effect.gen(function* () {
      const apps = yield* HostedApps
      const configs = yield* Configs
      const own = new URL((yield* Settings).baseUrl).origin
      const isAllowed = makeIsAllowed()
      return Origins.of({
        check: Effect.fnUntraced(function* ({ environmentId, name }, origin) {
          if (origin === undefined || origin === own) return
          const { config } = yield* configs.current(environmentId)
          if (isAllowed(config, origin, name === "development")) return
          if (yield* apps.isOwnOrigin(environmentId, origin)) return
          return yield* new OriginNotAllowed()
        })
      })
    })
  )
}

/** Caches results for as long as a config is current, since parsing origins is expensive. */
const makeIsAllowed = () => {
  const cache = new WeakMap<EnvironmentConfig, Map<string, boolean>>()
  return (config: EnvironmentConfig, origin: string, development: boolean): boolean => {
    if (config.web.allowedOrigins.length === 0) return true
    const results = cache.get(config) ?? new Map<string, boolean>()
    const known = results.get(origin)
    if (known !== undefined) return known
    if (results.size >= cachedMax) results.clear()
    const allowed = originAllowed(config, origin, { development })
    results.set(origin, allowed)
    cache.set(config, results)
    return allowed
  }
}
