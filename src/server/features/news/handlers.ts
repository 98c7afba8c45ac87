/** Opt-in for news by email: whether the app may ask a player, and the player's choice. */
import { DateTime, Effect } from "effect"
import { Api } from "#rpc/api"
import { CurrentEnvironment, CurrentPlayer } from "#rpc/auth"
import { newsOffered } from "#rpc/config-document/definitions"
import { NotFound } from "#rpc/errors/codes"
import { NewsRepository } from "#sql/news"
import { apiGroup } from "#server/platform/api-group"
import { makeAgeProfile } from "../ages/service.ts"
import { Configs } from "../config/service.ts"

/** The group `news`: `GET` and `PUT /v1/news/opt-in`. */
export const NewsHttp = apiGroup(
  Api,
  "news",
  Effect.fn(function* (handlers) {
    const configs = yield* Configs
    const profileOf = yield* makeAgeProfile
    const repository = yield* NewsRepository
    const offered = Effect.gen(function* () {
      const { environmentId } = yield* CurrentEnvironment
      return newsOffered((yield* configs.current(environmentId)).config)
    })
    return handlers.handleAll({
      enabled: Effect.fnUntraced(function* () {
        return { enabled: yield* offered }
      }),
      choose: Effect.fnUntraced(function* ({ payload: { optIn } }) {
        const { environmentId, playerId } = yield* CurrentPlayer
        const { capabilities } = yield* profileOf(environmentId, playerId)
        if (!((yield* offered) && capabilities.news)) return { enabled: false, optIn: false }
        const chosenAt = yield* DateTime.now
        const chosen = yield* repository.choose({ environmentId, playerId, optIn, chosenAt })
        return chosen ? { enabled: true, optIn } : yield* new NotFound()
      })
    })
  })
)
