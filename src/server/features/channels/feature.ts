/** Channels, as the service composes them. */
import { channelsFeature } from "#rpc/channels/feature"
import { ChannelRepository } from "#sql/channels"
import { playerPart } from "#server/platform/player-parts"
import { ChannelsHttp } from "./handlers.ts"
import { channelsOfPlayer } from "./player-data.ts"

export const channels = {
  repositories: ChannelRepository.layer,
  routes: ChannelsHttp,
  player: playerPart(
    channelsFeature,
    [{ table: "channels", exportedAs: "channels", deletion: "entity" }],
    channelsOfPlayer
  )
}
