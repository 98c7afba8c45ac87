/** Functions, as the service composes them. */
import { FunctionsHttp } from "./handlers.ts"
import { FunctionRepositoriesLive } from "./layers.ts"

export const functions = {
  repositories: FunctionRepositoriesLive,
  routes: FunctionsHttp
}
