/** Share links, as the service composes them. */
import { Layer } from "effect"
import { ShareLinkRepository } from "#sql/share/links"
import { ShareVisitRepository } from "#sql/share/visits"
import { XProfileRepository } from "#sql/share/x-profiles"
import { ShareHttp } from "./handlers.ts"
import { XProfilesHttp } from "./x-profiles.ts"

export const share = {
  repositories: Layer.mergeAll(
    ShareLinkRepository.layer,
    ShareVisitRepository.layer,
    XProfileRepository.layer
  ),
  routes: Layer.merge(ShareHttp, XProfilesHttp)
}
