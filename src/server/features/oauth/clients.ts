/**
 * OAuth client of the sign-in providers: builds authorization URLs, exchanges codes, reads profiles and
 * revokes tokens.
 */
import { Context, Effect, Layer } from "effect"
import * as oauth from "oauth4webapi"
import type { InvalidToken } from "#rpc/errors/codes"
import type { Provider } from "#rpc/identities"
import type { ProviderReturn } from "#rpc/oauth/sign-in"
import type { SignInProvider } from "./definitions.ts"
import { type Claims, makeVerifyIdToken, type VerifyIdToken } from "./id-tokens.ts"
import { nameOfAppleUser, profileFromClaims, type ProviderProfile } from "./profiles.ts"
import {
  makeProviderHttp,
  oauthClientOf,
  ProviderError,
  type ProviderHttp,
  tryLibrary
} from "./provider-http.ts"
import { clientIdOf, type Credentials } from "./providers.ts"
import { makeFetchProfile, requireProfile } from "./user-info.ts"

/** An OAuth client of the service, with the URL to which the provider redirects. */
export interface ProviderClient {
  readonly provider: SignInProvider
  readonly credentials: Credentials
  readonly callbackUrl: string
}

/** Secrets of one authorization request, which its response must match: nonce and PKCE verifier. */
export interface AuthorizationProofs {
  readonly nonce: string
  readonly verifier: string
}

/** Refresh token of a provider. Its only use is the revocation when the identity is removed. */
export interface RevocableToken {
  readonly clientId: string
  readonly token: string
}

/** The outcome of a code exchange at a provider. */
export interface ProviderSignIn {
  readonly profile: ProviderProfile
  readonly revocableToken: RevocableToken | undefined
}

/** OAuth client of the sign-in providers. */
export class ProviderClients extends Context.Service<
  ProviderClients,
  {
    /** Returns the URL at which the user signs in. */
    readonly authorizeUrl: (
      client: ProviderClient,
      proofs: AuthorizationProofs & { readonly state: string }
    ) => Effect.Effect<string>
    /** Exchanges the code of a callback for the profile of the user. */
    readonly exchangeCode: (
      client: ProviderClient,
      returned: ProviderReturn,
      proofs: AuthorizationProofs
    ) => Effect.Effect<ProviderSignIn, ProviderError>
    /** Verifies an id token whose audience is one of these clients, and returns its claims. */
    readonly verifyIdToken: (
      provider: SignInProvider,
      idToken: string,
      audience: ReadonlyArray<string>
    ) => Effect.Effect<Claims, InvalidToken | ProviderError>
    /** Exchanges the authorization code of a native Apple sign-in. It must belong to `subject`. */
    readonly exchangeNativeCode: (
      credentials: Credentials,
      clientId: string,
      authorizationCode: string,
      subject: string
    ) => Effect.Effect<RevocableToken, ProviderError>
    readonly revoke: (
      provider: Provider,
      credentials: Credentials,
      revocableToken: RevocableToken
    ) => Effect.Effect<void, ProviderError>
  }
>()("server/features/oauth/clients/ProviderClients") {
  static readonly layer = Layer.effect(
    ProviderClients,
    Effect.gen(function* () {
      const http = yield* makeProviderHttp
      const verifyIdToken = makeVerifyIdToken(http)
      return ProviderClients.of({
        authorizeUrl: makeAuthorizeUrl(http),
        exchangeCode: makeExchangeCode(http, verifyIdToken),
        verifyIdToken,
        exchangeNativeCode: makeExchangeNativeCode(http),
        revoke: makeRevoke(http)
      })
    })
  )
}

const providerError = (reason: string) => new ProviderError({ reason })

const makeAuthorizeUrl = ({ definitions }: ProviderHttp) =>
  Effect.fnUntraced(function* (
    { callbackUrl, credentials, provider }: ProviderClient,
    { nonce, state, verifier }: AuthorizationProofs & { readonly state: string }
  ) {
    const { authorize, parameters, profile, scope } = definitions[provider]
    const challenge = yield* Effect.promise(() => oauth.calculatePKCECodeChallenge(verifier))
    const query = new URLSearchParams({
      response_type: "code",
      client_id: clientIdOf(credentials),
      redirect_uri: callbackUrl,
      scope,
      state,
      ...(profile.source === "id-token" ? { nonce } : {}),
      code_challenge: challenge,
      code_challenge_method: "S256",
      ...parameters
    })
    return `${authorize}?${query}`
  })

const makeExchangeCode = (http: ProviderHttp, verifyIdToken: VerifyIdToken) => {
  const fetchProfile = makeFetchProfile(http)
  return Effect.fn("ProviderClients.exchangeCode")(function* (
    { callbackUrl, credentials, provider }: ProviderClient,
    { code, iss, user }: ProviderReturn,
    { nonce, verifier }: AuthorizationProofs
  ) {
    if (code === undefined) return yield* providerError("The callback has no code")
    const { profile: source } = http.definitions[provider]
    const clientId = clientIdOf(credentials)
    const { auth, client, options, server } = yield* oauthClientOf(
      http,
      provider,
      credentials,
      clientId
    )
    const tokens = yield* tryLibrary(async (signal) => {
      const parameters = new URLSearchParams({ code, ...(iss === undefined ? {} : { iss }) })
      const response = await oauth.authorizationCodeGrantRequest(
        server,
        client,
        auth,
        oauth.validateAuthResponse(server, client, parameters, oauth.expectNoState),
        callbackUrl,
        verifier,
        options(signal)
      )
      const expected =
        source.source === "id-token" ? { expectedNonce: nonce, requireIdToken: true } : {}
      return await oauth.processAuthorizationCodeResponse(server, client, response, expected)
    })
    if (source.source === "user-info") {
      const profile = yield* fetchProfile(provider, source, tokens.access_token)
      return { profile, revocableToken: undefined }
    }
    const claims = yield* verifyIdToken(provider, tokens.id_token ?? "", [clientId]).pipe(
      Effect.catchTag("invalid_token", () => Effect.fail(providerError("The id token is invalid")))
    )
    const profile = yield* requireProfile(profileFromClaims(claims, nameOfAppleUser(user)))
    const { refresh_token: token } = tokens
    const revocableToken =
      provider === "apple" && token !== undefined ? { clientId, token } : undefined
    return { profile, revocableToken }
  })
}

const makeExchangeNativeCode = (http: ProviderHttp) =>
  Effect.fn("ProviderClients.exchangeNativeCode")(function* (
    credentials: Credentials,
    clientId: string,
    authorizationCode: string,
    subject: string
  ) {
    const { auth, client, options, server } = yield* oauthClientOf(
      http,
      "apple",
      credentials,
      clientId
    )
    const tokens = yield* tryLibrary(async (signal) => {
      const code = { code: authorizationCode }
      const response = await oauth.genericTokenEndpointRequest(
        server,
        client,
        auth,
        "authorization_code",
        code,
        options(signal)
      )
      return await oauth.processGenericTokenEndpointResponse(server, client, response)
    })
    // With a foreign code, deleting this player would revoke the token of another user.
    const isOwn = oauth.getValidatedIdTokenClaims(tokens)?.sub === subject
    if (tokens.refresh_token === undefined || !isOwn) {
      return yield* providerError("The authorization code belongs to another user")
    }
    return { clientId, token: tokens.refresh_token }
  })

const makeRevoke = (http: ProviderHttp) =>
  Effect.fn("ProviderClients.revoke")(function* (
    provider: Provider,
    credentials: Credentials,
    { clientId, token }: RevocableToken
  ) {
    const { auth, client, options, server } = yield* oauthClientOf(
      http,
      provider,
      credentials,
      clientId
    )
    yield* tryLibrary(async (signal) => {
      const response = await oauth.revocationRequest(server, client, auth, token, {
        ...options(signal),
        additionalParameters: { token_type_hint: "refresh_token" }
      })
      await oauth.processRevocationResponse(response)
    })
  })
