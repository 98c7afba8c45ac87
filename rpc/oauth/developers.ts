/**
 * OAuth sign-in of developers, as of players. `start` returns the provider's URL, and the provider
 * returns to `callback`. That redirects to `<redirectUrl>#svc_code=<code>` or `#svc_error=<error>`,
 * and `exchange` redeems the code with the PKCE verifier.
 *
 * The intent of a flow is `login`, `link` or `reauth`. `link` adds the identity to the developer of
 * the session, and `reauth` proves that developer again. The service never finds accounts by email
 * address.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiSchema, OpenApi } from "effect/http-api"
import { OptionalDeveloperSession, Requests } from "../auth.ts"
import { DeveloperIdentity, DeveloperSignedIn, invitation } from "../developers.ts"
import {
  EmailTaken,
  IdentityAlreadyLinked,
  InvalidCode,
  InvalidCredentials,
  InvalidInviteCode,
  InviteCodeUsed,
  InviteLimitReached,
  ProviderNotConfigured,
  SignupsClosed,
  Unauthorized,
  wire
} from "../errors/codes.ts"
import { group } from "../feature.ts"
import { repeatable, repeatErrors } from "../spent-secrets.ts"
import { Timestamp } from "../text.ts"
import { Challenge, ProviderReturn, RedirectUrl, SignInCode, Verifier } from "./sign-in.ts"

/** Providers at which developers sign in. */
export const DeveloperProvider = Schema.Literals(["google", "github"])
export type DeveloperProvider = typeof DeveloperProvider.Type

/** Purpose of a flow. `link` and `reauth` need a developer session. */
export const DeveloperIntent = Schema.Literals(["login", "link", "reauth"])
export type DeveloperIntent = typeof DeveloperIntent.Type

/** `intent` defaults to `login`. */
export const DeveloperStart = Schema.Struct({
  redirectUrl: RedirectUrl,
  challenge: Challenge,
  intent: Schema.optionalKey(DeveloperIntent)
})
export type DeveloperStart = typeof DeveloperStart.Type

/**
 * Request of the exchange. `inviteCode` and `setupToken` are for a new account; `POST
 * /v1/developers/signup` has the same.
 */
export const DeveloperExchange = Schema.Struct({
  code: SignInCode,
  verifier: Verifier,
  ...invitation
})
export type DeveloperExchange = typeof DeveloperExchange.Type

const Login = Schema.Struct({
  intent: Schema.Literal("login"),
  provider: DeveloperProvider,
  ...DeveloperSignedIn.fields
}).annotate({
  identifier: "DeveloperOAuthLogin",
  description: "A developer who signed in, or signed up, with a provider."
})

const Linked = Schema.Struct({
  intent: Schema.Literal("link"),
  provider: DeveloperProvider,
  identities: Schema.Array(DeveloperIdentity)
}).annotate({
  identifier: "DeveloperOAuthLink",
  description: "The external accounts of the developer after one was linked."
})

const Reauthenticated = Schema.Struct({
  intent: Schema.Literal("reauth"),
  provider: DeveloperProvider,
  reauthToken: Schema.String,
  expiresAt: Timestamp
}).annotate({
  identifier: "DeveloperReauthentication",
  description: "A token that proves once, for five minutes, who the developer of the session is."
})

/** Response of an exchange, by the intent of its flow. */
export const DeveloperExchanged = Schema.Union([Login, Linked, Reauthenticated]).annotate({
  identifier: "DeveloperOAuthResult",
  description: "The result of a developer's OAuth flow, by its intent."
})
export type DeveloperExchanged = typeof DeveloperExchanged.Type

/** Reasons for which the code of a sign-in may be refused. */
export const exchangeErrors = [
  wire(InvalidCode),
  wire(InvalidCredentials),
  wire(IdentityAlreadyLinked),
  wire(SignupsClosed),
  wire(EmailTaken),
  wire(InvalidInviteCode),
  wire(InviteCodeUsed),
  wire(InviteLimitReached),
  wire(Unauthorized),
  ...repeatErrors
] as const

const params = { provider: DeveloperProvider }

/** `/v1/developers/oauth`. */
export class DeveloperOAuthApi extends group(
  "developerOAuth",
  "developers",
  "Developer sign-in with a provider",
  "Sign-in, link and renewed proof of developers with Google or GitHub."
)
  .add(
    HttpApiEndpoint.post("start", "/:provider/start", {
      params,
      payload: DeveloperStart,
      success: Schema.Struct({ url: Schema.String }).annotate({
        identifier: "DeveloperProviderUrl",
        description: "The address at which the developer signs in with the provider."
      }),
      error: [wire(ProviderNotConfigured), wire(Unauthorized)]
    })
      .middleware(Requests)
      .middleware(OptionalDeveloperSession)
      .annotate(OpenApi.Summary, "Start a sign-in, or with a session a link or a new proof"),
    HttpApiEndpoint.get("callback", "/:provider/callback", {
      params,
      query: ProviderReturn,
      success: HttpApiSchema.Empty(302)
    })
      .middleware(Requests)
      .annotate(OpenApi.Summary, "Callback of providers: redirects to the dashboard"),
    HttpApiEndpoint.post("exchange", "/exchange", {
      headers: repeatable,
      payload: DeveloperExchange,
      success: DeveloperExchanged,
      error: exchangeErrors
    })
      .middleware(Requests)
      .annotate(OpenApi.Summary, "Redeem the code of a sign-in, once, within a minute")
  )
  .prefix("/v1/developers/oauth") {}
