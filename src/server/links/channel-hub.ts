/** The node's lines to channels, one for each that somebody here is in. */
import { Context, Effect, Layer } from "effect"
import { LocalChannels } from "#entities/channel/entity"
import { Channel, channelId } from "#entities/channel/protocol"
import { ChannelLink } from "./channel-link.ts"
import { Hub } from "./hub.ts"

export class ChannelHub extends Context.Service<ChannelHub>()(
  "server/links/channel-hub/ChannelHub",
  {
    make: Effect.gen(function* () {
      const { node, run, turn } = yield* Hub
      const local = yield* LocalChannels
      const client = yield* Channel.client
      const links = new Map<string, ChannelLink>()
      let watches = 0
      local.outputs.register((id, epoch, items) => links.get(id)?.receive(epoch, items))
      const known = (environmentId: string, name: string): ChannelLink | undefined => {
        const link = links.get(channelId(environmentId, name))
        return link?.ended === false ? link : undefined
      }
      const open = (environmentId: string, name: string): ChannelLink => {
        const id = channelId(environmentId, name)
        const link = new ChannelLink({
          id,
          name,
          environmentId,
          client,
          local,
          surroundings: { node, turn, run, nextWatch: () => ++watches },
          ended: (ended) => {
            if (links.get(id) === ended) links.delete(id)
          }
        })
        links.set(id, link)
        link.start()
        return link
      }
      return {
        links,
        /** The channel of a name, wherever it lives. */
        channel: (environmentId: string, name: string) => client(channelId(environmentId, name)),
        /** The line that is there, if any. */
        known,
        /** The line to a channel, opened when there is none. */
        line: (environmentId: string, name: string): ChannelLink =>
          known(environmentId, name) ?? open(environmentId, name)
      }
    })
  }
) {
  static readonly layer = Layer.effect(ChannelHub, this.make)
}
