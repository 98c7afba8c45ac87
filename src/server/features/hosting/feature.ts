/** Hosting, as the service composes it. */
import { Layer } from "effect"
import { AppRepository } from "#sql/hosting/apps"
import { BlobRepository } from "#sql/hosting/blobs"
import { DeploymentRepository } from "#sql/hosting/deployments"
import { DomainRepository } from "#sql/hosting/domains"
import { Audit } from "../audit/service.ts"
import { Configs } from "../config/service.ts"
import { HostedApps } from "./apps.ts"
import { CustomDomains } from "./domains.ts"
import { HostingHttp } from "./handlers.ts"
import { Origins } from "./origins.ts"
import { ServedHostRoute } from "./served-host.ts"

export const hosting = {
  repositories: Layer.mergeAll(
    AppRepository.layer,
    BlobRepository.layer,
    DeploymentRepository.layer,
    DomainRepository.layer
  ),
  services: Origins.layer.pipe(
    Layer.provideMerge(HostedApps.layer),
    Layer.provideMerge(CustomDomains.layer),
    Layer.provide(Layer.merge(Audit.layer, Configs.layer))
  ),
  routes: HostingHttp,
  pages: ServedHostRoute
}
