/** The feature `oauth`. */
import { feature } from "../feature.ts"
import { ProjectProvidersApi, ProvidersApi } from "./api.ts"
import { DeveloperOAuthApi } from "./developers.ts"
import { OAuthApi } from "./sign-in.ts"

export const oauthFeature = feature({
  word: "oauth",
  groups: [OAuthApi, ProvidersApi, ProjectProvidersApi, DeveloperOAuthApi]
})
