/** `GET /v1/players/me/identities` and `DELETE /v1/players/me/identities/:provider`. */
import { Effect } from "effect"
import { Api } from "#rpc/api"
import { CurrentPlayer } from "#rpc/auth"
import { IdentityRepository } from "#sql/identities"
import { apiGroup } from "#server/platform/api-group"
import { makeUnlink } from "./service.ts"
import { identityView } from "./view.ts"

export const IdentitiesHttp = apiGroup(
  Api,
  "identities",
  Effect.fn(function* (handlers) {
    const identities = yield* IdentityRepository
    const unlink = yield* makeUnlink
    return handlers.handleAll({
      list: Effect.fnUntraced(function* () {
        const { environmentId, playerId } = yield* CurrentPlayer
        const rows = yield* identities.ofPlayer({ environmentId, playerId })
        return { identities: rows.map(identityView) }
      }),
      unlink: Effect.fnUntraced(function* ({ params, payload }) {
        const player = yield* CurrentPlayer
        return { player: yield* unlink(player, params.provider, payload.refreshToken) }
      })
    })
  })
)
