/**
 * Public part of a player's account at X: handle, name and picture, as of the last sign-in with X.
 * Other players see it only if the player opted in, and never that of a child.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, OpenApi } from "effect/http-api"
import { PlayerToken, PublishableKey, Requests } from "../auth.ts"
import { IdentityNotLinked, NotFound, wire } from "../errors/codes.ts"
import { group } from "../feature.ts"
import { share } from "./limits.ts"

const profile = {
  username: Schema.NullOr(Schema.String),
  name: Schema.NullOr(Schema.String),
  avatarUrl: Schema.NullOr(Schema.String)
}

/** The player's own profile; `visible` is its choice, which is false at first. */
export const XProfile = Schema.Struct({ ...profile, visible: Schema.Boolean }).annotate({
  identifier: "XProfile",
  description: "The player's own X profile, and whether other players see it."
})
export type XProfile = typeof XProfile.Type

/** Ids of players, separated by commas. */
const PlayerIds = Schema.String.check(
  Schema.makeFilter((ids) =>
    ids.split(",").length > share.xProfilesMax
      ? `Expected at most ${share.xProfilesMax} ids`
      : undefined
  )
)

/** `/v1/players/me/x-profile` and `/v1/players/x-profiles`. */
export class XProfilesApi extends group(
  "xProfiles",
  "players",
  "X profiles",
  "What players show of their account at X."
)
  .add(
    HttpApiEndpoint.get("own", "/me/x-profile", {
      success: XProfile,
      error: wire(IdentityNotLinked)
    })
      .annotate(OpenApi.Summary, "Read the player's own X profile, and whether others see it")
      .middleware(PlayerToken),
    HttpApiEndpoint.put("show", "/me/x-profile", {
      payload: Schema.Struct({ visible: Schema.Boolean }),
      success: XProfile,
      error: [wire(IdentityNotLinked), wire(NotFound)]
    })
      .annotate(OpenApi.Summary, "Show the X profile to other players, or hide it")
      .middleware(PlayerToken),
    HttpApiEndpoint.get("shown", "/x-profiles", {
      query: { ids: PlayerIds },
      success: Schema.Struct({
        profiles: Schema.Record(Schema.String, Schema.Struct(profile))
      }).annotate({
        identifier: "XProfiles",
        description: "X profiles by player id; those of players who show none are absent."
      })
    }).annotate(OpenApi.Summary, "Look up the X profiles of players who show theirs")
  )
  .prefix("/v1/players")
  .middleware(Requests)
  .middleware(PublishableKey) {}
