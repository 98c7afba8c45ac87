/** The public rooms of an environment, for pages and functions. */
import { DateTime, Effect, Option } from "effect"
import { Api } from "#rpc/api"
import { CurrentEnvironment, OptionalPlayer } from "#rpc/auth"
import { InProcessApi } from "#rpc/in-process"
import type { PublicRoom } from "#rpc/rooms/api"
import { RoomRepository } from "#sql/rooms"
import { apiGroup, mounted, type RequestOf } from "#server/platform/api-group"
import { Configs } from "../config/service.ts"
import { modeOf } from "./service.ts"

const listDefault = 50

const makeRooms = Effect.gen(function* () {
  const repository = yield* RoomRepository
  const configs = yield* Configs
  return {
    list: Effect.fn("Rooms.list")(function* ({ query }: RequestOf<"rooms", "list">) {
      const { environmentId } = yield* CurrentEnvironment
      const player = yield* Effect.serviceOption(OptionalPlayer)
      const playerId = Option.getOrUndefined(player)?.playerId ?? null
      if (query.mode !== undefined) {
        yield* Effect.provideService(modeOf(environmentId, query.mode), Configs, configs)
      }
      const listed = yield* repository.list(
        environmentId,
        query.mode,
        query.limit ?? listDefault,
        playerId
      )
      const rooms: ReadonlyArray<PublicRoom> = listed.map((room) => ({
        ...room,
        createdAt: DateTime.formatIso(room.createdAt)
      }))
      return { rooms }
    })
  }
})

/** The groups `rooms` and `serverRooms`. */
export const RoomsHttp = mounted(makeRooms, (all) => [
  apiGroup(Api, "rooms", (handlers) => handlers.handleAll(all)),
  apiGroup(InProcessApi, "serverRooms", (handlers) => handlers.handleAll(all))
])
