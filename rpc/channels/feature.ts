/** The feature `channels`. */
import { feature } from "../feature.ts"
import { ChannelsApi } from "./api.ts"

export const channelsFeature = feature({
  word: "channels",
  groups: [ChannelsApi],
  playerLimits: ["channel-create"]
})
