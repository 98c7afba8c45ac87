/** The public list of rooms. */
import { Schema } from "effect"
import { HttpApiEndpoint, OpenApi } from "effect/http-api"
import {
  FeatureGate,
  OptionalPlayerToken,
  PublishableKey,
  RequiredFeature,
  Requests
} from "../auth.ts"
import { ModeNotFound, wire } from "../errors/codes.ts"
import { group } from "../feature.ts"
import { JsonObject } from "../json.ts"
import { underKey } from "../mounts.ts"
import { Operation } from "../operations.ts"
import { PageLimit } from "../pages.ts"
import { Timestamp } from "../text.ts"

/** A room in `GET /v1/rooms`; `players` is a count. */
export const PublicRoom = Schema.Struct({
  id: Schema.String,
  code: Schema.String,
  mode: Schema.String,
  players: Schema.Int,
  maxPlayers: Schema.Int,
  metadata: JsonObject,
  createdAt: Timestamp
}).annotate({ identifier: "PublicRoom", description: "An open room. `players` is a count." })
export type PublicRoom = typeof PublicRoom.Type

const roomsOf = <Id extends string>(id: Id) =>
  group(
    id,
    "games",
    "Rooms",
    "The list of open rooms. Everything else in rooms happens over the realtime socket."
  ).add(
    HttpApiEndpoint.get("list", "/rooms", {
      query: { mode: Schema.optionalKey(Schema.String), limit: Schema.optionalKey(PageLimit) },
      success: Schema.Struct({ rooms: Schema.Array(PublicRoom) }).annotate({
        identifier: "PublicRoomList",
        description: "Public, unlocked rooms with a free seat, newest first."
      }),
      error: wire(ModeNotFound)
    })
      .annotate(OpenApi.Summary, "List open public rooms")
      .annotate(RequiredFeature, "multiplayer")
  )

/**
 * `/v1/rooms`: public, unlocked rooms with a free seat, newest first. The list is at most a second old. With
 * a player's token it leaves out the rooms of hosts who have blocked the player.
 */
export class RoomsApi extends roomsOf("rooms")
  .prefix("/v1")
  .middleware(Requests)
  .middleware(FeatureGate)
  .middleware(OptionalPlayerToken)
  .middleware(PublishableKey) {}

/** `/v1/admin/rooms` in the process: the same list for functions. */
export class ServerRoomsApi extends underKey(
  roomsOf("serverRooms").annotateEndpoints(Operation, { functions: true }).middleware(FeatureGate)
) {}
