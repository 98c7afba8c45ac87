/**
 * Native sign-in: an app sends an id token that it got from the device's Apple or Google SDK. The token
 * must name one of the environment's clients, and its nonce must match the request. A token works once.
 */
import { hash } from "node:crypto"
import { Context, DateTime, Effect, Layer, Option } from "effect"
import {
  type IdentityAlreadyLinked,
  InvalidToken,
  type PlayerBanned,
  type PlayerNotFound,
  type ProviderDisabled,
  ProviderNotConfigured,
  type SessionRevoked,
  Unavailable
} from "#rpc/errors/codes"
import type { NativeRequest, ProviderSession } from "#rpc/oauth/sign-in"
import { ProviderClients } from "./clients.ts"
import { type FlowContext, FlowStore } from "./flow-store.ts"
import { ProviderGrants } from "./grants.ts"
import type { Claims } from "./id-tokens.ts"
import { IdentitySignIn } from "./identity-sign-in.ts"
import { profileFromClaims } from "./profiles.ts"
import { clientIdOf, type Credentials, Providers } from "./providers.ts"

/** Signs in with an id token. */
export class NativeSignIn extends Context.Service<
  NativeSignIn,
  {
    readonly signIn: (
      context: FlowContext,
      request: NativeRequest
    ) => Effect.Effect<
      ProviderSession,
      | ProviderDisabled
      | ProviderNotConfigured
      | InvalidToken
      | IdentityAlreadyLinked
      | PlayerBanned
      | PlayerNotFound
      | SessionRevoked
      | Unavailable
    >
  }
>()("server/features/oauth/native-sign-in/NativeSignIn") {
  static readonly layer = Layer.effect(
    NativeSignIn,
    Effect.gen(function* () {
      return NativeSignIn.of({ signIn: yield* makeNativeSignIn })
    })
  )
}

/**
 * Whether a claim is this nonce. Apps pass the SHA-256 of the nonce to the SDK, as hex or as base64url.
 */
const isNonceOf = (claim: unknown, nonce: string): boolean =>
  claim === hash("sha256", nonce, "hex") || claim === hash("sha256", nonce, "base64url")

/** Returns the known client in the audience of an id token. */
const audienceOf = ({ aud }: Claims, clientIds: ReadonlyArray<string>): string | undefined =>
  clientIds.find((id) => (Array.isArray(aud) ? aud.includes(id) : aud === id))

const clientIdsOf = (credentials: Credentials): ReadonlyArray<string> => [
  clientIdOf(credentials),
  ...(credentials.nativeClientIds ?? [])
]

const makeNativeSignIn = Effect.gen(function* () {
  const clients = yield* ProviderClients
  const flows = yield* FlowStore
  const grants = yield* ProviderGrants
  const identitySignIn = yield* IdentitySignIn
  const providers = yield* Providers

  /** Refuses a token with another nonce, and a token that a request used before. */
  const useToken = Effect.fnUntraced(function* (
    context: FlowContext,
    claims: Claims,
    nonce: string
  ) {
    const { exp, nonce: claimed, sub } = claims
    if (!isNonceOf(claimed, nonce)) return yield* new InvalidToken()
    const expiresAt = DateTime.makeUnsafe(Number(exp) * 1000)
    // Keyed by the claims, not by the text: one signature has several encodings.
    const isUnused = yield* flows.useOnce(context, `${sub}/${claimed}`, expiresAt)
    if (!isUnused) return yield* new InvalidToken()
  })

  /** Exchanges the code for a token. Only a later deletion needs it, so sign-in continues without. */
  const grantOf = Effect.fnUntraced(
    function* (
      { environmentId, provider }: FlowContext,
      credentials: Credentials,
      claims: Claims,
      code: string
    ) {
      const clientId = audienceOf(claims, clientIdsOf(credentials)) ?? ""
      const subject = `${claims["sub"]}`
      const token = yield* clients.exchangeNativeCode(credentials, clientId, code, subject)
      return yield* grants.seal(environmentId, provider, token)
    },
    (sealed, { environmentId, provider }) =>
      Effect.catchTag(sealed, "ProviderError", ({ reason }) =>
        Effect.logWarning("Failed to exchange a native authorization code", reason).pipe(
          Effect.annotateLogs({ environmentId, provider }),
          Effect.as(null)
        )
      )
  )

  return Effect.fn("NativeSignIn.signIn")(function* (context: FlowContext, request: NativeRequest) {
    const { environmentId, provider } = context
    const found = yield* providers.credentials(environmentId, provider)
    if (Option.isNone(found)) return yield* new ProviderNotConfigured()
    const credentials = found.value
    const claims = yield* clients
      .verifyIdToken(provider, request.idToken, clientIdsOf(credentials))
      .pipe(
        Effect.catchTag("ProviderError", ({ reason }) =>
          Effect.logWarning("Failed to verify an id token", reason).pipe(
            Effect.annotateLogs({ environmentId, provider }),
            Effect.andThen(Effect.fail(new Unavailable()))
          )
        )
      )
    yield* useToken(context, claims, request.nonce)
    const decoded = profileFromClaims(claims, request.name)
    const profile = yield* Effect.mapError(decoded, () => new InvalidToken())
    const { authorizationCode } = request
    const grantSealed =
      provider === "apple" && authorizationCode !== undefined
        ? yield* grantOf(context, credentials, claims, authorizationCode)
        : null
    return yield* identitySignIn.signIn(context, { profile, grantSealed })
  })
})
