/** Identities, as the service composes them. */
import { Effect } from "effect"
import { identitiesFeature } from "#rpc/identities"
import { IdentityRepository } from "#sql/identities"
import { playerPart, type StoredPlayer } from "#server/platform/player-parts"
import { IdentitiesHttp } from "./handlers.ts"
import { identityView } from "./view.ts"

const part = Effect.map(IdentityRepository, (repository) => ({
  read: (player: StoredPlayer) =>
    Effect.map(repository.ofPlayer(player), (rows) => ({
      identities: rows.map((row) => ({ ...identityView(row), subject: row.subject }))
    }))
}))

export const identities = {
  repositories: IdentityRepository.layer,
  routes: IdentitiesHttp,
  player: playerPart(
    identitiesFeature,
    [{ table: "identities", exportedAs: "identities", deletion: "cascade" }],
    part
  )
}
