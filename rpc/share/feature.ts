/** The feature `share`. */
import { Schema } from "effect"
import { feature } from "../feature.ts"
import { Timestamp } from "../text.ts"
import { AdminShareApi, ProjectShareApi, ShareApi, ShareData, ShareKind } from "./api.ts"
import { XProfile, XProfilesApi } from "./x-profiles.ts"

export const shareFeature = feature({
  word: "share",
  groups: [ShareApi, AdminShareApi, ProjectShareApi, XProfilesApi],
  exported: {
    shareLinks: Schema.Array(
      Schema.Struct({
        id: Schema.String,
        kind: ShareKind,
        score: Schema.NullOr(Schema.Finite),
        showName: Schema.Boolean,
        data: Schema.NullOr(ShareData),
        createdAt: Timestamp
      })
    ),
    xProfile: Schema.NullOr(XProfile)
  }
})
