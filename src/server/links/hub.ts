/**
 * Hub of a node: its connections, and one link to each room, queue, channel and bucket of player
 * sessions that they use. Batching, order and fan-out happen here; entities decide.
 */
import { Clock, Context, Effect, Fiber, Layer, Random } from "effect"
import { LocalChannels } from "#entities/channel/entity"
import { Channel, channelId } from "#entities/channel/protocol"
import { ThisNode } from "#entities/local-actors"
import { LocalQueues } from "#entities/matchmaking-queue/entity"
import { MatchmakingQueue, queueId } from "#entities/matchmaking-queue/protocol"
import { LocalSessions } from "#entities/player-session/entity"
import { PlayerSessions, sessionsId } from "#entities/player-session/protocol"
import { LocalRooms } from "#entities/room/entity"
import { RemoteRooms } from "#entities/room/remote"
import { Room } from "#entities/room/protocol"
import { FlushScheduler, FlushTimers, NodeFlush } from "#server/platform/flush"
import { monotonicMillis } from "#entities/monotonic"
import { ChannelLink } from "./channel-link.ts"
import { Connections } from "./connections.ts"
import { callEntityWithRetry } from "./entity-call.ts"
import type { NodeContext } from "./entity-link.ts"
import { LinkRegistry } from "./link-registry.ts"
import { QueueLink } from "./queue-link.ts"
import { makeReattachments } from "./reattachments.ts"
import { makeReplyDeadlines } from "./reply-deadlines.ts"
import { localRoomId } from "./room-ids.ts"
import { RoomLink } from "./room-link.ts"
import { makePeekSeat } from "./room-seats.ts"
import { SessionLink } from "./session-link.ts"

const makeContexts = Effect.gen(function* () {
  const { id: node } = yield* ThisNode
  const scope = yield* Effect.scope
  const clock = yield* Clock.Clock
  const timers = yield* FlushTimers
  const random = yield* Random.Random
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  let attachments = 0
  const context: NodeContext = {
    node,
    scheduler: yield* NodeFlush,
    nextAttachment: () => ++attachments,
    random: () => random.nextDoubleUnsafe(),
    reattachment: yield* makeReattachments,
    /** Runs a fiber that ends with the hub. */
    run: (effect: Effect.Effect<void>): Fiber.Fiber<void> => Fiber.runIn(runFork(effect), scope)
  }
  // Sessions and queues take one command after the other: waiting for more would only add latency.
  const scheduler = new FlushScheduler(monotonicMillis(clock), { ...timers, busyMillis: () => 0 })
  const prompt: NodeContext = { ...context, scheduler }
  return { context, prompt }
})

const makeRooms = Effect.fnUntraced(function* (context: NodeContext, connections: Connections) {
  const local = yield* LocalRooms
  const client = yield* Room.client
  const remote = yield* RemoteRooms
  const findConnection = (connectionId: string) => connections.get(connectionId)
  const rooms = new LinkRegistry<RoomLink>({
    idOf: (_, roomId) => roomId,
    make: (roomId, environmentId) =>
      new RoomLink({ roomId, environmentId, client, local, remote, context, findConnection }),
    receivers: local.receivers
  })
  local.remoteOutputs.register((batch) => rooms.byId(batch.room)?.receiveRemote(batch))
  const peekSeat = makePeekSeat(
    (roomId, playerId) => callEntityWithRetry(client(roomId).Peek({ playerId })),
    local.actors
  )
  const knowsRoom = (environmentId: string, roomId: string): boolean => {
    const state = local.actors.get(roomId)?.state
    const isHere = state?.closed === null && state.settings.environmentId === environmentId
    return isHere || rooms.get(environmentId, roomId) !== undefined
  }
  return { client, rooms, knowsRoom, peekSeat }
})

const makeChannels = Effect.fnUntraced(function* (context: NodeContext) {
  const local = yield* LocalChannels
  const client = yield* Channel.client
  const channels = new LinkRegistry<ChannelLink>({
    idOf: channelId,
    make: (id, environmentId, name) =>
      new ChannelLink({ channelId: id, name, environmentId, client, local, context }),
    receivers: local.receivers
  })
  return { client, channels }
})

const makeQueues = Effect.fnUntraced(function* (context: NodeContext) {
  const local = yield* LocalQueues
  const client = yield* MatchmakingQueue.client
  return new LinkRegistry<QueueLink>({
    idOf: queueId,
    make: (id, environmentId, mode) =>
      new QueueLink({ queueId: id, environmentId, mode, client, local, context }),
    receivers: local.receivers
  })
})

const makeSessions = Effect.fnUntraced(function* (context: NodeContext) {
  const local = yield* LocalSessions
  const client = yield* PlayerSessions.client
  const deadline = yield* makeReplyDeadlines
  return new LinkRegistry<SessionLink>({
    idOf: sessionsId,
    make: (bucketId, environmentId) =>
      new SessionLink({ bucketId, environmentId, client, local, context, deadline }),
    receivers: local.receivers
  })
})

export class Hub extends Context.Service<Hub>()("server/links/hub/Hub", {
  make: Effect.gen(function* () {
    const { context, prompt } = yield* makeContexts
    const connections = new Connections()
    const {
      client: roomClient,
      knowsRoom,
      peekSeat,
      rooms
    } = yield* makeRooms(context, connections)
    const { channels, client: channelClient } = yield* makeChannels(context)
    return {
      node: context.node,
      scheduler: context.scheduler,
      run: context.run,
      /** The open connections of this node's players. */
      connections,
      /** Links by room id. */
      rooms,
      /** Links by mode. */
      queues: yield* makeQueues(prompt),
      /** Links by player id; the players of a bucket share one. */
      sessions: yield* makeSessions(prompt),
      /** Links by channel name. */
      channels,
      roomClient,
      /** Whether the room lives on this node, or has a link from here: then it exists. */
      knowsRoom,
      /** The seat that a room keeps for a player. */
      peekSeat,
      /** Generates the id of a room near this node's players. */
      newRoomId: yield* localRoomId,
      /** Calls to a channel, for requests that need no link. */
      channel: (environmentId: string, name: string) =>
        channelClient(channelId(environmentId, name))
    }
  })
}) {
  static readonly layer = Layer.effect(Hub, this.make)
}
