/**
 * Stores pending OAuth flows between their HTTP requests. The holder of a flow's secret can take the
 * flow once, before it expires. The store seals the data and binds the seal to the secret.
 */
import { Context, DateTime, Effect, Layer, Option, Schema } from "effect"
import { SecureRandom } from "effect/crypto"
import type { Provider } from "#rpc/identities"
import type { EnvironmentId, PlayerId } from "#rpc/ids"
import { secondsPerDay } from "#rpc/units"
import { FlowRepository } from "#sql/oauth/flows"
import { sweepHourly } from "#server/platform/database"
import { randomSecret, Secrets, sha256 } from "#server/platform/secrets"
import { ProviderProfile } from "./profiles.ts"

export const oauthFlows = {
  oauthCodeSeconds: 60,
  /** Time that a person may take at the provider. */
  stateSeconds: 600,
  /** A name that Apple sends once waits for this long for a completed sign-in. */
  detailsSeconds: 7 * secondsPerDay
} as const

/** Data of a flow between the redirect to the provider and its callback. */
export const AuthorizationState = Schema.Struct({
  redirectUrl: Schema.String,
  /** PKCE challenge of the app, checked at the code exchange. */
  challenge: Schema.String,
  /** Nonce of the request to the provider. */
  nonce: Schema.String,
  /** PKCE verifier of the request to the provider. */
  verifier: Schema.String
})
export type AuthorizationState = typeof AuthorizationState.Type

/** Data of a flow between the callback and the code exchange. */
const AuthorizationResult = Schema.Struct({
  challenge: Schema.String,
  profile: ProviderProfile,
  grantSealed: Schema.NullOr(Schema.String)
  // The stored key is older than the property's name; nodes of two releases share the rows.
}).pipe(Schema.encodeKeys({ profile: "person" }))
export type AuthorizationResult = typeof AuthorizationResult.Type

/** What a provider says of a user at the first sign-in only, kept until a sign-in succeeds. */
const FirstDetails = Schema.Struct({
  name: Schema.NullOr(Schema.String),
  email: Schema.NullOr(Schema.String),
  emailVerified: Schema.Boolean
})
type FirstDetails = typeof FirstDetails.Type

/**
 * The environment and provider of a flow. With `playerId`, the flow links the identity to that player,
 * if the session that started the flow is still open.
 */
export interface FlowContext {
  readonly environmentId: EnvironmentId
  readonly provider: Provider
  readonly playerId: PlayerId | null
  readonly sessionId: string | null
}

/** Flow that a caller has taken out of the store. */
export type TakenFlow<F, A> = F & { readonly data: A; readonly isExpired: boolean }

/** Stores OAuth flows until a caller takes them or they expire. */
export class FlowStore extends Context.Service<
  FlowStore,
  {
    /** Stores the state of an authorization request and returns its new `state` parameter. */
    readonly saveState: (context: FlowContext, data: AuthorizationState) => Effect.Effect<string>
    readonly takeState: (
      provider: Provider,
      state: string
    ) => Effect.Effect<Option.Option<TakenFlow<FlowContext, AuthorizationState>>>
    /** Stores the result of a callback and returns its new code. */
    readonly saveResult: (context: FlowContext, data: AuthorizationResult) => Effect.Effect<string>
    readonly takeResult: (
      environmentId: EnvironmentId,
      code: string
    ) => Effect.Effect<Option.Option<TakenFlow<FlowContext, AuthorizationResult>>>
    /** Keeps what the provider does not repeat, so that a sign-in that was not completed loses nothing. */
    readonly keepDetails: (
      context: FlowContext,
      subject: string,
      details: FirstDetails
    ) => Effect.Effect<void>
    /** Removes and returns the kept details of a user. */
    readonly takeDetails: (
      context: FlowContext,
      subject: string
    ) => Effect.Effect<Option.Option<FirstDetails>>
    /** Whether a request has used an id token. */
    readonly wasUsed: (context: FlowContext, id: string) => Effect.Effect<boolean>
    /** Marks an id token as used until it expires; false if a request used it before. */
    readonly useOnce: (
      context: FlowContext,
      id: string,
      expiresAt: DateTime.Utc
    ) => Effect.Effect<boolean>
  }
>()("server/features/oauth/flow-store/FlowStore") {
  static readonly layer = Layer.effect(
    FlowStore,
    Effect.gen(function* () {
      const repository = yield* FlowRepository
      const random = yield* SecureRandom.SecureRandom
      const newSecret = Effect.provideService(randomSecret, SecureRandom.SecureRandom, random)
      const states = yield* makeSealedStore(AuthorizationState, oauthFlows.stateSeconds)
      const results = yield* makeSealedStore(AuthorizationResult, oauthFlows.oauthCodeSeconds)
      const details = yield* makeSealedStore(FirstDetails, oauthFlows.detailsSeconds)
      yield* sweepHourly("OAuth flows", repository.sweep)
      return FlowStore.of({
        saveState: Effect.fnUntraced(function* (context, data) {
          const state = yield* newSecret
          yield* states.put(context, `state/${state}`, data)
          return state
        }),
        takeState: (provider, state) => states.take(`state/${state}`, provider),
        saveResult: Effect.fnUntraced(function* (context, data) {
          const code = yield* newSecret
          yield* results.put(context, `code/${context.environmentId}/${code}`, data)
          return code
        }),
        takeResult: (environmentId, code) => results.take(`code/${environmentId}/${code}`, null),
        keepDetails: ({ environmentId, provider }, subject, data) => {
          const context = { environmentId, provider, playerId: null, sessionId: null }
          return details.put(context, detailsKey(context, subject), data)
        },
        takeDetails: (context, subject) =>
          Effect.map(
            details.take(detailsKey(context, subject), context.provider),
            Option.flatMap(({ data, isExpired }) => (isExpired ? Option.none() : Option.some(data)))
          ),
        wasUsed: (context, id) => repository.has(useHash(context, id)),
        useOnce: (context, id, expiresAt) => {
          const { environmentId, provider } = context
          const use = { hash: useHash(context, id), playerId: null, sealed: "" }
          return repository.insert({ ...use, environmentId, provider, expiresAt })
        }
      })
    })
  )
}

const detailsKey = ({ environmentId, provider }: FlowContext, subject: string): string =>
  `details/${environmentId}/${provider}/${subject}`

const useHash = ({ environmentId, provider }: FlowContext, id: string): string =>
  sha256(`use/${environmentId}/${provider}/${id}`)

/** Row of a flow, whose data is sealed and bound to the hash of the flow's secret. */
interface SealedRow {
  readonly hash: string
  readonly sealed: string
  readonly expiresAt: DateTime.Utc
}

/** Seals the data of flows that live so long, and opens the rows that a caller takes. */
export const makeFlowSeal = Effect.fnUntraced(function* <A, I>(
  schema: Schema.Codec<A, I>,
  seconds: number
) {
  const secrets = yield* Secrets
  const text = Schema.fromJsonString(schema)
  const encode = Schema.encodeEffect(text)
  const decode = Schema.decodeEffect(text)
  const purposeOf = (hash: string) => `sign-in step ${hash}`
  return {
    seal: Effect.fnUntraced(function* (hash: string, data: A) {
      const plain = yield* Effect.orDie(encode(data))
      const sealed = yield* secrets.seal(plain, purposeOf(hash))
      return { hash, sealed, expiresAt: DateTime.add(yield* DateTime.now, { seconds }) }
    }),
    open: Effect.fnUntraced(function* <F>({ expiresAt, hash, sealed, ...flow }: F & SealedRow) {
      const opened = secrets.open(sealed, purposeOf(hash))
      const data = yield* Effect.orDie(Effect.flatMap(opened, decode))
      const isExpired = DateTime.isLessThanOrEqualTo(expiresAt, yield* DateTime.now)
      return { ...flow, data, isExpired }
    })
  }
})

/** Stores and takes flows whose data has one schema. */
const makeSealedStore = Effect.fnUntraced(function* <A extends object, I>(
  schema: Schema.Codec<A, I>,
  seconds: number
) {
  const repository = yield* FlowRepository
  const { open, seal } = yield* makeFlowSeal(
    Schema.Struct({ carried: schema, sessionId: Schema.NullOr(Schema.String) }),
    seconds
  )
  return {
    put: Effect.fnUntraced(function* (
      { sessionId, ...context }: FlowContext,
      key: string,
      data: A
    ) {
      const row = yield* seal(sha256(key), { carried: data, sessionId })
      yield* repository.insert({ ...context, ...row })
    }),
    take: Effect.fnUntraced(function* (key: string, provider: Provider | null) {
      const found = yield* repository.take(sha256(key), provider)
      if (Option.isNone(found)) return Option.none<TakenFlow<FlowContext, A>>()
      const { data, ...flow } = yield* open(found.value)
      return Option.some({ ...flow, sessionId: data.sessionId, data: data.carried })
    })
  }
})
