/** Sweeper of rooms: once active, they end expired graces and close when empty. */
import { RoomRepository } from "#sql/rooms"
import { stayAwake } from "../stay-awake.ts"
import { makeSweeper } from "../sweep.ts"
import { LocalRooms } from "./entity.ts"
import { Room } from "./protocol.ts"

export const RoomSweeper = makeSweeper({
  name: "RoomSweeper",
  entities: "rooms",
  everyMillis: 5000,
  // An active room acts on time: this long past its deadline, no node has it.
  lateMillis: 5000,
  repository: RoomRepository,
  client: Room.client,
  wake: (client, id) => client(id).Wake()
})

/** Keeps the rooms of this node in memory whose members are all absent. */
export const WakefulRooms = stayAwake(LocalRooms, Room.client)
