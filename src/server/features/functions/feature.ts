/** Functions, as the service composes them. */
import { Layer } from "effect"
import { FeaturesHttp } from "./feature-list.ts"
import { FunctionsHttp } from "./handlers.ts"
import { FunctionRepositoriesLive } from "./layers.ts"

export const functions = {
  repositories: FunctionRepositoriesLive,
  routes: Layer.merge(FeaturesHttp, FunctionsHttp)
}
