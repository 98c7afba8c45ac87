/** Channels, as the service composes them. */
import { ChannelRepository } from "#sql/channels"
import { ChannelsHttp } from "./handlers.ts"

export const channels = { repositories: ChannelRepository.layer, routes: ChannelsHttp }
