/** Sweeper of unmanaged channels: once active, they close if nobody joins. */
import { ChannelRepository } from "#sql/channels"
import { stayAwake } from "../stay-awake.ts"
import { makeSweeper } from "../sweep.ts"
import { LocalChannels } from "./entity.ts"
import { Channel, channelId } from "./protocol.ts"

export const ChannelSweeper = makeSweeper({
  name: "ChannelSweeper",
  entities: "channels",
  everyMillis: 15_000,
  lateMillis: 0,
  repository: ChannelRepository,
  client: Channel.client,
  wake: (client, { environmentId, name }) => client(channelId(environmentId, name)).Wake()
})

/** Keeps the channels of this node in memory whose members are all absent. */
export const WakefulChannels = stayAwake(LocalChannels, Channel.client)
