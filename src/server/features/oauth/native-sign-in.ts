/**
 * Native sign-in: an app sends an id token that it got from the device's Apple or Google SDK. The token
 * must name one of the environment's clients, and its nonce must match the request. A token works once.
 */
import { hash } from "node:crypto"
import { Context, DateTime, Effect, Layer, Option } from "effect"
import { InvalidToken, ProviderNotConfigured, Unavailable } from "#rpc/errors/codes"
import type { NativeRequest } from "#rpc/oauth/sign-in"
import { makeTransaction } from "#server/platform/database"
import { type Keep, SpentResponses } from "#server/platform/spent-responses"
import { Sessions } from "../sessions/service.ts"
import { ProviderClients } from "./clients.ts"
import { type FlowContext, FlowStore } from "./flow-store.ts"
import { ProviderGrants } from "./grants.ts"
import type { Claims } from "./id-tokens.ts"
import { type AuthenticatedProfile, IdentitySignIn } from "./identity-sign-in.ts"
import { KeptSignIn, keptSignIn, repeatSignIn } from "./kept-sign-in.ts"
import { profileFromClaims } from "./profiles.ts"
import { clientIdOf, type Credentials, Providers } from "./providers.ts"

/** Signs in with an id token. */
export class NativeSignIn extends Context.Service<NativeSignIn>()(
  "server/features/oauth/native-sign-in/NativeSignIn",
  {
    make: Effect.gen(function* () {
      return { signIn: yield* makeNativeSignIn }
    })
  }
) {
  static readonly layer = Layer.effect(NativeSignIn, this.make)
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

/** The use of a token. By the claims, not by the text: one signature has several encodings. */
const useOf = ({ nonce, sub }: Claims): string => `${sub}/${nonce}`

/** Exchanges the code for a token. Only a later deletion needs it, so sign-in continues without. */
const makeGrantOf = Effect.gen(function* () {
  const clients = yield* ProviderClients
  const grants = yield* ProviderGrants
  return Effect.fnUntraced(
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
})

/** Verifies an id token and its nonce. Refuses a token that a request has used. */
const makeVerify = Effect.gen(function* () {
  const clients = yield* ProviderClients
  const flows = yield* FlowStore
  return Effect.fnUntraced(function* (
    context: FlowContext,
    credentials: Credentials,
    { idToken, nonce }: NativeRequest
  ) {
    const { environmentId, provider } = context
    const claims = yield* clients
      .verifyIdToken(provider, idToken, clientIdsOf(credentials))
      .pipe(
        Effect.catchTag("ProviderError", ({ reason }) =>
          Effect.logWarning("Failed to verify an id token", reason).pipe(
            Effect.annotateLogs({ environmentId, provider }),
            Effect.andThen(Effect.fail(new Unavailable()))
          )
        )
      )
    if (!isNonceOf(claims["nonce"], nonce)) return yield* new InvalidToken()
    if (yield* flows.wasUsed(context, useOf(claims))) return yield* new InvalidToken()
    return claims
  })
})

const makeSpend = Effect.gen(function* () {
  const flows = yield* FlowStore
  const grantOf = yield* makeGrantOf
  const identitySignIn = yield* IdentitySignIn
  const providers = yield* Providers
  const transaction = yield* makeTransaction
  const verify = yield* makeVerify

  /** Uses the token and signs in, or does neither. */
  const use = Effect.fnUntraced(function* (
    context: FlowContext,
    claims: Claims,
    authenticated: AuthenticatedProfile,
    keep: Keep<KeptSignIn>
  ) {
    const expiresAt = DateTime.makeUnsafe(Number(claims["exp"]) * 1000)
    const isUnused = yield* flows.useOnce(context, useOf(claims), expiresAt)
    if (!isUnused) return yield* new InvalidToken()
    const session = yield* identitySignIn.signIn(context, authenticated)
    yield* keep(keptSignIn(session), session.player.id)
    return session
  }, transaction)

  return Effect.fnUntraced(function* (
    context: FlowContext,
    request: NativeRequest,
    keep: Keep<KeptSignIn>
  ) {
    const { environmentId, provider } = context
    const found = yield* providers.credentials(environmentId, provider)
    if (Option.isNone(found)) return yield* new ProviderNotConfigured()
    const credentials = found.value
    const claims = yield* verify(context, credentials, request)
    const decoded = profileFromClaims(claims, request.name)
    const profile = yield* Effect.mapError(decoded, () => new InvalidToken())
    const { authorizationCode } = request
    const grantSealed =
      provider === "apple" && authorizationCode !== undefined
        ? yield* grantOf(context, credentials, claims, authorizationCode)
        : null
    return yield* use(context, claims, { profile, grantSealed }, keep)
  })
})

const makeNativeSignIn = Effect.gen(function* () {
  const responses = yield* SpentResponses
  const sessions = yield* Sessions
  const spend = yield* makeSpend
  return Effect.fn("NativeSignIn.signIn")(function* (
    context: FlowContext,
    request: NativeRequest,
    key: string | undefined
  ) {
    const { environmentId: tenant, playerId, provider } = context
    const path = `POST /v1/auth/oauth/${provider}/native`
    const body = { ...request, playerId }
    const spending = { tenant, path, secret: request.idToken, body, key }
    return yield* responses.once(spending, KeptSignIn, {
      spend: (keep) => spend(context, request, keep),
      repeat: repeatSignIn(sessions, tenant, new InvalidToken())
    })
  })
})
