/**
 * Behaviour of the matchmaking queue entity: runs the actor's timers, and opens and fills its rooms.
 * Rooms never call a queue. A room's decision is final: if it is full or locked, its tickets wait on.
 */
import { Clock, Context, Effect, Layer, Metric, Schedule } from "effect"
import { Entity, type Sharding } from "effect/cluster"
import type { SecureRandom } from "effect/crypto"
import { newId } from "#rpc/ids"
import { RoomRepository } from "#sql/rooms"
import { listActor, makeLiveCalls } from "../live-entity.ts"
import { type LocalActors, makeLocalActors } from "../local-actors.ts"
import { Room } from "../room/protocol.ts"
import { makeTimer } from "../timer.ts"
import { QueueActor, type QueueRuntime, type SeatedMatch } from "./actor.ts"
import { MatchmakingQueue, type QueueOutput, type QueueSettings } from "./protocol.ts"
import type { Match, Ticket } from "./state.ts"
import { matchmaking } from "./state.ts"

/** The queues that live on this node. */
export class LocalQueues extends Context.Service<
  LocalQueues,
  LocalActors<QueueActor, QueueOutput>
>()("entities/matchmaking-queue/entity/LocalQueues") {
  static readonly layer = Layer.sync(LocalQueues, () => makeLocalActors<QueueActor, QueueOutput>())
}

export const matchesMade = Metric.counter("svc_matches_total", {
  description: "Matches made: rooms opened or filled with waiting tickets.",
  incremental: true
})

const retrySchedule = Schedule.spaced(100)
const openAttempts = 20

const joiningPlayersOf = (tickets: ReadonlyArray<Ticket>) =>
  tickets.map((ticket) => ticket.joiningPlayer)

/** Opens a room with its first players; idempotent. */
const openRoom = Effect.fnUntraced(function* (
  roomId: string,
  tickets: ReadonlyArray<Ticket>,
  settings: QueueSettings
) {
  const client = yield* Room.client
  const joiningPlayers = joiningPlayersOf(tickets)
  yield* client(roomId).Open({ open: { ...settings.room, joiningPlayers } })
  const result: SeatedMatch = {
    roomId,
    seated: new Set(joiningPlayers.map((joiningPlayer) => joiningPlayer.playerId)),
    free: settings.room.maxPlayers - joiningPlayers.length
  }
  return result
})

/** Fills free seats of an open room, which may have fewer than presumed or be gone. */
const fillRoom = Effect.fnUntraced(function* (roomId: string, tickets: ReadonlyArray<Ticket>) {
  const client = yield* Room.client
  const seated = yield* client(roomId).Seat({ joiningPlayers: joiningPlayersOf(tickets) })
  const result: SeatedMatch = { roomId, seated: new Set(seated.seated), free: seated.free }
  return result
})

/** Seats the tickets of a match. Retries to open a room; accepts a refusal to fill one. */
const makeMatch = Effect.fnUntraced(function* (match: Match, settings: QueueSettings) {
  if (match.kind === "fill") return yield* fillRoom(match.roomId, match.tickets)
  const roomId = match.roomId ?? (yield* newId.room)
  return yield* Effect.retry(openRoom(roomId, match.tickets, settings), {
    times: openAttempts,
    schedule: retrySchedule
  })
})

const makeActor = Effect.fnUntraced(function* (entityId: string) {
  const clock = yield* Clock.Clock
  const repository = yield* RoomRepository
  const local = yield* LocalQueues
  const context = yield* Effect.context<SecureRandom.SecureRandom | Sharding.Sharding>()
  const scope = yield* Effect.scope
  const fork = <A>(
    effect: Effect.Effect<A, never, SecureRandom.SecureRandom | Sharding.Sharding>
  ) => Effect.runForkWith(context)(Effect.forkIn(effect, scope))
  const [environmentId = "", mode = ""] = entityId.split("/")
  const wakeAt = yield* makeTimer(() => actor.advance())

  const makeRoom = (match: Match, settings: QueueSettings): void => {
    fork(
      makeMatch(match, settings).pipe(
        Effect.tap(() => Metric.update(matchesMade, 1)),
        Effect.tapCause((cause) => Effect.logDebug("Failed to make a match", cause)),
        Effect.matchCause({
          onFailure: () => actor.completed(match, undefined),
          onSuccess: (result) => actor.completed(match, result)
        })
      )
    )
  }
  const listOpenRooms = (): void => {
    fork(
      repository.listOpen(environmentId, mode, matchmaking.openRoomsMax).pipe(
        Effect.catchCause((cause) =>
          Effect.as(Effect.logWarning("Failed to list open rooms", cause), undefined)
        ),
        Effect.map((found) => actor.openRoomsListed(found))
      )
    )
  }

  const runtime: QueueRuntime = {
    now: () => clock.currentTimeMillisUnsafe(),
    wakeAt,
    makeMatch: makeRoom,
    listOpenRooms
  }
  const actor: QueueActor = new QueueActor(yield* repository.nextEpoch, runtime)
  yield* listActor(
    local,
    entityId,
    actor,
    Effect.sync(() => actor.activation.fence())
  )
  return actor
})

/** The queue's behaviour. */
export const MatchmakingQueueLive = MatchmakingQueue.toLayer(
  Effect.gen(function* () {
    const { entityId } = yield* Entity.CurrentAddress
    const actor = yield* makeActor(entityId)
    const active = Effect.succeed(actor)
    const { Input, watch } = yield* makeLiveCalls(entityId, active, yield* LocalQueues)
    return MatchmakingQueue.of({
      Input,
      Watch: ({ payload }) =>
        watch(payload, {
          attach: (_, watcher) => actor.attach(payload.node, watcher),
          detach: (_, watcher) => actor.detach(payload.node, watcher)
        })
    })
  }),
  { concurrency: "unbounded", maxIdleTime: "5 minutes", mailboxCapacity: 100_000 }
)
