/**
 * How a player signs in (spec sections 2.1, 3 and 4.1): an address and a password, or a provider. The
 * last way to sign in stays; unlinking one signs out every other device.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { PlayerToken, PublishableKey, Requests } from "./auth.ts"
import { InvalidRefreshToken, LastLoginMethod, NotFound, wire } from "./errors/codes.ts"
import { Player } from "./players.ts"
import { RefreshToken } from "./sessions.ts"

/** Who signs players in for us. */
export const Provider = Schema.Literals(["google", "discord", "apple", "x"])
export type Provider = typeof Provider.Type

/** A way to sign in; `email` is an address with a password. */
export const Method = Schema.Literals(["email", ...Provider.literals])
export type Method = typeof Method.Type

/**
 * A way to sign in as its player sees it, never the entry `guest`. `email` is what the provider told,
 * whole: it is the player's own. `linkedAt` is ISO 8601 UTC.
 */
export const LinkedIdentity = Schema.Struct({
  provider: Method,
  email: Schema.optionalKey(Schema.String),
  /** There when `email` is. */
  emailVerified: Schema.optionalKey(Schema.Boolean),
  username: Schema.optionalKey(Schema.String),
  linkedAt: Schema.String
})
export type LinkedIdentity = typeof LinkedIdentity.Type

/** `/v1/players/me/identities`: how the signed-in player signs in. */
export class IdentitiesApi extends HttpApiGroup.make("identities")
  .add(
    HttpApiEndpoint.get("list", "/identities", {
      success: Schema.Struct({ identities: Schema.Array(LinkedIdentity) })
    }).annotate(OpenApi.Summary, "How the player signs in, the oldest way first"),
    HttpApiEndpoint.delete("unlink", "/identities/:provider", {
      params: { provider: Schema.String },
      payload: RefreshToken,
      success: Schema.Struct({ player: Player }),
      error: [wire(InvalidRefreshToken), wire(NotFound), wire(LastLoginMethod)]
    }).annotate(OpenApi.Summary, "Take a way to sign in away; every other device is signed out")
  )
  .prefix("/v1/players/me")
  .middleware(Requests)
  .middleware(PlayerToken)
  .middleware(PublishableKey) {}
