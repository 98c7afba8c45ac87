/**
 * External sign-in (spec sections 4.1 and 5, rules 9 to 11; decisions 3.2.6-7).
 *
 * By the browser: `start` gives the address of the provider; it returns to `callback`, which leads to
 * `<redirectUrl>#svc_code=<code>` or `#svc_error=<error>`; `exchange` makes a session of the code. The
 * app makes a random `verifier` and sends `challenge`, its SHA-256, at start: only who has the verifier
 * can exchange the code (PKCE, RFC 7636). Nothing is made or linked before the exchange.
 *
 * By the system of a device: `native` takes the id token that Apple or Google gave to the app.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { OptionalPlayerToken, PublishableKey, PublishableKeyInQuery, Requests } from "../auth.ts"
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
import { Provider } from "../identities.ts"
import { oauth as limits } from "../limits.ts"
import { Session } from "../sessions.ts"

/** How the app shows the provider: both return to `redirectUrl`, where a popup posts to its opener. */
export const SignInMode = Schema.Literals(["popup", "redirect"])
export type SignInMode = typeof SignInMode.Type

/** Why a sign-in has come to nothing, as `#svc_error=` says it. */
export const SignInError = Schema.Literals([
  "access_denied",
  "provider_error",
  "provider_not_configured",
  "identity_already_linked",
  "player_banned",
  "expired"
])
export type SignInError = typeof SignInError.Type

/** What is written into the fragment of `redirectUrl`. */
export const fragments = { code: "svc_code", error: "svc_error" } as const

const base64urlOf256Bits = (what: string) =>
  Schema.String.check(
    Schema.isPattern(/^[A-Za-z0-9_-]{43}$/, {
      message: `Expected ${what}: 43 characters of base64url`
    })
  )

const upTo = (characters: number) => Schema.String.check(Schema.isMaxLength(characters))

/** `mode` is `popup` when it is absent. */
export const StartRequest = Schema.Struct({
  redirectUrl: upTo(limits.redirectUrlMaxCharacters),
  challenge: base64urlOf256Bits("the SHA-256 of the verifier"),
  mode: Schema.optionalKey(SignInMode)
})
export type StartRequest = typeof StartRequest.Type

/** What a provider sends back, in the query or, as Apple does, in a form. `user` is Apple's JSON text. */
export const ProviderReturn = Schema.Struct({
  state: Schema.optionalKey(upTo(limits.returnMaxCharacters)),
  code: Schema.optionalKey(upTo(limits.returnMaxCharacters)),
  error: Schema.optionalKey(upTo(limits.returnMaxCharacters)),
  iss: Schema.optionalKey(upTo(limits.returnMaxCharacters)),
  user: Schema.optionalKey(upTo(limits.returnMaxCharacters))
})
export type ProviderReturn = typeof ProviderReturn.Type

/** 43 to 128 characters, as RFC 7636 has it. */
const Verifier = Schema.String.check(
  Schema.isPattern(/^[A-Za-z0-9._~-]{43,128}$/, {
    message: "Expected 43 to 128 letters, digits or -._~"
  })
)

/** A session, with how it came about; `linked`: the identity was added to the player of the token. */
export const ProviderSession = Schema.Struct({
  ...Session.fields,
  provider: Provider,
  linked: Schema.Boolean
})
export type ProviderSession = typeof ProviderSession.Type

/** Providers whose tokens native apps get from the system. */
export const NativeProvider = Schema.Literals(["apple", "google"])
export type NativeProvider = typeof NativeProvider.Type

/**
 * `nonce` is the raw text whose SHA-256, in hexadecimal or base64url, the app gave to the system; a
 * token works once. `link` adds the identity to the player of the access token. `name` is for a new
 * player: what the provider tells the app alone. `authorizationCode`, of Apple, lets the service give
 * the permission back to Apple when the player is deleted, as the App Store demands.
 */
export const NativeRequest = Schema.Struct({
  idToken: upTo(limits.idTokenMaxCharacters),
  nonce: Schema.String.check(Schema.isBetweenLength(16, 128)),
  platform: Schema.Literals(["ios", "android", "web"]),
  link: Schema.optionalKey(Schema.Boolean),
  name: Schema.optionalKey(upTo(limits.nameMaxCharacters)),
  authorizationCode: Schema.optionalKey(upTo(limits.returnMaxCharacters))
})
export type NativeRequest = typeof NativeRequest.Type

const redirect = HttpApiSchema.Empty(302)
const params = { provider: Provider }
const notReady = [wire(ProviderDisabled), wire(ProviderNotConfigured)]
const notLinked = [
  wire(IdentityAlreadyLinked),
  wire(PlayerBanned),
  wire(PlayerNotFound),
  wire(SessionRevoked)
]

/** `/v1/auth/oauth`. */
export class OAuthApi extends HttpApiGroup.make("oauth")
  .add(
    HttpApiEndpoint.post("start", "/:provider/start", {
      params,
      payload: StartRequest,
      success: Schema.Struct({ url: Schema.String }),
      error: notReady
    })
      .middleware(Requests)
      .middleware(OptionalPlayerToken)
      .middleware(PublishableKey)
      .annotate(
        OpenApi.Summary,
        "Begin to sign in with a provider, or with an access token to link it to that player"
      ),
    HttpApiEndpoint.get("startByLink", "/:provider/start", {
      params,
      query: StartRequest,
      success: redirect,
      error: notReady
    })
      .middleware(Requests)
      .middleware(PublishableKeyInQuery)
      .annotate(OpenApi.Summary, "The same for a plain link: leads to the provider"),
    HttpApiEndpoint.get("callback", "/:provider/callback", {
      params,
      query: ProviderReturn,
      success: redirect
    })
      .middleware(Requests)
      .annotate(OpenApi.Summary, "Where providers return to: leads back to the app"),
    HttpApiEndpoint.post("callbackForm", "/:provider/callback", {
      params,
      payload: ProviderReturn.pipe(HttpApiSchema.asFormUrlEncoded()),
      success: redirect
    })
      .middleware(Requests)
      .annotate(OpenApi.Summary, "Where Apple returns to, with a form"),
    HttpApiEndpoint.post("exchange", "/exchange", {
      payload: Schema.Struct({ code: upTo(limits.returnMaxCharacters), verifier: Verifier }),
      success: ProviderSession,
      error: [wire(InvalidCode), ...notLinked]
    })
      .middleware(Requests)
      .middleware(PublishableKey)
      .annotate(OpenApi.Summary, "Make a session of a sign-in code, within a minute and once"),
    HttpApiEndpoint.post("native", "/:provider/native", {
      params: { provider: NativeProvider },
      payload: NativeRequest,
      success: ProviderSession,
      error: [
        ...notReady,
        ...notLinked,
        wire(InvalidToken).pipe(HttpApiSchema.status(400)),
        wire(Unauthorized)
      ]
    })
      .middleware(Requests)
      .middleware(OptionalPlayerToken)
      .middleware(PublishableKey)
      .annotate(OpenApi.Summary, "Sign in, or link, with the id token that a device gave to an app")
  )
  .prefix("/v1/auth/oauth") {}
