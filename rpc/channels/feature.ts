/** The feature `channels`. */
import { Schema } from "effect"
import { feature } from "../feature.ts"
import { ChannelsApi } from "./api.ts"

export const channelsFeature = feature({
  word: "channels",
  groups: [ChannelsApi],
  playerLimits: ["channel-create"],
  exported: {
    /** Channels with the player on a list. */
    channels: Schema.Array(Schema.String)
  }
})
