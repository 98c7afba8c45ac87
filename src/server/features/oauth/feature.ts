/** OAuth sign-in, as the service composes it. */
import { Layer } from "effect"
import { FlowRepository } from "#sql/oauth/flows"
import { ProviderRepository } from "#sql/oauth/providers"
import { OAuthHttp } from "./handlers.ts"
import { ProvidersHttp } from "./provider-handlers.ts"

export const oauth = {
  repositories: Layer.merge(FlowRepository.layer, ProviderRepository.layer),
  routes: Layer.merge(OAuthHttp, ProvidersHttp)
}
