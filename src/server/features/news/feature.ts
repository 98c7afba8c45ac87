/** News, as the service composes it. */
import { DateTime, Effect, Option } from "effect"
import { newsFeature } from "#rpc/news"
import { NewsRepository } from "#sql/news"
import { playerPart, type StoredPlayer } from "#server/platform/player-parts"
import { NewsHttp } from "./handlers.ts"

const part = Effect.map(NewsRepository, (repository) => ({
  read: (player: StoredPlayer) =>
    Effect.map(repository.find(player), (choice) => ({
      news: Option.getOrNull(
        Option.map(choice, ({ chosenAt, optIn }) => ({
          optIn,
          chosenAt: DateTime.formatIso(chosenAt)
        }))
      )
    }))
}))

export const news = {
  repositories: NewsRepository.layer,
  routes: NewsHttp,
  player: playerPart(newsFeature, [], part)
}
