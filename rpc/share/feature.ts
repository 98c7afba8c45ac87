/** The feature `share`. */
import { feature } from "../feature.ts"
import { AdminShareApi, ProjectShareApi, ShareApi } from "./api.ts"
import { XProfilesApi } from "./x-profiles.ts"

export const shareFeature = feature({
  word: "share",
  groups: [ShareApi, AdminShareApi, ProjectShareApi, XProfilesApi],
  playerLimits: ["share"]
})
