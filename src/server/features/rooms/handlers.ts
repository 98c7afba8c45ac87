/** `GET /v1/rooms`: the public rooms of an environment. */
import { DateTime, Effect } from "effect"
import { Api } from "#rpc/api"
import { CurrentEnvironment } from "#rpc/auth"
import { rooms as limits } from "#rpc/limits"
import type { PublicRoom } from "#rpc/rooms"
import { RoomRepository } from "#sql/rooms"
import { apiGroup } from "#server/platform/api-group"
import { Configs } from "../config/service.ts"
import { modeOf } from "./service.ts"

export const RoomsHttp = apiGroup(
  Api,
  "rooms",
  Effect.fn(function* (handlers) {
    const repository = yield* RoomRepository
    const configs = yield* Configs
    return handlers.handle(
      "list",
      Effect.fn("Rooms.list")(function* ({ query }) {
        const { environmentId } = yield* CurrentEnvironment
        if (query.mode !== undefined) {
          yield* Effect.provideService(modeOf(environmentId, query.mode), Configs, configs)
        }
        const listed = yield* repository.list(
          environmentId,
          query.mode,
          query.limit ?? limits.listDefault
        )
        const rooms: ReadonlyArray<PublicRoom> = listed.map((room) => ({
          ...room,
          createdAt: DateTime.formatIso(room.createdAt)
        }))
        return { rooms }
      })
    )
  })
)
