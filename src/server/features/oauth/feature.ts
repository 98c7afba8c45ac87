/** OAuth sign-in, as the service composes it. */
import { Effect, Layer } from "effect"
import { oauthFeature } from "#rpc/oauth/feature"
import { FlowRepository } from "#sql/oauth/flows"
import { ProviderRepository } from "#sql/oauth/providers"
import { type PlayerKey, playerPart } from "#server/platform/player-parts"
import { ProviderClients } from "./clients.ts"
import { FlowStore } from "./flow-store.ts"
import { ProviderGrants } from "./grants.ts"
import { IdentitySignIn } from "./identity-sign-in.ts"
import { OAuthHttp } from "./handlers.ts"
import { ProvidersHttp } from "./provider-handlers.ts"
import { Providers } from "./providers.ts"

/** The providers of a deleted player forget their grants. */
const part = Effect.map(ProviderGrants, (grants) => ({
  leave: ({ environmentId, playerId }: PlayerKey) =>
    Effect.map(grants.collect(environmentId, playerId), (collected) => grants.revoke(collected))
}))

export const oauth = {
  repositories: Layer.merge(FlowRepository.layer, ProviderRepository.layer),
  routeServices: Layer.merge(FlowStore.layer, IdentitySignIn.layer).pipe(
    Layer.provideMerge(ProviderGrants.layer),
    Layer.provideMerge(Layer.merge(ProviderClients.layer, Providers.layer))
  ),
  routes: Layer.merge(OAuthHttp, ProvidersHttp),
  player: playerPart(
    oauthFeature,
    [{ table: "sign_in_steps", exportedAs: null, deletion: "cascade" }],
    part
  )
}
