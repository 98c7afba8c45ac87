/** The feature `rooms`. */
import { Schema } from "effect"
import { feature } from "../feature.ts"
import { RoomsApi, ServerRoomsApi } from "./api.ts"

export const roomsFeature = feature({
  word: "rooms",
  groups: [RoomsApi],
  inProcess: [ServerRoomsApi],
  playerLimits: ["code", "moderate", "vote"],
  exported: {
    /** Rooms with a seat of the player. */
    rooms: Schema.Array(Schema.String)
  }
})
