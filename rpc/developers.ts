/**
 * Developers: the people at the dashboard (spec section 4.9, decisions 3.13.1-2). A session is a
 * `kds_` token, shown once, that lasts 30 days from its last use.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { DeveloperSession, Requests } from "./auth.ts"
import { featureTable } from "./config-document/features.ts"
import { Email, GivenPassword, NewPassword } from "./email.ts"
import {
  EmailTaken,
  InvalidCredentials,
  InvalidInviteCode,
  InviteCodeUsed,
  LastLoginMethod,
  NotFound,
  SignupsClosed,
  wire
} from "./errors/codes.ts"
import { DeveloperId } from "./ids.ts"
import { developers } from "./limits.ts"

/** A developer as the developer sees it. */
export const Developer = Schema.Struct({
  id: DeveloperId,
  email: Schema.String,
  name: Schema.NullOr(Schema.String),
  hasPassword: Schema.Boolean,
  createdAt: Schema.String
})
export type Developer = typeof Developer.Type

/** A developer who has just signed in; `expiresAt` moves on whenever the token is used. */
export const DeveloperSignedIn = Schema.Struct({
  developer: Developer,
  token: Schema.String,
  expiresAt: Schema.String
})
export type DeveloperSignedIn = typeof DeveloperSignedIn.Type

/** An external account that a developer signs in with. */
export const DeveloperIdentity = Schema.Struct({
  provider: Schema.String,
  email: Schema.NullOr(Schema.String),
  username: Schema.NullOr(Schema.String),
  linkedAt: Schema.String
})
export type DeveloperIdentity = typeof DeveloperIdentity.Type

const DeveloperName = Schema.Trim.check(
  Schema.isBetweenLength(1, developers.nameMaxCharacters),
  Schema.isPattern(/^\P{Cc}*$/u, { message: "Expected no control characters" })
)

export const Signup = Schema.Struct({
  email: Email,
  password: NewPassword,
  name: Schema.optionalKey(DeveloperName),
  inviteCode: Schema.optionalKey(Schema.String)
})
export type Signup = typeof Signup.Type

export const Login = Schema.Struct({ email: Email, password: GivenPassword })

/** What proves that it is the developer who asks: the password, or a fresh external sign-in. */
const proof = {
  password: Schema.optionalKey(GivenPassword),
  reauthToken: Schema.optionalKey(Schema.String)
}

/** `/v1/developers`: signing up and in. No key is needed. */
export class DeveloperSignInApi extends HttpApiGroup.make("developerSignIn")
  .add(
    HttpApiEndpoint.post("signup", "/signup", {
      payload: Signup,
      success: DeveloperSignedIn,
      error: [wire(SignupsClosed), wire(EmailTaken), wire(InvalidInviteCode), wire(InviteCodeUsed)]
    }).annotate(OpenApi.Summary, "Make a developer's account and sign it in"),
    HttpApiEndpoint.post("login", "/login", {
      payload: Login,
      success: DeveloperSignedIn,
      error: wire(InvalidCredentials)
    }).annotate(OpenApi.Summary, "Sign a developer in")
  )
  .prefix("/v1/developers")
  .middleware(Requests) {}

const identities = Schema.Struct({ identities: Schema.Array(DeveloperIdentity) })

/** `/v1/developers`: the developer's own account and session. */
export class DevelopersApi extends HttpApiGroup.make("developers")
  .add(
    HttpApiEndpoint.post("logout", "/logout", { success: Schema.Struct({}) }).annotate(
      OpenApi.Summary,
      "End this session"
    ),
    HttpApiEndpoint.get("me", "/me", {
      success: Schema.Struct({ developer: Developer })
    }).annotate(OpenApi.Summary, "The developer of this session"),
    HttpApiEndpoint.post("password", "/me/password", {
      payload: Schema.Struct({
        currentPassword: proof.password,
        reauthToken: proof.reauthToken,
        newPassword: NewPassword
      }),
      success: Schema.Struct({ developer: Developer }),
      error: wire(InvalidCredentials)
    }).annotate(OpenApi.Summary, "Set or change the password; other sessions end"),
    HttpApiEndpoint.get("identities", "/me/identities", { success: identities }).annotate(
      OpenApi.Summary,
      "The external accounts that this developer signs in with"
    ),
    HttpApiEndpoint.delete("unlink", "/me/identities/:provider", {
      params: { provider: Schema.String },
      payload: Schema.Struct(proof),
      success: identities,
      error: [wire(InvalidCredentials), wire(LastLoginMethod), wire(NotFound)]
    }).annotate(OpenApi.Summary, "Stop signing in with an external account")
  )
  .prefix("/v1/developers")
  .middleware(Requests)
  .middleware(DeveloperSession) {}

/** What a deployment is and offers; `signups` says who may sign up right now. */
export const PlatformInfo = Schema.Struct({
  name: Schema.String,
  version: Schema.String,
  oauthProviders: Schema.Array(Schema.String),
  signups: Schema.Literals(["closed", "invite", "open"]),
  billing: Schema.Struct({ enabled: Schema.Boolean, currency: Schema.String }),
  hostingDomain: Schema.NullOr(Schema.String),
  features: Schema.Array(Schema.Literals(Object.values(featureTable).map(({ key }) => key)))
})

/** `/v1/platform`: what a dashboard asks before anybody has signed in. */
export class PlatformApi extends HttpApiGroup.make("platform")
  .add(
    HttpApiEndpoint.get("info", "/info", { success: PlatformInfo }).annotate(
      OpenApi.Summary,
      "What this deployment is and offers"
    )
  )
  .prefix("/v1/platform")
  .middleware(Requests) {}
