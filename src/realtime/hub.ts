/**
 * The node's hub: one line to each room and queue that its players are in, and the connections it
 * holds. Batching, order and fan-out happen here; deciding does not.
 */
import { Clock, Context, Effect, Fiber, Layer } from "effect"
import { LocalQueues } from "#entities/matchmaking-queue/entity"
import { MatchmakingQueue, queueId } from "#entities/matchmaking-queue/protocol"
import { LocalSessions } from "#entities/player-session/entity"
import { PlayerSessions, sessionsId } from "#entities/player-session/protocol"
import { LocalRooms } from "#entities/room/entity"
import { RoomLines } from "#entities/room/lines"
import { Room } from "#entities/room/protocol"
import { ThisNode } from "#entities/local-actors"
import { QueueLink } from "./queue-link.ts"
import { RoomLink } from "./room-link.ts"
import { SessionLink } from "./session-link.ts"
import type { PlayerConnection } from "./connection.ts"
import { EventTurn, TurnTimers } from "./turn.ts"

/** The node's turn, and fibers that end with it. */
const makeSurroundings = Effect.fnUntraced(function* (node: string) {
  const scope = yield* Effect.scope
  const clock = yield* Clock.Clock
  const timers = yield* TurnTimers
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  let watches = 0
  return {
    node,
    nextWatch: () => ++watches,
    turn: new EventTurn(() => clock.currentTimeMillisUnsafe(), timers),
    run: (effect: Effect.Effect<void>): Fiber.Fiber<void> => Fiber.runIn(runFork(effect), scope)
  }
})

export class Hub extends Context.Service<Hub>()("src/realtime/Hub", {
  make: Effect.gen(function* () {
    const { id: node } = yield* ThisNode
    const localRooms = yield* LocalRooms
    const localQueues = yield* LocalQueues
    const roomClient = yield* Room.client
    const queueClient = yield* MatchmakingQueue.client
    const localSessions = yield* LocalSessions
    const sessionsClient = yield* PlayerSessions.client
    const surroundings = yield* makeSurroundings(node)
    const { run, turn } = surroundings
    const rooms = new Map<string, RoomLink>()
    const queues = new Map<string, QueueLink>()
    const sessions = new Map<string, SessionLink>()
    const connections = new Map<string, PlayerConnection>()

    const lines = yield* RoomLines
    localRooms.deliverFar = (told) => rooms.get(told.room)?.receiveFar(told)
    localRooms.deliver = (id, epoch, items) => rooms.get(id)?.receive(epoch, items)
    localSessions.deliver = (id, epoch, items) => sessions.get(id)?.receive(epoch, items)
    localQueues.deliver = (id, epoch, items) => queues.get(id)?.receive(epoch, items)

    return {
      node,
      turn,
      run,
      connections,
      rooms,
      queues,
      roomClient,
      /** The line to the session that judges where a player is. */
      session: (environmentId: string, playerId: string): SessionLink => {
        const id = sessionsId(environmentId, playerId)
        const known = sessions.get(id)
        if (known !== undefined && !known.ended) return known
        const link = new SessionLink({
          sessionsId: id,
          client: sessionsClient,
          local: localSessions,
          surroundings,
          ended: (ended) => {
            if (sessions.get(id) === ended) sessions.delete(id)
          }
        })
        sessions.set(id, link)
        link.start()
        return link
      },
      /** The line to a room, opened when there is none. */
      room: (environmentId: string, roomId: string): RoomLink => {
        const known = rooms.get(roomId)
        if (known !== undefined && !known.ended) return known
        const link = new RoomLink({
          roomId,
          environmentId,
          client: roomClient,
          local: localRooms,
          lines,
          surroundings,
          findConnection: (connectionId) => connections.get(connectionId),
          ended: (ended) => {
            if (rooms.get(roomId) === ended) rooms.delete(roomId)
          }
        })
        rooms.set(roomId, link)
        link.start()
        return link
      },
      /** The line to a mode's queue. */
      queue: (environmentId: string, mode: string): QueueLink => {
        const id = queueId(environmentId, mode)
        const known = queues.get(id)
        if (known !== undefined && !known.ended) return known
        const link = new QueueLink({
          queueId: id,
          client: queueClient,
          local: localQueues,
          surroundings,
          ended: (ended) => {
            if (queues.get(id) === ended) queues.delete(id)
          }
        })
        queues.set(id, link)
        link.start()
        return link
      }
    }
  })
}) {
  static readonly layer = Layer.effect(Hub, this.make)
}
