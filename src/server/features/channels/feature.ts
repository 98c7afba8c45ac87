/** Channels, as the service composes them. */
import { Layer } from "effect"
import { channelsFeature } from "#rpc/channels/feature"
import { ChannelRepository } from "#sql/channels"
import { playerPart } from "#server/platform/player-parts"
import { channelFrames, ListenerFrames } from "./frames.ts"
import { ChannelsHttp } from "./handlers.ts"
import { channelsOfPlayer } from "./player-data.ts"
import { Channels } from "./service.ts"

export const channels = {
  repositories: ChannelRepository.layer,
  routes: ChannelsHttp,
  frameServices: ListenerFrames.layer.pipe(Layer.provideMerge(Channels.layer)),
  frames: channelFrames,
  player: playerPart(
    channelsFeature,
    [{ table: "channels", exportedAs: "channels", deletion: "entity" }],
    channelsOfPlayer
  )
}
