/**
 * Behaviour of the entity of a bucket of player sessions: runs the actor's timers, handles the entity's
 * calls, and looks up the seats of players. On the gateway's own node, outputs go through
 * {@link LocalSessions}.
 */
import { Clock, Context, Effect, Layer, Schedule, Stream } from "effect"
import { Entity } from "effect/cluster"
import { Unavailable } from "#rpc/errors/codes"
import { type Find, batchReads } from "#sql/batching"
import { RoomRepository } from "#sql/rooms"
import { IdleMillis } from "../idle-time.ts"
import { Lease, makeActivations } from "../lease.ts"
import { listActor } from "../live-entity.ts"
import { type LocalActors, makeLocalActors, ThisNode } from "../local-actors.ts"
import { makeOutputQueue } from "../output-queue.ts"
import { makeTimer } from "../timer.ts"
import { SessionsActor, type SessionsRuntime } from "./actor.ts"
import { PlayerSessions, type SessionOutput } from "./protocol.ts"

/** The buckets of sessions on this node, and their batched look-up of seats. */
export class LocalSessions extends Context.Service<
  LocalSessions,
  LocalActors<SessionsActor, SessionOutput> & { readonly seatsOf: Find<string> }
>()("entities/player-session/entity/LocalSessions") {
  static readonly layer = Layer.effect(
    LocalSessions,
    Effect.gen(function* () {
      const repository = yield* RoomRepository
      const seatsOf = yield* batchReads(repository.seatsOf)
      return LocalSessions.of({ ...makeLocalActors<SessionsActor, SessionOutput>(), seatsOf })
    })
  )
}

const retrySchedule = Schedule.spaced(500)

/** Activates a bucket on this node until the scope closes. */
const makeActor = Effect.fnUntraced(function* (entityId: string) {
  const clock = yield* Clock.Clock
  const repository = yield* RoomRepository
  const local = yield* LocalSessions
  const lease = yield* Lease
  const scope = yield* Effect.scope
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  const [environmentId = ""] = entityId.split("/")
  const wakeAt = yield* makeTimer(() => actor.tick())
  const load = (playerIds: ReadonlyArray<string>): void => {
    const lookUp = local.seatsOf(environmentId, playerIds).pipe(
      Effect.tapDefect((defect) => Effect.logDebug("Failed to look up seats", defect)),
      Effect.catchDefect(() => Effect.fail(new Unavailable())),
      Effect.retry(retrySchedule),
      Effect.map((seats) => actor.loaded(playerIds, seats))
    )
    runFork(Effect.forkIn(lookUp, scope))
  }
  const runtime: SessionsRuntime = {
    now: () => clock.currentTimeMillisUnsafe(),
    hasLease: lease.hasLease,
    idleMillis: yield* IdleMillis,
    wakeAt,
    load
  }
  const actor: SessionsActor = new SessionsActor(yield* repository.nextEpoch, runtime)
  yield* listActor(
    local,
    entityId,
    actor,
    Effect.sync(() => actor.fence())
  )
  return actor
})

/** The sessions' behaviour. */
export const PlayerSessionsLive = PlayerSessions.toLayer(
  Effect.gen(function* () {
    const { entityId } = yield* Entity.CurrentAddress
    const active = yield* makeActivations(makeActor(entityId))
    const local = yield* LocalSessions
    const thisNode = yield* ThisNode
    return PlayerSessions.of({
      Input: ({ payload: { inputs, node, watch } }) =>
        Effect.flatMap(active, (actor) => {
          if (!actor.watches(node, watch)) return Effect.fail(new Unavailable())
          actor.submit(node, watch, inputs)
          return Effect.void
        }),
      Watch: ({ payload: { node, present, watch } }) =>
        Stream.unwrap(
          Effect.flatMap(active, (actor) => {
            if (!actor.admit(node, watch)) return Effect.fail(new Unavailable())
            const queue = makeOutputQueue({
              id: entityId,
              epoch: actor.epoch,
              local: node === thisNode.id ? local : undefined,
              attach: (watcher) => actor.attach(node, watch, watcher, present),
              detach: (watcher) => actor.detach(node, watcher)
            })
            return Effect.map(queue, Stream.fromQueue)
          })
        )
    })
  }),
  { concurrency: "unbounded", mailboxCapacity: 100_000 }
)
