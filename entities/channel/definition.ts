/** The channel, as the registry of entities lists it. */
import { HashMap, Layer } from "effect"
import { entity } from "../definition.ts"
import type { ChannelActor } from "./actor.ts"
import { ChannelLive, LocalChannels } from "./entity.ts"
import { ChannelSweeper, WakefulChannels } from "./sweeper.ts"
import { ChannelWriter } from "./writer.ts"

const membersIn = ({ state }: ChannelActor): number =>
  state === undefined ? 0 : HashMap.size(state.members)

export const channel = entity({
  word: "channel",
  local: Layer.merge(LocalChannels.layer, ChannelWriter.layer),
  behaviour: Layer.mergeAll(ChannelLive, ChannelSweeper, WakefulChannels),
  registry: LocalChannels,
  counts: [
    {
      metric: ["svc_channels", "Channels on this node."],
      field: "channels",
      of: ({ state }) => (state === undefined ? 0 : 1)
    },
    { metric: ["svc_channel_members", "Players in the channels of this node."], of: membersIn }
  ],
  environmentOf: ({ environmentId }) => environmentId,
  live: (actor) => ({
    channels: { name: actor.name, members: membersIn(actor), voice: actor.state?.inCall ?? 0 }
  }),
  usage: { component: "voiceSeconds", of: ({ state }) => state?.inCall ?? 0 },
  groups: LocalChannels,
  writer: ChannelWriter
})
