/**
 * Opt-in for news by email: whether sign-up screens may offer it, and the player's choice. The service
 * stores the choice and sends no news.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, OpenApi } from "effect/http-api"
import { PlayerToken, PublishableKey, Requests } from "./auth.ts"
import { NotFound, wire } from "./errors/codes.ts"
import { feature, group } from "./feature.ts"
import { Timestamp } from "./text.ts"

const enabled = Schema.Boolean

/** `/v1/news/opt-in`. */
export class NewsApi extends group(
  "news",
  "players",
  "News",
  "The player's consent to news by email."
)
  .add(
    HttpApiEndpoint.get("enabled", "/opt-in", {
      success: Schema.Struct({ enabled }).annotate({
        identifier: "NewsOffer",
        description: "Whether sign-up screens may offer the opt-in."
      })
    }).annotate(OpenApi.Summary, "Read whether the opt-in may be offered; never in apps for kids"),
    HttpApiEndpoint.put("choose", "/opt-in", {
      payload: Schema.Struct({ optIn: Schema.Boolean }),
      success: Schema.Struct({ enabled, optIn: Schema.Boolean }).annotate({
        identifier: "NewsChoice",
        description: "The player's choice."
      }),
      error: wire(NotFound)
    })
      .annotate(
        OpenApi.Summary,
        "Store the choice; while the opt-in is not offered, nothing is stored and optIn is false"
      )
      .middleware(PlayerToken)
  )
  .prefix("/v1/news")
  .middleware(Requests)
  .middleware(PublishableKey) {}

export const newsFeature = feature({
  word: "news",
  groups: [NewsApi],
  exported: {
    /** The player's consent to news, and its time; null before any choice. */
    news: Schema.NullOr(Schema.Struct({ optIn: Schema.Boolean, chosenAt: Timestamp }))
  }
})
