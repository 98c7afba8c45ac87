/** Gates of switches in the config that are no feature, for example of share tools. */
import { Effect } from "effect"
import { CurrentEnvironment } from "#rpc/auth"
import type { EnvironmentConfig } from "#rpc/config-document/document"
import { Configs } from "./service.ts"

/**
 * Makes the middleware of a gate: it fails with the error of `closed`, before the request is decoded.
 */
export const makeConfigGate = <E>(closed: (config: EnvironmentConfig) => E | undefined) =>
  Effect.map(
    Configs,
    (configs) =>
      <A, E2, R>(handler: Effect.Effect<A, E2, R>) =>
        Effect.gen(function* () {
          const { environmentId } = yield* CurrentEnvironment
          const error = closed((yield* configs.current(environmentId)).config)
          return yield* error === undefined ? handler : Effect.fail(error)
        })
  )
