/** The feature `hosting`. */
import { feature } from "../feature.ts"
import { HostingApi, ProjectHostingApi } from "./api.ts"

export const hostingFeature = feature({
  word: "hosting",
  groups: [HostingApi, ProjectHostingApi]
})
