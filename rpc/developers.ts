/**
 * Developer accounts, for people who use the dashboard. A session is a `kds_` token, shown once, that
 * expires 30 days after its last use, and at most 180 days after the sign-in.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiSchema, OpenApi } from "effect/http-api"
import { DeveloperSession, Requests } from "./auth.ts"
import { featureTable } from "./config-document/features.ts"
import { Email, emailLimits, GivenEmail, GivenPassword, NewPassword } from "./email.ts"
import {
  AlreadyRedeemed,
  EmailTaken,
  InvalidCredentials,
  InvalidInviteCode,
  InvalidToken,
  InviteCodeUsed,
  InviteLimitReached,
  LastLoginMethod,
  MailUnavailable,
  NotFound,
  SignupsClosed,
  wire
} from "./errors/codes.ts"
import { feature, group } from "./feature.ts"
import { DeveloperId } from "./ids.ts"
import { repeatable, repeatErrors } from "./spent-secrets.ts"
import { nameUpTo, Timestamp } from "./text.ts"

export const developerNameMaxCharacters = 80
const inviteCodeMaxCharacters = 128

/** A developer's own account. */
export const Developer = Schema.Struct({
  id: DeveloperId,
  email: Schema.String,
  emailVerified: Schema.Boolean,
  name: Schema.NullOr(Schema.String),
  hasPassword: Schema.Boolean,
  createdAt: Timestamp
}).annotate({ identifier: "Developer", description: "A developer's own account." })
export type Developer = typeof Developer.Type

/** Credit of an invite code in cents, for usage fees only; pending until the address is confirmed. */
export const InviteCredit = Schema.Struct({
  credited: Schema.Int,
  currency: Schema.String,
  pending: Schema.Boolean
}).annotate({
  identifier: "InviteCredit",
  description:
    "Credit of an invite code in cents, for usage fees only. It is pending until the developer's email " +
    "address is confirmed."
})

export type InviteCredit = typeof InviteCredit.Type

/** Outcome of an invite code; an account that exists leaves it unused. */
export const InviteOutcome = Schema.Union([
  InviteCredit,
  Schema.Struct({ ignored: Schema.Literal(true) }).annotate({
    identifier: "InviteIgnored",
    description: "The account exists, so the invite code stays unused."
  })
]).annotate({ identifier: "InviteOutcome", description: "What became of the invite code." })

/** Response of a sign-in; each use of the token extends `expiresAt`. */
export const DeveloperSignedIn = Schema.Struct({
  developer: Developer,
  token: Schema.String,
  expiresAt: Timestamp,
  /** Outcome of the invite code; present where the request had one. */
  invite: Schema.optionalKey(InviteOutcome)
}).annotate({
  identifier: "DeveloperSignedIn",
  description:
    "A developer and the token of the session. Each use of the token extends `expiresAt`."
})
export type DeveloperSignedIn = typeof DeveloperSignedIn.Type

/** An external account that a developer signs in with. */
export const DeveloperIdentity = Schema.Struct({
  provider: Schema.String,
  email: Schema.NullOr(Schema.String),
  username: Schema.NullOr(Schema.String),
  linkedAt: Timestamp
}).annotate({
  identifier: "DeveloperIdentity",
  description: "An external account that a developer signs in with."
})
export type DeveloperIdentity = typeof DeveloperIdentity.Type

const DeveloperName = nameUpTo(developerNameMaxCharacters)

/** Fields that admit a new account where sign-up is not open. */
export const invitation = {
  inviteCode: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(inviteCodeMaxCharacters))),
  /**
   * Setup token, required for the first account of a production deployment. That account needs no
   * invite code.
   */
  setupToken: Schema.optionalKey(Schema.String)
}

export const Signup = Schema.Struct({
  email: Email,
  password: NewPassword,
  name: Schema.optionalKey(DeveloperName),
  ...invitation
})
export type Signup = typeof Signup.Type

export const Login = Schema.Struct({ email: GivenEmail, password: GivenPassword })

/** Proof of the developer's identity: the password, or a recent external sign-in. */
const proof = {
  password: Schema.optionalKey(GivenPassword),
  reauthToken: Schema.optionalKey(Schema.String)
}

const DeveloperResponse = Schema.Struct({ developer: Developer }).annotate({
  identifier: "DeveloperResponse",
  description: "One developer."
})

/** `/v1/developers`: sign-up and sign-in, without an API key. */
export class DeveloperSignInApi extends group(
  "developerSignIn",
  "developers",
  "Developer sign-in",
  "Sign-up and sign-in of developers, without a key."
)
  .add(
    HttpApiEndpoint.post("signup", "/signup", {
      headers: repeatable,
      payload: Signup,
      success: DeveloperSignedIn,
      error: [
        wire(SignupsClosed),
        wire(EmailTaken),
        wire(InvalidInviteCode),
        wire(InviteCodeUsed),
        wire(InviteLimitReached),
        ...repeatErrors
      ]
    }).annotate(OpenApi.Summary, "Create a developer account and sign in"),
    HttpApiEndpoint.post("login", "/login", {
      payload: Login,
      success: DeveloperSignedIn,
      error: wire(InvalidCredentials)
    }).annotate(OpenApi.Summary, "Sign in as a developer"),
    HttpApiEndpoint.post("verifyEmail", "/email/verify", {
      headers: repeatable,
      payload: Schema.Struct({
        token: Schema.String.check(Schema.isBetweenLength(1, emailLimits.tokenMaxCharacters))
      }),
      success: DeveloperResponse,
      error: [wire(InvalidToken).pipe(HttpApiSchema.status(400)), ...repeatErrors]
    }).annotate(OpenApi.Summary, "Confirm the address that a link was sent to")
  )
  .prefix("/v1/developers")
  .middleware(Requests) {}

const identities = Schema.Struct({ identities: Schema.Array(DeveloperIdentity) }).annotate({
  identifier: "DeveloperIdentityList",
  description: "The external accounts of the developer."
})

/** `/v1/developers`: the developer's own account and session. */
export class DevelopersApi extends group(
  "developers",
  "developers",
  "Developers",
  "The account, identities and session of the signed-in developer."
)
  .add(
    HttpApiEndpoint.post("logout", "/logout", { success: Schema.Struct({}) }).annotate(
      OpenApi.Summary,
      "End this session"
    ),
    HttpApiEndpoint.get("me", "/me", {
      success: DeveloperResponse
    }).annotate(OpenApi.Summary, "Read the developer of this session"),
    HttpApiEndpoint.post("password", "/me/password", {
      headers: repeatable,
      payload: Schema.Struct({
        currentPassword: proof.password,
        reauthToken: proof.reauthToken,
        newPassword: NewPassword
      }),
      success: DeveloperResponse,
      error: [wire(InvalidCredentials), ...repeatErrors]
    }).annotate(OpenApi.Summary, "Set or change the password; other sessions end"),
    HttpApiEndpoint.post("sendVerification", "/me/email/verification", {
      success: Schema.Struct({}),
      error: wire(MailUnavailable)
    }).annotate(OpenApi.Summary, "Send a link that confirms the developer's email address"),
    HttpApiEndpoint.post("redeemInvite", "/me/invite-code", {
      headers: repeatable,
      payload: Schema.Struct({
        code: Schema.String.check(Schema.isMaxLength(inviteCodeMaxCharacters))
      }),
      success: InviteCredit,
      error: [
        wire(InvalidInviteCode),
        wire(InviteCodeUsed),
        wire(InviteLimitReached),
        wire(AlreadyRedeemed),
        ...repeatErrors
      ]
    }).annotate(OpenApi.Summary, "Redeem an invite code, once for each account"),
    HttpApiEndpoint.get("identities", "/me/identities", { success: identities }).annotate(
      OpenApi.Summary,
      "List the external accounts that this developer signs in with"
    ),
    HttpApiEndpoint.delete("unlink", "/me/identities/:provider", {
      params: { provider: Schema.String },
      headers: repeatable,
      payload: Schema.Struct(proof),
      success: identities,
      error: [wire(InvalidCredentials), wire(LastLoginMethod), wire(NotFound), ...repeatErrors]
    }).annotate(OpenApi.Summary, "Unlink an external account")
  )
  .prefix("/v1/developers")
  .middleware(Requests)
  .middleware(DeveloperSession) {}

/**
 * Capabilities of a deployment; `signups` is the current sign-up policy. `setupTokenRequired` until a
 * production deployment has its first account.
 */
export const PlatformInfo = Schema.Struct({
  name: Schema.String,
  version: Schema.String,
  oauthProviders: Schema.Array(Schema.String),
  signups: Schema.Literals(["closed", "invite", "open"]),
  setupTokenRequired: Schema.Boolean,
  billing: Schema.Struct({ enabled: Schema.Boolean, currency: Schema.String }),
  hostingDomain: Schema.NullOr(Schema.String),
  features: Schema.Array(Schema.Literals(Object.values(featureTable).map(({ key }) => key)))
}).annotate({
  identifier: "PlatformInfo",
  description: "Capabilities of this deployment. `signups` is the policy for developer accounts."
})

/** `/v1/platform`: public information for the dashboard's sign-in page. */
export class PlatformApi extends group(
  "platform",
  "developers",
  "Platform",
  "Name, version and enabled features of this deployment."
)
  .add(
    HttpApiEndpoint.get("info", "/info", { success: PlatformInfo }).annotate(
      OpenApi.Summary,
      "Read the version and capabilities of this deployment"
    )
  )
  .prefix("/v1/platform")
  .middleware(Requests) {}

export const developersFeature = feature({
  word: "developers",
  groups: [DeveloperSignInApi, DevelopersApi, PlatformApi]
})
