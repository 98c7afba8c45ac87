/**
 * Stores the OAuth flows of developers between their HTTP requests. The holder of a flow's secret can
 * take the flow once, before it expires. The store seals the data and binds the seal to the secret.
 */
import { Effect, Option, Schema } from "effect"
import { SecureRandom } from "effect/crypto"
import type { DeveloperId, DeveloperSessionId } from "#rpc/ids"
import type { DeveloperIntent, DeveloperProvider } from "#rpc/oauth/developers"
import { DeveloperFlowRepository } from "#sql/oauth/developer-flows"
import { sweepHourly } from "#server/platform/database"
import { randomSecret, sha256 } from "#server/platform/secrets"
import {
  AuthorizationState,
  makeFlowSeal,
  oauthFlows,
  type TakenFlow
} from "../oauth/flow-store.ts"
import { ProviderProfile } from "../oauth/profiles.ts"

/** The provider and intent of a flow. A link or a renewed proof names the session that started it. */
export interface DeveloperFlow {
  readonly provider: DeveloperProvider
  readonly intent: DeveloperIntent
  readonly developerId: DeveloperId | null
  readonly sessionId: DeveloperSessionId | null
}

const Result = Schema.Struct({ challenge: Schema.String, profile: ProviderProfile })

const makeStore = Effect.fnUntraced(function* <A, I>(
  kind: string,
  seconds: number,
  schema: Schema.Codec<A, I>
) {
  const repository = yield* DeveloperFlowRepository
  const { open, seal } = yield* makeFlowSeal(schema, seconds)
  const random = yield* SecureRandom.SecureRandom
  const hashOf = (secret: string) => sha256(`${kind}/${secret}`)
  return {
    /** Stores a flow and returns its new secret; none if its session has ended. */
    put: Effect.fnUntraced(
      function* ({ developerId, intent, provider, sessionId }: DeveloperFlow, data: A) {
        const secret = yield* randomSecret
        const row = yield* seal(hashOf(secret), data)
        const isOpen = yield* repository.insert({
          provider,
          intent,
          developerId,
          sessionId,
          ...row
        })
        return isOpen ? Option.some(secret) : Option.none()
      },
      Effect.provideService(SecureRandom.SecureRandom, random)
    ),
    take: Effect.fnUntraced(function* (secret: string) {
      const found = yield* repository.take(hashOf(secret))
      if (Option.isNone(found)) return Option.none<TakenFlow<DeveloperFlow, A>>()
      return Option.some(yield* open(found.value))
    })
  }
})

/** The pending flows: `states` until the callback, `results` until the exchange. */
export const makeDeveloperFlows = Effect.gen(function* () {
  const repository = yield* DeveloperFlowRepository
  yield* sweepHourly("OAuth flows of developers", repository.sweep)
  return {
    states: yield* makeStore("state", oauthFlows.stateSeconds, AuthorizationState),
    results: yield* makeStore("code", oauthFlows.oauthCodeSeconds, Result)
  }
})
export type DeveloperFlows = Effect.Success<typeof makeDeveloperFlows>
