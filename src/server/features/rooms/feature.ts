/** Rooms, as the service composes them. */
import { type Context, Effect } from "effect"
import { roomsFeature } from "#rpc/rooms/feature"
import { RoomRepository } from "#sql/rooms"
import { playerPart, type StoredPlayer } from "#server/platform/player-parts"
import { authorityFrames } from "./authority-frames.ts"
import { roomFrames, type RoomServices } from "./frames.ts"
import { RoomsHttp } from "./handlers.ts"

const part = Effect.map(RoomRepository, (repository) => ({
  read: ({ environmentId, playerId }: StoredPlayer) =>
    Effect.map(repository.ofPlayer(environmentId, playerId), (rooms) => ({ rooms }))
}))

export const rooms = {
  repositories: RoomRepository.layer,
  routes: RoomsHttp,
  frames: (services: Context.Context<RoomServices>) => ({
    ...roomFrames(services),
    ...authorityFrames(services)
  }),
  player: playerPart(
    roomsFeature,
    [{ table: "rooms", exportedAs: "rooms", deletion: "entity" }],
    part
  )
}
