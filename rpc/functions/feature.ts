/** The feature `functions`. */
import { feature } from "../feature.ts"
import { FunctionsApi, ProjectFunctionsApi } from "./api.ts"

export const functionsFeature = feature({
  word: "functions",
  groups: [FunctionsApi, ProjectFunctionsApi]
})
