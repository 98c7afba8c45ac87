/** The room, as the registry of entities lists it. */
import { Layer } from "effect"
import { entity } from "../definition.ts"
import { LocalRooms, RoomLive } from "./entity.ts"
import { RoomSweeper, WakefulRooms } from "./sweeper.ts"
import { RoomWriter } from "./writer.ts"

export const room = entity({
  word: "room",
  local: Layer.merge(LocalRooms.layer, RoomWriter.layer),
  behaviour: Layer.mergeAll(RoomLive, RoomSweeper, WakefulRooms),
  registry: LocalRooms,
  counts: [
    {
      metric: ["svc_rooms", "Rooms on this node."],
      field: "rooms",
      of: ({ state }) => (state?.closed === null ? 1 : 0)
    },
    {
      metric: ["svc_room_members", "Players in the rooms of this node."],
      field: "players",
      of: ({ state }) => state?.members.size ?? 0
    }
  ],
  groups: LocalRooms,
  closesWithout: "multiplayer",
  writer: RoomWriter
})
