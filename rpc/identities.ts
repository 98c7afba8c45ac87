/**
 * Sign-in methods of a player: an email address with a password, or a provider. The last method cannot
 * be removed. Removing one signs out every other device.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, OpenApi } from "effect/http-api"
import { PlayerToken, PublishableKey, Requests } from "./auth.ts"
import { InvalidRefreshToken, LastLoginMethod, NotFound, wire } from "./errors/codes.ts"
import { feature, group } from "./feature.ts"
import { PlayerResponse } from "./players.ts"
import { RefreshToken } from "./sessions.ts"
import { Timestamp } from "./text.ts"

/** OAuth providers. */
export const Provider = Schema.Literals(["google", "discord", "apple", "x"])
export type Provider = typeof Provider.Type

/** A sign-in method; `email` is an email address with a password. */
export const Method = Schema.Literals(["email", ...Provider.literals])
export type Method = typeof Method.Type

/**
 * A sign-in method as its player sees it, never the entry `guest`. `email` is the address from the
 * provider, unmasked. `linkedAt` is ISO 8601 UTC.
 */
export const LinkedIdentity = Schema.Struct({
  provider: Method,
  email: Schema.optionalKey(Schema.String),
  /** Whether the address is verified; present when `email` is. */
  emailVerified: Schema.optionalKey(Schema.Boolean),
  username: Schema.optionalKey(Schema.String),
  linkedAt: Timestamp
}).annotate({
  identifier: "LinkedIdentity",
  description: "A sign-in method as its player sees it."
})
export type LinkedIdentity = typeof LinkedIdentity.Type

/** `/v1/players/me/identities`: sign-in methods of the signed-in player. */
export class IdentitiesApi extends group(
  "identities",
  "players",
  "Identities",
  "The sign-in methods of the signed-in player."
)
  .add(
    HttpApiEndpoint.get("list", "/identities", {
      success: Schema.Struct({ identities: Schema.Array(LinkedIdentity) }).annotate({
        identifier: "LinkedIdentityList",
        description: "The sign-in methods of the player."
      })
    }).annotate(OpenApi.Summary, "List the player's sign-in methods, oldest first"),
    HttpApiEndpoint.delete("unlink", "/identities/:provider", {
      params: { provider: Schema.String },
      payload: RefreshToken,
      success: PlayerResponse,
      error: [wire(InvalidRefreshToken), wire(NotFound), wire(LastLoginMethod)]
    }).annotate(OpenApi.Summary, "Remove a sign-in method; every other device is signed out")
  )
  .prefix("/v1/players/me")
  .middleware(Requests)
  .middleware(PlayerToken)
  .middleware(PublishableKey) {}

export const identitiesFeature = feature({
  word: "identities",
  groups: [IdentitiesApi],
  exported: {
    /** `subject` is the provider's id of the player; for `email`, the address. */
    identities: Schema.Array(Schema.Struct({ ...LinkedIdentity.fields, subject: Schema.String }))
  }
})
