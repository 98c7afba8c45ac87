/** Endpoints that only calls in the process reach: those of agents and functions. No HTTP route has them. */
import { HttpApi } from "effect/http-api"
import { ConfigExchangeApi } from "./config.ts"
import { PlayerProfileApi } from "./players.ts"
import { EnvironmentViewsApi } from "./projects/environment.ts"
import { ServerRoomsApi } from "./rooms.ts"

export class InProcessApi extends HttpApi.make("in-process")
  .add(ConfigExchangeApi, EnvironmentViewsApi, PlayerProfileApi, ServerRoomsApi)
  .annotate(HttpApi.ParseOptions, { errors: "all" }) {}
