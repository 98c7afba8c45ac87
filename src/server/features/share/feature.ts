/** Share links, as the service composes them. */
import { DateTime, Effect, Layer, Option } from "effect"
import { shareFeature } from "#rpc/share/feature"
import { ShareLinkRepository } from "#sql/share/links"
import { ShareVisitRepository } from "#sql/share/visits"
import { XProfileRepository } from "#sql/share/x-profiles"
import { playerPart, type StoredPlayer } from "#server/platform/player-parts"
import { CardImages } from "./card-images.ts"
import { ShareHttp } from "./handlers.ts"
import { SharePage } from "./page.ts"
import { XProfilesHttp } from "./x-profiles.ts"

const part = Effect.gen(function* () {
  const links = yield* ShareLinkRepository
  const profiles = yield* XProfileRepository
  return {
    read: Effect.fnUntraced(function* (player: StoredPlayer) {
      return {
        shareLinks: (yield* links.ofPlayer(player)).map(
          ({ createdAt, data, id, kind, score, showName }) => ({
            id,
            kind,
            score,
            showName,
            data,
            createdAt: DateTime.formatIso(createdAt)
          })
        ),
        xProfile: Option.getOrNull(yield* profiles.own(player))
      }
    })
  }
})

export const share = {
  repositories: Layer.mergeAll(
    ShareLinkRepository.layer,
    ShareVisitRepository.layer,
    XProfileRepository.layer
  ),
  routeServices: CardImages.layer,
  routes: Layer.merge(ShareHttp, XProfilesHttp),
  pages: SharePage,
  player: playerPart(
    shareFeature,
    [{ table: "share_links", exportedAs: "shareLinks", deletion: "cascade" }],
    part
  )
}
