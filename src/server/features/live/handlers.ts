/** Parts of the live view over HTTP: `/v1/projects/:projectId/environments/:env/realtime/...`. */
import { Effect, Layer } from "effect"
import { Api } from "#rpc/api"
import { CurrentEnvironment } from "#rpc/auth"
import { apiGroup } from "#server/platform/api-group"
import { LiveViews } from "./service.ts"

const LiveGroup = apiGroup(
  Api,
  "live",
  Effect.fn(function* (handlers) {
    const views = yield* LiveViews
    return handlers.handleAll({
      room: Effect.fnUntraced(function* ({ params: { roomId } }) {
        const { environmentId } = yield* CurrentEnvironment
        return { room: yield* views.room(environmentId, roomId) }
      }),
      calls: Effect.fnUntraced(function* () {
        const { environmentId } = yield* CurrentEnvironment
        return yield* views.calls(environmentId)
      }),
      runners: () => views.runners()
    })
  })
)

/** The group `live`. */
export const LiveHttp = LiveGroup.pipe(Layer.provide(LiveViews.layer))
