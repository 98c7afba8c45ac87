/**
 * Sign-in with an email address and a password. Only sign-up and link reveal whether an address has
 * an account, since they cannot hide it.
 *
 * Links in mails last 24 hours (verification) or 30 minutes (reset), and each works once. A link
 * leads to `<redirectUrl>#svc_verify=<token>` or `#svc_reset=<token>`, or without a `redirectUrl`
 * to a page of the service. The page there posts the token. A verification mail has a second link,
 * to a page of the service. By it the owner of the mailbox removes the address from the player.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiSchema, OpenApi } from "effect/http-api"
import { FeatureGate, PlayerToken, PublishableKey, Requests, RequiredFeature } from "./auth.ts"
import {
  EmailAlreadyLinked,
  EmailTaken,
  IdentityAlreadyLinked,
  InvalidCredentials,
  InvalidRefreshToken,
  InvalidToken,
  MailUnavailable,
  NotFound,
  PlayerBanned,
  SessionRevoked,
  wire
} from "./errors/codes.ts"
import { feature, group } from "./feature.ts"
import { DisplayName, PlayerResponse } from "./players.ts"
import { RefreshToken, Session, sessionLimits } from "./sessions.ts"
import { repeatable, repeatErrors } from "./spent-secrets.ts"
import { secondsPerHour } from "./units.ts"

/** Email addresses and the links in mails. */
export const emailLimits = {
  addressMaxCharacters: 254,
  redirectUrlMaxCharacters: 2048,
  tokenMaxCharacters: 128
} as const

/** Sign-ups and sign-ins of players and of developers, by email address. */
export const signInThrottles = {
  signupPerAddress: { burst: 10, seconds: 3600 },
  /**
   * Failed sign-ins: of one account from one address, of one account from anywhere, and from one
   * address to any account. NIST SP 800-63B allows at most 100 attempts for each account.
   */
  loginPerAccount: { burst: 10, seconds: 900 },
  loginPerAccountAnywhere: { burst: 100, seconds: secondsPerHour },
  loginPerAddress: { burst: 60, seconds: 900 },
  /** Reset links requested from one IP address, for any account. */
  forgotPerAddress: { burst: 30, seconds: secondsPerHour }
} as const

/** Excludes every character with a meaning in mail headers. */
const addressForm = /^[^\s@"(),:;<>[\]\\\p{C}]+@[^\s@"(),:;<>[\]\\\p{C}]+$/u

/** Characters that show nothing, so that two addresses look alike. U+2800 is a blank Braille pattern. */
const invisible = /[\p{Default_Ignorable_Code_Point}\u2800]/u

/** Without the characters that end the host of a URL or stand for another one. */
const domainForm = /^[a-z0-9._\-\u0080-\u{10ffff}]+$/iu

const labels = /^(?!.*\.\d+$)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*$/

/** The ASCII form of a domain: lower case, and other scripts as `xn--`. Undefined if there is none. */
const asciiDomain = (domain: string): string | undefined => {
  if (!domainForm.test(domain)) return undefined
  const host = URL.parse(`http://${domain}`)?.hostname
  return host !== undefined && labels.test(host) ? host : undefined
}

/** An address as it was typed, but for case. Releases before 0.2.0 stored it in this form. */
export const typedEmail = (text: string): string => text.trim().normalize("NFC").toLowerCase()

/**
 * The form in which the service stores an address: lower case, with the domain in ASCII. So a domain
 * and its `xn--` form are one mailbox.
 */
export const normalizeEmail = (text: string): string => {
  const address = typedEmail(text)
  const at = address.lastIndexOf("@")
  const domain = asciiDomain(address.slice(at + 1))
  return domain === undefined ? address : `${address.slice(0, at + 1)}${domain}`
}

const isAddress = (text: string): boolean => {
  const address = text.trim()
  if (!addressForm.test(address) || invisible.test(address)) return false
  return asciiDomain(address.slice(address.lastIndexOf("@") + 1)) !== undefined
}

const addressIssue = `Expected an email address of at most ${emailLimits.addressMaxCharacters} characters`

const addressOf = (isValid: (text: string) => boolean) =>
  Schema.String.check(
    Schema.makeFilter((text: string) =>
      isValid(text) && normalizeEmail(text).length <= emailLimits.addressMaxCharacters
        ? undefined
        : addressIssue
    )
  )

/** A well-formed address. Only a verification mail proves that it exists. */
export const Email = addressOf(isAddress)

/**
 * The address of an account that may exist. Earlier releases accepted more addresses, and their accounts
 * can still sign in.
 */
export const GivenEmail = addressOf((text) => addressForm.test(text.trim()))

/** Whether a text is a well-formed address. */
export const isEmail = Schema.is(Email)

/** Whether a text may be the address of an account. */
export const isGivenEmail = Schema.is(GivenEmail)

/** A new password: 8 to 256 characters. Characters beyond the basic plane count as one. */
export const NewPassword = Schema.String.check(
  Schema.isBetweenLength(sessionLimits.passwordMinCharacters, sessionLimits.passwordMaxCharacters),
  Schema.makeFilter((text: string) => {
    if (!text.isWellFormed()) return "Expected no lone surrogates"
    // The check above names a text that is too short in any count.
    const min = sessionLimits.passwordMinCharacters
    return text.length < min || [...text].length >= min
      ? undefined
      : `Expected at least ${sessionLimits.passwordMinCharacters} characters`
  })
)

/** An existing password that the service verifies. */
export const GivenPassword = Schema.String.check(
  Schema.isBetweenLength(1, sessionLimits.passwordMaxCharacters)
)

/**
 * Target of the link in the mail. It must match `auth.redirectUrls`, else 400 `invalid_request`.
 */
const redirectUrl = Schema.optionalKey(
  Schema.String.check(Schema.isMaxLength(emailLimits.redirectUrlMaxCharacters))
)

const Token = Schema.String.check(Schema.isBetweenLength(1, emailLimits.tokenMaxCharacters))

/** 400 for a link that was used, has expired or never existed. */
const invalidToken = wire(InvalidToken).pipe(HttpApiSchema.status(400))

const Done = Schema.Struct({})

/** `/v1/auth`: sign-up and sign-in by email, and the links in mails. */
export class EmailApi extends group(
  "email",
  "players",
  "Email sign-in",
  "Sign-up and sign-in with an email address and a password, and the links in mails."
)
  .add(
    HttpApiEndpoint.post("signup", "/email/signup", {
      payload: Schema.Struct({
        email: Email,
        password: NewPassword,
        displayName: Schema.optionalKey(DisplayName),
        redirectUrl
      }),
      success: Session,
      error: wire(EmailTaken)
    }).annotate(OpenApi.Summary, "Create a player with an email and a password and sign it in"),
    HttpApiEndpoint.post("login", "/email/login", {
      payload: Schema.Struct({ email: GivenEmail, password: GivenPassword }),
      success: Session,
      error: [wire(InvalidCredentials), wire(PlayerBanned)]
    }).annotate(OpenApi.Summary, "Sign in with an email and a password"),
    HttpApiEndpoint.post("verify", "/email/verify", {
      headers: repeatable,
      payload: Schema.Struct({ token: Token }),
      success: PlayerResponse,
      error: [invalidToken, wire(PlayerBanned), ...repeatErrors]
    }).annotate(OpenApi.Summary, "Confirm an email with the token of a verification link"),
    HttpApiEndpoint.post("disown", "/email/disown", {
      headers: repeatable,
      payload: Schema.Struct({ token: Token }),
      success: Done,
      error: [invalidToken, ...repeatErrors]
    }).annotate(
      OpenApi.Summary,
      "Remove an email and its password from a player with the token of the mail's second link"
    ),
    HttpApiEndpoint.post("forgot", "/password/forgot", {
      // Any text: a reset request for a text that is no address succeeds and sends no mail.
      payload: Schema.Struct({ email: Schema.String, redirectUrl }),
      success: Done,
      error: wire(MailUnavailable)
    }).annotate(OpenApi.Summary, "Send a reset link if the account exists"),
    HttpApiEndpoint.post("reset", "/password/reset", {
      headers: repeatable,
      payload: Schema.Struct({ token: Token, password: NewPassword }),
      success: Done,
      error: [invalidToken, wire(PlayerBanned), ...repeatErrors]
    }).annotate(OpenApi.Summary, "Set a password with the token of a reset link; ends all sessions")
  )
  .annotateEndpoints(RequiredFeature, "emailLogin")
  .prefix("/v1/auth")
  .middleware(Requests)
  .middleware(FeatureGate)
  .middleware(PublishableKey) {}

/** `/v1/auth`: email and password of the signed-in player. */
export class PlayerEmailApi extends group(
  "playerEmail",
  "players",
  "Email of the player",
  "Linking an email address to the signed-in player, and changing its password."
)
  .add(
    HttpApiEndpoint.post("link", "/link/email", {
      payload: Schema.Struct({ email: Email, password: NewPassword, redirectUrl }),
      success: PlayerResponse,
      error: [
        wire(IdentityAlreadyLinked),
        wire(EmailAlreadyLinked),
        wire(NotFound),
        wire(SessionRevoked)
      ]
    }).annotate(OpenApi.Summary, "Add an email and a password; a guest becomes permanent"),
    HttpApiEndpoint.post("resend", "/email/resend", {
      payload: Schema.Struct({ redirectUrl }),
      success: Done,
      error: [wire(MailUnavailable), wire(NotFound)]
    }).annotate(OpenApi.Summary, "Send the verification link again, unless the email is confirmed"),
    HttpApiEndpoint.post("change", "/password/change", {
      payload: Schema.Struct({
        currentPassword: GivenPassword,
        newPassword: NewPassword,
        ...RefreshToken.fields
      }),
      success: Done,
      error: [wire(InvalidCredentials), wire(InvalidRefreshToken), wire(SessionRevoked)]
    }).annotate(OpenApi.Summary, "Change the password; every other device is signed out")
  )
  .annotateEndpoints(RequiredFeature, "emailLogin")
  .prefix("/v1/auth")
  .middleware(Requests)
  .middleware(FeatureGate)
  .middleware(PlayerToken)
  .middleware(PublishableKey) {}

export const emailFeature = feature({
  word: "email",
  groups: [EmailApi, PlayerEmailApi],
  playerLimits: ["proof"]
})
