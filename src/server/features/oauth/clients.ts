/**
 * This service as a client of the sign-in providers (spec section 5, rules 9 to 11): where people are
 * sent, who comes back, and what is given back one day.
 */
import { Context, Effect, Layer, Option, Schema } from "effect"
import * as oauth from "oauth4webapi"
import type { InvalidToken } from "#rpc/errors/codes"
import type { Provider } from "#rpc/identities"
import { oauth as limits } from "#rpc/limits"
import type { ProviderReturn } from "#rpc/oauth/sign-in"
import { type Claims, makeVerify, type Verify } from "./id-tokens.ts"
import {
  nameOfAppleUser,
  type ProviderProfile,
  profileFromClaims,
  profileFromDiscord,
  profileFromX
} from "./profiles.ts"
import {
  type ProviderHttp,
  makeProviderHttp,
  oauthClientOf,
  tryLibrary,
  ProviderError
} from "./provider-http.ts"
import { callbackUrlOf, clientIdOf, type Credentials } from "./providers.ts"

/** What a sign-in has sent to the provider, and what comes back has to fit. */
export interface AuthorizationProofs {
  readonly nonce: string
  readonly verifier: string
}

/** A permission that the provider gave to a client, to be given back one day. */
export interface RevocableToken {
  readonly clientId: string
  readonly token: string
}

/** A person who has come back from the provider. */
export interface ProviderSignIn {
  readonly person: ProviderProfile
  readonly permission: RevocableToken | undefined
}

/** The providers as one asks them. */
export class ProviderClients extends Context.Service<
  ProviderClients,
  {
    /** Where a person signs in. */
    readonly authorizeUrl: (
      provider: Provider,
      credentials: Credentials,
      proofs: AuthorizationProofs & { readonly state: string }
    ) => Effect.Effect<string>
    /** Who has come back from there. */
    readonly exchangeCode: (
      provider: Provider,
      credentials: Credentials,
      returned: ProviderReturn,
      proofs: AuthorizationProofs
    ) => Effect.Effect<ProviderSignIn, ProviderError>
    /** The claims of an id token that was made for one of these clients. */
    readonly verifyIdToken: (
      provider: Provider,
      idToken: string,
      audience: ReadonlyArray<string>
    ) => Effect.Effect<Claims, InvalidToken | ProviderError>
    /** What Apple gives for the code that an app got beside the id token of this person. */
    readonly exchangeNativeCode: (
      credentials: Credentials,
      clientId: string,
      authorizationCode: string,
      subject: string
    ) => Effect.Effect<RevocableToken, ProviderError>
    /** Gives a permission back. */
    readonly revoke: (
      provider: Provider,
      credentials: Credentials,
      permission: RevocableToken
    ) => Effect.Effect<void, ProviderError>
  }
>()("server/features/oauth/clients/ProviderClients") {
  static readonly layer = Layer.effect(
    ProviderClients,
    Effect.gen(function* () {
      const asking = yield* makeProviderHttp
      const verify = makeVerify(asking)
      return ProviderClients.of({
        authorizeUrl: makeAuthorizeUrl(asking),
        exchangeCode: makeRedeem(asking, verify),
        verifyIdToken: verify,
        exchangeNativeCode: makePermission(asking),
        revoke: makeRevoke(asking)
      })
    })
  )
}

const refused = (reason: string) => new ProviderError({ reason })

const makeAuthorizeUrl = ({ baseUrl, shapes }: ProviderHttp) =>
  Effect.fnUntraced(function* (
    provider: Provider,
    credentials: Credentials,
    { nonce, state, verifier }: AuthorizationProofs & { readonly state: string }
  ) {
    const { authorize, parameters, scope, tells } = shapes[provider]
    const challenge = yield* Effect.promise(() => oauth.calculatePKCECodeChallenge(verifier))
    const query = new URLSearchParams({
      response_type: "code",
      client_id: clientIdOf(credentials),
      redirect_uri: callbackUrlOf(baseUrl, provider),
      scope,
      state,
      ...(tells.by === "token" ? { nonce } : {}),
      code_challenge: challenge,
      code_challenge_method: "S256",
      ...parameters
    })
    return `${authorize}?${query}`
  })

const makeRedeem = (asking: ProviderHttp, verify: Verify) =>
  Effect.fn("ProviderClients.redeem")(function* (
    provider: Provider,
    credentials: Credentials,
    { code, iss, user }: ProviderReturn,
    { nonce, verifier }: AuthorizationProofs
  ) {
    if (code === undefined) return yield* refused("It came back without a code")
    const { tells } = asking.shapes[provider]
    const clientId = clientIdOf(credentials)
    const { auth, client, options, server } = yield* oauthClientOf(
      asking,
      provider,
      credentials,
      clientId
    )
    const tokens = yield* tryLibrary(async (signal) => {
      const given = new URLSearchParams({ code, ...(iss === undefined ? {} : { iss }) })
      const response = await oauth.authorizationCodeGrantRequest(
        server,
        client,
        auth,
        oauth.validateAuthResponse(server, client, given, oauth.expectNoState),
        callbackUrlOf(asking.baseUrl, provider),
        verifier,
        options(signal)
      )
      const expected = tells.by === "token" ? { expectedNonce: nonce, requireIdToken: true } : {}
      return await oauth.processAuthorizationCodeResponse(server, client, response, expected)
    })
    if (tells.by === "request") {
      const person = yield* askWho(asking, provider, tells.person, tokens.access_token)
      return { person, permission: undefined }
    }
    const claims = yield* verify(provider, tokens.id_token ?? "", [clientId]).pipe(
      Effect.catchTag("invalid_token", () => Effect.fail(refused("The id token is not valid")))
    )
    const person = yield* readable(profileFromClaims(claims, nameOfAppleUser(user)))
    const { refresh_token: token } = tokens
    const permission = provider === "apple" && token !== undefined ? { clientId, token } : undefined
    return { person, permission }
  })

/** A person has to have an id that is one. */
const readable = (person: Effect.Effect<ProviderProfile, Schema.SchemaError>) =>
  Effect.mapError(person, () => refused("It told nobody whom we could know again"))

const decodeProblem = Schema.decodeUnknownOption(
  Schema.fromJsonString(
    Schema.Struct({ reason: Schema.String.check(Schema.isPattern(/^[\w-]+$/)) })
  )
)

/** Why a provider does not tell: X says `client-not-enrolled` to apps of its old tiers. */
const problemOf = (body: string): string =>
  Option.match(decodeProblem(body), { onNone: () => "", onSome: ({ reason }) => ` ${reason}` })

/** Asks the provider whose access token it is. */
const askWho = Effect.fnUntraced(function* (
  { outgoing, shapes }: ProviderHttp,
  provider: Provider,
  url: string,
  accessToken: string
) {
  const { body, status } = yield* Effect.mapError(
    outgoing.request({
      url,
      method: "GET",
      headers: { authorization: `Bearer ${accessToken}`, accept: "application/json" },
      timeoutMillis: limits.requestMillis,
      answerMaxBytes: limits.answerMaxBytes,
      reach: shapes[provider].reach
    }),
    ({ message }) => refused(message)
  )
  if (status !== 200) return yield* refused(`${status}${problemOf(body)}`)
  return yield* readable(provider === "discord" ? profileFromDiscord(body) : profileFromX(body))
})

const makePermission = (asking: ProviderHttp) =>
  Effect.fn("ProviderClients.permission")(function* (
    credentials: Credentials,
    clientId: string,
    authorizationCode: string,
    subject: string
  ) {
    const { auth, client, options, server } = yield* oauthClientOf(
      asking,
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
    // A code of somebody else would let the deletion of this player end another's permission.
    const isTheirs = oauth.getValidatedIdTokenClaims(tokens)?.sub === subject
    if (tokens.refresh_token === undefined || !isTheirs) {
      return yield* refused("The authorization code is not of the person of the id token")
    }
    return { clientId, token: tokens.refresh_token }
  })

const makeRevoke = (asking: ProviderHttp) =>
  Effect.fn("ProviderClients.revoke")(function* (
    provider: Provider,
    credentials: Credentials,
    { clientId, token }: RevocableToken
  ) {
    const { auth, client, options, server } = yield* oauthClientOf(
      asking,
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
