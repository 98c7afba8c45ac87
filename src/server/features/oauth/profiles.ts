/**
 * Decodes the user profiles of sign-in providers. The service trusts only the user id and never finds
 * an account by email address. The decoder drops values that the service cannot store or show.
 */
import { Effect, Schema } from "effect"
import { emailLimits } from "#rpc/email"
import { displayNameMaxCharacters } from "#rpc/players"
import { lineIssue, nameFrom } from "#rpc/text"

/** User of a provider. */
export const ProviderProfile = Schema.Struct({
  /** Permanent id of the user at the provider. */
  subject: Schema.String.check(Schema.isPattern(/^[!-~]{1,255}$/)),
  email: Schema.NullOr(Schema.String),
  emailVerified: Schema.Boolean,
  username: Schema.NullOr(Schema.String),
  /** An `https` address of a picture; only X sends one. */
  avatarUrl: Schema.NullOr(Schema.String),
  /** Name for the display name of a new player, before truncation. */
  name: Schema.NullOr(Schema.String)
})
export type ProviderProfile = typeof ProviderProfile.Type

/** Cuts a name to the limits of display names; undefined if nothing remains. */
export const displayNameOf = (name: string | null): string | undefined =>
  nameFrom(name ?? "", displayNameMaxCharacters)

/** Returns the value if it is displayable text of at most `max` characters, else null. */
const textOr = (value: unknown, max: number): string | null => {
  if (typeof value !== "string" || value.length > max) return null
  return lineIssue(value) === undefined ? value : null
}

/** Whether a value is true. Apple sometimes sends booleans as text. */
const isTrue = (value: unknown): boolean => value === true || value === "true"

const usernameMaxCharacters = 64
const nameMaxCharacters = 256
const avatarUrlMaxCharacters = 512

interface RawProfile {
  readonly subject: unknown
  readonly email?: unknown
  readonly emailVerified?: unknown
  readonly username?: unknown
  readonly name?: unknown
  readonly avatarUrl?: unknown
}

/** Returns the address of a picture if a page may load it, else null. */
const pictureOr = (value: unknown): string | null => {
  const text = textOr(value, avatarUrlMaxCharacters)
  return text !== null && URL.parse(text)?.protocol === "https:" ? text : null
}

const decodeProfile = Schema.decodeUnknownEffect(ProviderProfile)

const profileOf = (raw: RawProfile) => {
  const { avatarUrl, email, emailVerified, name, subject, username } = raw
  const address = textOr(email, emailLimits.addressMaxCharacters)
  return decodeProfile({
    subject,
    email: address,
    emailVerified: address !== null && isTrue(emailVerified),
    username: textOr(username, usernameMaxCharacters),
    avatarUrl: pictureOr(avatarUrl),
    name: typeof name === "string" ? name.slice(0, nameMaxCharacters) : null
  })
}

/** Returns the profile in the claims of an id token. `name` is a separately sent name. */
export const profileFromClaims = (claims: Readonly<Record<string, unknown>>, name?: string) =>
  profileOf({
    subject: claims["sub"],
    email: claims["email"],
    emailVerified: claims["email_verified"],
    name: name ?? claims["name"]
  })

const decodeDiscord = Schema.decodeUnknownEffect(
  Schema.fromJsonString(
    Schema.Struct({
      id: Schema.String,
      username: Schema.String,
      global_name: Schema.optionalKey(Schema.NullOr(Schema.String)),
      email: Schema.optionalKey(Schema.NullOr(Schema.String)),
      verified: Schema.optionalKey(Schema.Boolean)
    })
  )
)

/** Returns the profile in the response of Discord's `GET /users/@me`. */
export const profileFromDiscord = Effect.fnUntraced(function* (body: string) {
  const { email, global_name, id, username, verified } = yield* decodeDiscord(body)
  // An account without a display name may have an empty one.
  const name = global_name?.trim() ? global_name : username
  return yield* profileOf({ subject: id, email, emailVerified: verified, username, name })
})

const decodeX = Schema.decodeUnknownEffect(
  Schema.fromJsonString(
    Schema.Struct({
      data: Schema.Struct({
        id: Schema.String,
        name: Schema.String,
        username: Schema.String,
        profile_image_url: Schema.optionalKey(Schema.NullOr(Schema.String))
      })
    })
  )
)

/** Returns the profile in the response of X's `GET /2/users/me`, which has no email address. */
export const profileFromX = Effect.fnUntraced(function* (body: string) {
  const { id, name, profile_image_url, username } = (yield* decodeX(body)).data
  return yield* profileOf({ subject: id, username, name, avatarUrl: profile_image_url })
})

const decodeGithub = Schema.decodeUnknownEffect(
  Schema.fromJsonString(
    Schema.Struct({
      id: Schema.Int,
      login: Schema.String,
      name: Schema.optionalKey(Schema.NullOr(Schema.String))
    })
  )
)

const decodeGithubEmails = Schema.decodeUnknownEffect(
  Schema.fromJsonString(
    Schema.Array(
      Schema.Struct({ email: Schema.String, primary: Schema.Boolean, verified: Schema.Boolean })
    )
  )
)

/**
 * Returns the profile in the responses of GitHub's `GET /user` and `GET /user/emails`, with the primary
 * address.
 */
export const profileFromGithub = Effect.fnUntraced(function* (body: string, emails: string) {
  const { id, login, name } = yield* decodeGithub(body)
  const primary = (yield* decodeGithubEmails(emails)).find((each) => each.primary)
  return yield* profileOf({
    subject: String(id),
    email: primary?.email,
    emailVerified: primary?.verified,
    username: login,
    name: name ?? login
  })
})

const part = Schema.optionalKey(Schema.NullOr(Schema.String))

const decodeAppleUser = Schema.decodeUnknownOption(
  Schema.fromJsonString(
    Schema.Struct({
      name: Schema.optionalKey(Schema.Struct({ firstName: part, lastName: part }))
    })
  )
)

/** Returns the name in the `user` parameter, which Apple sends at the first sign-in only. */
export const nameOfAppleUser = (user: string | undefined): string | undefined => {
  const decoded = decodeAppleUser(user)
  if (decoded._tag === "None" || decoded.value.name === undefined) return undefined
  const { firstName, lastName } = decoded.value.name
  return [firstName, lastName].filter((value) => typeof value === "string").join(" ")
}
