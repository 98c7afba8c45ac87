/** The live view, as the service composes it. */
import { Layer } from "effect"
import { NodeRepository } from "#sql/live/nodes"
import { LiveRepository } from "#sql/live/reports"
import { LiveRoomRepository } from "#sql/live/rooms"
import { LiveHttp } from "./handlers.ts"

export const live = {
  repositories: Layer.mergeAll(
    LiveRepository.layer,
    LiveRoomRepository.layer,
    NodeRepository.layer
  ),
  routes: LiveHttp
}
