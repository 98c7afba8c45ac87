/** Rooms, as the service composes them. */
import { RoomRepository } from "#sql/rooms"
import { RoomsHttp } from "./handlers.ts"

export const rooms = { repositories: RoomRepository.layer, routes: RoomsHttp }
