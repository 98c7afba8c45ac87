/** Hosting, as the service composes it. */
import { Layer } from "effect"
import { AppRepository } from "#sql/hosting/apps"
import { BlobRepository } from "#sql/hosting/blobs"
import { DeploymentRepository } from "#sql/hosting/deployments"
import { DomainRepository } from "#sql/hosting/domains"
import { HostingHttp } from "./handlers.ts"

export const hosting = {
  repositories: Layer.mergeAll(
    AppRepository.layer,
    BlobRepository.layer,
    DeploymentRepository.layer,
    DomainRepository.layer
  ),
  routes: HostingHttp
}
