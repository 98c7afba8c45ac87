/** The HTTP API: the groups of all features. The OpenAPI document derives from it. */
import { HttpApi, OpenApi } from "effect/http-api"
import { addAll, groups, tagGroups } from "./features.ts"
import { finishDocument } from "./openapi/document.ts"
import { realtimeReference } from "./reference.ts"

const summary = "Sign-in, saves, stats, rooms, matchmaking and channels for web and mobile games."

export class Api extends addAll(HttpApi.make("player-backend"), groups)
  .annotate(HttpApi.ParseOptions, { errors: "all" })
  .annotateMerge(
    OpenApi.annotations({
      title: "Player backend",
      version: "1",
      description: `${summary}\n${realtimeReference()}`,
      license: { name: "Apache-2.0", url: "https://www.apache.org/licenses/LICENSE-2.0" },
      servers: [{ url: "/", description: "This deployment" }],
      override: { "x-tagGroups": tagGroups },
      transform: finishDocument
    })
  ) {}
