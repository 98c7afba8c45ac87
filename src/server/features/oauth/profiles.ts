/**
 * People as sign-in providers tell of them. Nothing of it is believed but who it is: an account is
 * never found by an email address. What we could not store, or show, is left out.
 */
import { Effect, Schema } from "effect"
import { email as emails, sessions } from "#rpc/limits"
import { normalizeDisplayName } from "#rpc/players"

/** A person at a provider. */
export const ProviderProfile = Schema.Struct({
  /** The provider's id of the person, for good. */
  subject: Schema.String.check(Schema.isPattern(/^[!-~]{1,255}$/)),
  email: Schema.NullOr(Schema.String),
  emailVerified: Schema.Boolean,
  username: Schema.NullOr(Schema.String),
  /** For a new player; as the provider has it. */
  name: Schema.NullOr(Schema.String)
})
export type ProviderProfile = typeof ProviderProfile.Type

const controlCharacters = /\p{Cc}/gu

/** A name cut to what a display name may be; undefined when nothing is left of it. */
export const displayNameOf = (name: string | null): string | undefined => {
  const clean = normalizeDisplayName((name ?? "").replace(controlCharacters, " "))
  const cut = [...clean].slice(0, sessions.displayNameMaxCharacters).join("").trim()
  return cut === "" ? undefined : cut
}

/** A text without control characters, up to so many characters; anything else counts as absent. */
const textOr = (value: unknown, max: number): string | null => {
  if (typeof value !== "string" || value === "" || value.length > max) return null
  return value.search(controlCharacters) === -1 ? value : null
}

/** Apple writes its booleans as text at times. */
const isTrue = (value: unknown): boolean => value === true || value === "true"

const usernameMaxCharacters = 64
const nameMaxCharacters = 256

interface Told {
  readonly subject: unknown
  readonly email?: unknown
  readonly emailVerified?: unknown
  readonly username?: unknown
  readonly name?: unknown
}

const decodePerson = Schema.decodeUnknownEffect(ProviderProfile)

const personOf = ({ email, emailVerified, name, subject, username }: Told) => {
  const address = textOr(email, emails.addressMaxCharacters)
  return decodePerson({
    subject,
    email: address,
    emailVerified: address !== null && isTrue(emailVerified),
    username: textOr(username, usernameMaxCharacters),
    name: typeof name === "string" ? name.slice(0, nameMaxCharacters) : null
  })
}

/** The claims of an id token, with the name that came beside it, if any. */
export const profileFromClaims = (claims: Readonly<Record<string, unknown>>, name?: string) =>
  personOf({
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

/** `GET /users/@me` of Discord. */
export const profileFromDiscord = Effect.fnUntraced(function* (body: string) {
  const { email, global_name, id, username, verified } = yield* decodeDiscord(body)
  const name = global_name ?? username
  return yield* personOf({ subject: id, email, emailVerified: verified, username, name })
})

const decodeX = Schema.decodeUnknownEffect(
  Schema.fromJsonString(
    Schema.Struct({
      data: Schema.Struct({ id: Schema.String, name: Schema.String, username: Schema.String })
    })
  )
)

/** `GET /2/users/me` of X, which tells no address. */
export const profileFromX = Effect.fnUntraced(function* (body: string) {
  const { id, name, username } = (yield* decodeX(body)).data
  return yield* personOf({ subject: id, username, name })
})

const part = Schema.optionalKey(Schema.NullOr(Schema.String))

const decodeAppleUser = Schema.decodeUnknownOption(
  Schema.fromJsonString(
    Schema.Struct({
      name: Schema.optionalKey(Schema.Struct({ firstName: part, lastName: part }))
    })
  )
)

/** The name in the `user` that Apple sends the first time, and never again. */
export const nameOfAppleUser = (user: string | undefined): string | undefined => {
  const decoded = decodeAppleUser(user)
  if (decoded._tag === "None" || decoded.value.name === undefined) return undefined
  const { firstName, lastName } = decoded.value.name
  return [firstName, lastName].filter((it) => typeof it === "string").join(" ")
}
