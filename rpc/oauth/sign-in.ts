/**
 * OAuth sign-in of players.
 *
 * In a browser: `start` returns the provider's URL. The provider redirects to `callback`, which
 * redirects to `<redirectUrl>#svc_code=<code>` or `#svc_error=<error>`. `exchange` turns the code into
 * a session. The app creates a random `verifier` and sends its SHA-256, the `challenge`, at start. Only
 * the holder of the verifier can exchange the code (PKCE, RFC 7636). The service creates and links
 * nothing before the exchange.
 *
 * In a native app: `native` takes the id token that Apple or Google gave to the app.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiMiddleware, HttpApiSchema, OpenApi } from "effect/http-api"
import {
  BodyMaxBytes,
  type CurrentEnvironment,
  OptionalPlayerToken,
  PublishableKey,
  PublishableKeyInQuery,
  Requests
} from "../auth.ts"
import {
  IdentityAlreadyLinked,
  InvalidCode,
  InvalidToken,
  PlayerBanned,
  PlayerNotFound,
  ProviderDisabled,
  ProviderNotConfigured,
  SessionRevoked,
  Unauthorized,
  wire
} from "../errors/codes.ts"
import { group } from "../feature.ts"
import { Provider } from "../identities.ts"
import { Session } from "../sessions.ts"
import { repeatable, repeatErrors } from "../spent-secrets.ts"
import { oauthLimits } from "./limits.ts"

/**
 * Mode in which the app opens the provider. Both modes return to `redirectUrl`; a popup then posts
 * to its opener.
 */
export const SignInMode = Schema.Literals(["popup", "redirect"])
export type SignInMode = typeof SignInMode.Type

/** Reason of a failed sign-in: the value of `#svc_error=`. */
export const SignInError = Schema.Literals([
  "access_denied",
  "provider_error",
  "provider_not_configured",
  "identity_already_linked",
  "player_banned",
  "expired"
])
export type SignInError = typeof SignInError.Type

/** Parameters in the fragment of `redirectUrl`. */
export const fragments = { code: "svc_code", error: "svc_error" } as const

/** The PKCE challenge of the app: the SHA-256 of its verifier. */
export const Challenge = Schema.String.check(
  Schema.isPattern(/^[A-Za-z0-9_-]{43}$/, {
    message: "Expected the SHA-256 of the verifier: 43 characters of base64url"
  })
)

const upTo = (characters: number) => Schema.String.check(Schema.isMaxLength(characters))

export const RedirectUrl = upTo(oauthLimits.redirectUrlMaxCharacters)

/** A code from the fragment of the redirect URL. */
export const SignInCode = upTo(oauthLimits.returnMaxCharacters)

/** `mode` defaults to `popup`. */
export const StartRequest = Schema.Struct({
  redirectUrl: RedirectUrl,
  challenge: Challenge,
  mode: Schema.optionalKey(SignInMode)
})
export type StartRequest = typeof StartRequest.Type

/**
 * The provider's callback parameters, in the query or, with Apple, in a form. `user` is Apple's JSON
 * text.
 */
export const ProviderReturn = Schema.Struct({
  state: Schema.optionalKey(upTo(oauthLimits.returnMaxCharacters)),
  code: Schema.optionalKey(upTo(oauthLimits.returnMaxCharacters)),
  error: Schema.optionalKey(upTo(oauthLimits.returnMaxCharacters)),
  iss: Schema.optionalKey(upTo(oauthLimits.returnMaxCharacters)),
  user: Schema.optionalKey(upTo(oauthLimits.returnMaxCharacters))
})
export type ProviderReturn = typeof ProviderReturn.Type

/** The PKCE verifier: 43 to 128 characters (RFC 7636). */
export const Verifier = Schema.String.check(
  Schema.isPattern(/^[A-Za-z0-9._~-]{43,128}$/, {
    message: "Expected 43 to 128 letters, digits or -._~"
  })
)

/** A session and its provider. `linked`: the identity was added to the player of the access token. */
export const ProviderSession = Schema.Struct({
  ...Session.fields,
  provider: Provider,
  linked: Schema.Boolean
}).annotate({
  identifier: "ProviderSession",
  description:
    "A session and its provider. With `linked` the identity was added to the player of the access token."
})
export type ProviderSession = typeof ProviderSession.Type

/** Providers that give id tokens to native apps. */
export const NativeProvider = Schema.Literals(["apple", "google"])
export type NativeProvider = typeof NativeProvider.Type

/**
 * `nonce` is the raw text whose SHA-256, in hexadecimal or base64url, the app gave to the system. An id
 * token works once. `link` adds the identity to the player of the access token. `name` is for a new
 * player: some providers give it only to the app. With Apple's `authorizationCode` the service can
 * revoke its access when the player is deleted, which the App Store requires.
 */
export const NativeRequest = Schema.Struct({
  idToken: upTo(oauthLimits.idTokenMaxCharacters),
  nonce: Schema.String.check(Schema.isBetweenLength(16, 128)),
  platform: Schema.Literals(["ios", "android", "web"]),
  link: Schema.optionalKey(Schema.Boolean),
  name: Schema.optionalKey(upTo(oauthLimits.nameMaxCharacters)),
  authorizationCode: Schema.optionalKey(upTo(oauthLimits.returnMaxCharacters))
})
export type NativeRequest = typeof NativeRequest.Type

/**
 * Middleware that answers 404 `provider_disabled` while the config does not enable the provider of the
 * path, before anything is read.
 */
export class ProviderGate extends HttpApiMiddleware.Service<
  ProviderGate,
  { requires: CurrentEnvironment }
>()("rpc/oauth/sign-in/ProviderGate", { error: wire(ProviderDisabled) }) {}

const redirect = HttpApiSchema.Empty(302)
const params = { provider: Provider }
const providerErrors = [wire(ProviderNotConfigured)]
const linkErrors = [
  wire(IdentityAlreadyLinked),
  wire(PlayerBanned),
  wire(PlayerNotFound),
  wire(SessionRevoked)
]

/** `/v1/auth/oauth`. */
export class OAuthApi extends group(
  "oauth",
  "players",
  "OAuth sign-in",
  "Sign-in with Apple, Discord, Google or X, in a browser (PKCE) or in a native app."
)
  .add(
    HttpApiEndpoint.post("start", "/:provider/start", {
      params,
      payload: StartRequest,
      success: Schema.Struct({ url: Schema.String }).annotate({
        identifier: "ProviderUrl",
        description: "The address at which the player signs in with the provider."
      }),
      error: providerErrors
    })
      .middleware(Requests)
      .middleware(ProviderGate)
      .middleware(OptionalPlayerToken)
      .middleware(PublishableKey)
      .annotate(
        OpenApi.Summary,
        "Start a sign-in; with an access token, link the provider to that player"
      ),
    HttpApiEndpoint.get("startByLink", "/:provider/start", {
      params,
      query: StartRequest,
      success: redirect,
      error: providerErrors
    })
      .middleware(Requests)
      .middleware(ProviderGate)
      .middleware(PublishableKeyInQuery)
      .annotate(OpenApi.Summary, "Start a sign-in from a plain link: redirects to the provider"),
    HttpApiEndpoint.get("callback", "/:provider/callback", {
      params,
      query: ProviderReturn,
      success: redirect
    })
      .middleware(Requests)
      .annotate(OpenApi.Summary, "Callback of providers: redirects to the app"),
    HttpApiEndpoint.post("callbackForm", "/:provider/callback", {
      params,
      payload: ProviderReturn.pipe(HttpApiSchema.asFormUrlEncoded()),
      success: redirect
    })
      .middleware(Requests)
      .annotate(OpenApi.Summary, "Callback of Apple, as a form post")
      .annotate(BodyMaxBytes, oauthLimits.returnBodyMaxBytes),
    HttpApiEndpoint.post("exchange", "/exchange", {
      headers: repeatable,
      payload: Schema.Struct({ code: SignInCode, verifier: Verifier }),
      success: ProviderSession,
      error: [wire(InvalidCode), wire(ProviderDisabled), ...linkErrors, ...repeatErrors]
    })
      .middleware(Requests)
      .middleware(PublishableKey)
      .annotate(OpenApi.Summary, "Exchange a sign-in code for a session, once, within a minute"),
    HttpApiEndpoint.post("native", "/:provider/native", {
      params: { provider: NativeProvider },
      headers: repeatable,
      payload: NativeRequest,
      success: ProviderSession,
      error: [
        ...providerErrors,
        ...linkErrors,
        ...repeatErrors,
        wire(InvalidToken).pipe(HttpApiSchema.status(400)),
        wire(Unauthorized)
      ]
    })
      .middleware(Requests)
      .middleware(ProviderGate)
      .middleware(OptionalPlayerToken)
      .middleware(PublishableKey)
      .annotate(OpenApi.Summary, "Sign in or link with the id token of a native app")
      .annotate(BodyMaxBytes, oauthLimits.bodyMaxBytes)
  )
  .prefix("/v1/auth/oauth") {}
