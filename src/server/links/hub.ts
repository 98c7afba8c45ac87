/**
 * The node's hub: one line to each room, queue and bucket of sessions that its players are in, and the
 * connections it holds. Batching, order and fan-out happen here; deciding does not.
 */
import { Clock, Context, Effect, Fiber, Layer } from "effect"
import { type OutputSink, ThisNode } from "#entities/local-actors"
import { LocalQueues } from "#entities/matchmaking-queue/entity"
import { MatchmakingQueue, queueId } from "#entities/matchmaking-queue/protocol"
import { LocalSessions } from "#entities/player-session/entity"
import { PlayerSessions, sessionsId } from "#entities/player-session/protocol"
import { LocalRooms } from "#entities/room/entity"
import { RemoteRooms } from "#entities/room/remote"
import { Room } from "#entities/room/protocol"
import { FlushScheduler, NodeFlush, FlushTimers } from "#server/platform/flush"
import type { PlayerConnection } from "./player-connection.ts"
import { QueueLink } from "./queue-link.ts"
import { RoomLink } from "./room-link.ts"
import { SessionLink } from "./session-link.ts"

/** The node's turn, and fibers that end with it. */
const makeSurroundings = Effect.fnUntraced(function* (node: string) {
  const scope = yield* Effect.scope
  const clock = yield* Clock.Clock
  const timers = yield* FlushTimers
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  const now = () => clock.currentTimeMillisUnsafe()
  let watches = 0
  const surroundings = {
    node,
    nextWatch: () => ++watches,
    turn: yield* NodeFlush,
    run: (effect: Effect.Effect<void>): Fiber.Fiber<void> => Fiber.runIn(runFork(effect), scope)
  }
  // For what is asked one after the other: where a player is, and whom it meets.
  const prompt = { ...surroundings, turn: new FlushScheduler(now, timers, 0) }
  return { surroundings, prompt }
})

/** The lines to entities of one kind; a line is opened when there is none. */
const makeLinks = <L extends { readonly ended: boolean; readonly start: () => void }>(
  make: (id: string, environmentId: string, ended: (link: L) => void) => L
) => {
  const byId = new Map<string, L>()
  const forget = (id: string) => (ended: L) => {
    if (byId.get(id) === ended) byId.delete(id)
  }
  const open = (id: string, environmentId: string): L => {
    const known = byId.get(id)
    if (known !== undefined && !known.ended) return known
    const link = make(id, environmentId, forget(id))
    byId.set(id, link)
    link.start()
    return link
  }
  return { byId, open }
}

/** Delivers the outputs of local entities to the links by entity id. */
const deliver = <Output>(
  outputs: OutputSink<Output>,
  links: ReadonlyMap<string, { receive(epoch: number, items: ReadonlyArray<Output>): void }>
): void => outputs.register((id, epoch, items) => links.get(id)?.receive(epoch, items))

export class Hub extends Context.Service<Hub>()("server/links/hub/Hub", {
  make: Effect.gen(function* () {
    const { id: node } = yield* ThisNode
    const localRooms = yield* LocalRooms
    const localQueues = yield* LocalQueues
    const localSessions = yield* LocalSessions
    const roomClient = yield* Room.client
    const queueClient = yield* MatchmakingQueue.client
    const sessionsClient = yield* PlayerSessions.client
    const lines = yield* RemoteRooms
    const { prompt, surroundings } = yield* makeSurroundings(node)
    const { run, turn } = surroundings
    const connections = new Map<string, PlayerConnection>()

    const rooms = makeLinks<RoomLink>(
      (roomId, environmentId, ended) =>
        new RoomLink({
          roomId,
          environmentId,
          client: roomClient,
          local: localRooms,
          lines,
          surroundings,
          findConnection: (connectionId) => connections.get(connectionId),
          ended
        })
    )
    const queues = makeLinks<QueueLink>(
      (queueId, _, ended) =>
        new QueueLink({
          queueId,
          client: queueClient,
          local: localQueues,
          surroundings: prompt,
          ended
        })
    )
    const sessions = makeLinks<SessionLink>(
      (id, _, ended) =>
        new SessionLink({
          sessionsId: id,
          client: sessionsClient,
          local: localSessions,
          surroundings: prompt,
          ended
        })
    )

    localRooms.remoteOutputs.register((batch) => rooms.byId.get(batch.room)?.receiveFar(batch))
    deliver(localRooms.outputs, rooms.byId)
    deliver(localQueues.outputs, queues.byId)
    deliver(localSessions.outputs, sessions.byId)

    return {
      node,
      turn,
      run,
      connections,
      rooms: rooms.byId,
      queues: queues.byId,
      roomClient,
      /** The line to the session that judges where a player is. */
      session: (environmentId: string, playerId: string): SessionLink =>
        sessions.open(sessionsId(environmentId, playerId), environmentId),
      /** The line to a room, opened when there is none. */
      room: (environmentId: string, roomId: string): RoomLink => rooms.open(roomId, environmentId),
      /** The line to a mode's queue. */
      queue: (environmentId: string, mode: string): QueueLink =>
        queues.open(queueId(environmentId, mode), environmentId)
    }
  })
}) {
  static readonly layer = Layer.effect(Hub, this.make)
}
