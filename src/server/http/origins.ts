/**
 * Which pages may call with an environment's key (spec section 1, rule 4). A request without an
 * `Origin` comes from no page and always may.
 */
import { Context, Effect, Layer } from "effect"
import type { EnvironmentCaller } from "#rpc/auth"
import type { EnvironmentConfig } from "#rpc/config-document/document"
import { originAllowed } from "#rpc/config-document/origins"
import { OriginNotAllowed } from "#rpc/errors/codes"
import { Settings } from "#server/platform/settings/settings"
import { Configs } from "#server/features/config/service"

/** Origins whose answer is remembered for one version of a config. */
const rememberedMax = 1000

export class Origins extends Context.Service<
  Origins,
  {
    /** Whether a page of this origin may call with a key of the environment. */
    readonly check: (
      environment: EnvironmentCaller,
      origin: string | undefined
    ) => Effect.Effect<void, OriginNotAllowed>
  }
>()("server/http/origins/Origins") {
  static readonly layer = Layer.effect(
    Origins,
    Effect.gen(function* () {
      const configs = yield* Configs
      const own = new URL((yield* Settings).baseUrl).origin
      const isAllowed = makeIsAllowed()
      return Origins.of({
        check: Effect.fnUntraced(function* ({ environmentId, name }, origin) {
          if (origin === undefined || origin === own) return
          const { config } = yield* configs.current(environmentId)
          if (isAllowed(config, origin, name === "development")) return
          return yield* new OriginNotAllowed()
        })
      })
    })
  )
}

/** Reading origins is work: the answers to a config's usual pages are remembered as long as it is. */
const makeIsAllowed = () => {
  const remembered = new WeakMap<EnvironmentConfig, Map<string, boolean>>()
  return (config: EnvironmentConfig, origin: string, development: boolean): boolean => {
    if (config.web.allowedOrigins.length === 0) return true
    const answers = remembered.get(config) ?? new Map<string, boolean>()
    const known = answers.get(origin)
    if (known !== undefined) return known
    if (answers.size >= rememberedMax) answers.clear()
    const allowed = originAllowed(config, origin, { development })
    answers.set(origin, allowed)
    remembered.set(config, answers)
    return allowed
  }
}
