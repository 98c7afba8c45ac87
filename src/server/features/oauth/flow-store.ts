/**
 * What one step of an external sign-in leaves for the next (spec section 3): whoever has the secret of
 * a step takes it, once and in time. What a step carries is sealed, and bound to its secret.
 */
import { Context, DateTime, Effect, Layer, Option, Schema } from "effect"
import { SecureRandom } from "effect/crypto"
import type { Provider } from "#rpc/identities"
import type { EnvironmentId, PlayerId } from "#rpc/ids"
import { oauth as limits, sessions } from "#rpc/limits"
import { FlowRepository } from "#sql/oauth/flows"
import { sweepHourly } from "#server/platform/database"
import { randomSecret, Secrets, sha256 } from "#server/platform/secrets"
import { ProviderProfile } from "./profiles.ts"

/** What the start leaves for the return from the provider. */
const AuthorizationState = Schema.Struct({
  redirectUrl: Schema.String,
  /** The client's, which it meets with its verifier at the exchange. */
  challenge: Schema.String,
  /** Our own towards the provider. */
  nonce: Schema.String,
  verifier: Schema.String
})
export type AuthorizationState = typeof AuthorizationState.Type

/** What the return leaves for the exchange. */
const AuthorizationResult = Schema.Struct({
  challenge: Schema.String,
  person: ProviderProfile,
  grantSealed: Schema.NullOr(Schema.String)
})
export type AuthorizationResult = typeof AuthorizationResult.Type

/**
 * Whose sign-in it is; with `playerId`, to whom the identity is to be linked, as long as the session
 * that has asked for it is open.
 */
export interface FlowContext {
  readonly environmentId: EnvironmentId
  readonly provider: Provider
  readonly playerId: PlayerId | null
  readonly sessionId: string | null
}

/** A step that was taken. */
export interface TakenFlow<A> extends FlowContext {
  readonly carried: A
  readonly isLate: boolean
}

/** The steps of external sign-ins. */
export class FlowStore extends Context.Service<
  FlowStore,
  {
    /** Remembers a start under the secret that the provider is to bring back. */
    readonly saveState: (
      whose: FlowContext,
      state: string,
      departure: AuthorizationState
    ) => Effect.Effect<void>
    readonly takeState: (
      provider: Provider,
      state: string
    ) => Effect.Effect<Option.Option<TakenFlow<AuthorizationState>>>
    /** Remembers who has returned, under a new code. */
    readonly saveResult: (whose: FlowContext, arrival: AuthorizationResult) => Effect.Effect<string>
    readonly takeResult: (
      environmentId: EnvironmentId,
      code: string
    ) => Effect.Effect<Option.Option<TakenFlow<AuthorizationResult>>>
    /** Whether something (an id token) was not used before; it is remembered until it ends. */
    readonly useOnce: (
      whose: FlowContext,
      what: string,
      until: DateTime.Utc
    ) => Effect.Effect<boolean>
  }
>()("server/features/oauth/flow-store/SignInSteps") {
  static readonly layer = Layer.effect(
    FlowStore,
    Effect.gen(function* () {
      const rows = yield* FlowRepository
      const random = yield* SecureRandom.SecureRandom
      const departures = yield* makeKept(AuthorizationState, limits.stateSeconds)
      const arrivals = yield* makeKept(AuthorizationResult, sessions.oauthCodeSeconds)
      yield* sweepHourly("Steps of sign-ins", rows.sweep)
      return FlowStore.of({
        saveState: (whose, state, departure) => departures.put(whose, `state/${state}`, departure),
        takeState: (provider, state) => departures.take(`state/${state}`, provider),
        saveResult: Effect.fnUntraced(
          function* (whose, arrival) {
            const code = yield* randomSecret
            yield* arrivals.put(whose, `code/${whose.environmentId}/${code}`, arrival)
            return code
          },
          Effect.provideService(SecureRandom.SecureRandom, random)
        ),
        takeResult: (environmentId, code) => arrivals.take(`code/${environmentId}/${code}`, null),
        useOnce: ({ environmentId, provider }, what, expiresAt) => {
          const hash = sha256(`use/${environmentId}/${provider}/${what}`)
          return rows.put({ hash, environmentId, provider, playerId: null, sealed: "", expiresAt })
        }
      })
    })
  )
}

/** Puts and takes one kind of step. */
const makeKept = Effect.fnUntraced(function* <A extends object, I>(
  schema: Schema.Codec<A, I>,
  seconds: number
) {
  const rows = yield* FlowRepository
  const secrets = yield* Secrets
  const text = Schema.fromJsonString(
    Schema.Struct({ carried: schema, sessionId: Schema.NullOr(Schema.String) })
  )
  const encode = Schema.encodeEffect(text)
  const decode = Schema.decodeEffect(text)
  const purposeOf = (hash: string) => `sign-in step ${hash}`

  const put = Effect.fnUntraced(function* (
    { sessionId, ...whose }: FlowContext,
    key: string,
    carried: A
  ) {
    const hash = sha256(key)
    const plain = yield* Effect.orDie(encode({ carried, sessionId }))
    const sealed = yield* secrets.seal(plain, purposeOf(hash))
    const expiresAt = DateTime.add(yield* DateTime.now, { seconds })
    yield* rows.put({ ...whose, hash, sealed, expiresAt })
  })

  const take = Effect.fnUntraced(function* (key: string, provider: Provider | null) {
    const found = yield* rows.take(sha256(key), provider)
    if (Option.isNone(found)) return Option.none<TakenFlow<A>>()
    const { environmentId, expiresAt, hash, playerId, sealed } = found.value
    const opened = yield* Effect.orDie(secrets.open(sealed, purposeOf(hash)))
    return Option.some<TakenFlow<A>>({
      environmentId,
      provider: found.value.provider,
      playerId,
      ...(yield* Effect.orDie(decode(opened))),
      isLate: DateTime.isLessThanOrEqualTo(expiresAt, yield* DateTime.now)
    })
  })

  return { put, take }
})
