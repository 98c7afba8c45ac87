/**
 * News by mail (spec section 2.2, decisions 3.2.14): whether sign-up screens may ask, and what a player
 * has chosen. This service keeps the choice and sends nothing.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { PlayerToken, PublishableKey, Requests } from "./auth.ts"
import { NotFound, wire } from "./errors/codes.ts"

const enabled = Schema.Boolean

/** `/v1/news/opt-in`. */
export class NewsApi extends HttpApiGroup.make("news")
  .add(
    HttpApiEndpoint.get("enabled", "/opt-in", { success: Schema.Struct({ enabled }) }).annotate(
      OpenApi.Summary,
      "Whether players may be asked; never in apps for kids"
    ),
    HttpApiEndpoint.put("choose", "/opt-in", {
      payload: Schema.Struct({ optIn: Schema.Boolean }),
      success: Schema.Struct({ enabled, optIn: Schema.Boolean }),
      error: wire(NotFound)
    })
      .annotate(
        OpenApi.Summary,
        "Choose; while this player may not be asked nothing is stored, and optIn is false"
      )
      .middleware(PlayerToken)
  )
  .prefix("/v1/news")
  .middleware(Requests)
  .middleware(PublishableKey) {}
