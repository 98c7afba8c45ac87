/**
 * Hub of a node: its connections, and one link to each room, queue, channel and bucket of player
 * sessions that they use. Batching, order and fan-out happen in the links; entities decide.
 */
import { Context, Effect, Layer } from "effect"
import type { FeatureName } from "#rpc/config-document/features"
import { makeChannelLinks } from "./channel-link.ts"
import { Connections } from "./connections.ts"
import { makeNodeContexts } from "./node-contexts.ts"
import { makeQueueLinks } from "./queue-link.ts"
import { makeRoomLinks } from "./room-link.ts"
import { makeSessionLinks } from "./session-link.ts"

/** Links to entities that close without a feature. */
interface ClosableLinks {
  readonly inEnvironment: (
    environmentId: string
  ) => ReadonlyArray<{ readonly shut: () => Effect.Effect<void, unknown> }>
}

export class Hub extends Context.Service<Hub>()("server/links/hub/Hub", {
  make: Effect.gen(function* () {
    const contexts = yield* makeNodeContexts
    const { node, run, scheduler } = contexts.context
    const connections = new Connections()
    const room = yield* makeRoomLinks(contexts, connections)
    const channel = yield* makeChannelLinks(contexts)
    const closable: ReadonlyArray<readonly [FeatureName, ClosableLinks]> = [
      ["multiplayer", room.rooms],
      ["realtimeChannels", channel.channels]
    ]
    return {
      node,
      scheduler,
      run,
      /** The open connections of this node's players. */
      connections,
      ...room,
      ...channel,
      queues: yield* makeQueueLinks(contexts),
      sessions: yield* makeSessionLinks(contexts),
      /** The links that close without a feature. */
      closable
    }
  })
}) {
  static readonly layer = Layer.effect(Hub, this.make)
}
