/**
 * Behaviour of the entity of a bucket of player sessions: runs the actor's timers, handles the entity's
 * calls, and looks up the seats of players. On the gateway's own node, outputs go through
 * {@link LocalSessions}.
 */
import { Clock, Context, Effect, Layer, Schedule } from "effect"
import { Entity } from "effect/cluster"
import { Unavailable } from "#rpc/errors/codes"
import { type Find, batchReads } from "#sql/batching"
import { RoomRepository } from "#sql/rooms"
import { IdleMillis } from "../idle-time.ts"
import { Lease, makeActivations } from "../lease.ts"
import { listActor, makeLiveCalls } from "../live-entity.ts"
import { type LocalActors, makeLocalActors } from "../local-actors.ts"
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
    Effect.sync(() => actor.activation.fence())
  )
  return actor
})

/** The sessions' behaviour. */
export const PlayerSessionsLive = PlayerSessions.toLayer(
  Effect.gen(function* () {
    const { entityId } = yield* Entity.CurrentAddress
    const active = yield* makeActivations(makeActor(entityId))
    const { Input, watch } = yield* makeLiveCalls(entityId, active, yield* LocalSessions)
    return PlayerSessions.of({
      Input,
      Watch: ({ payload }) =>
        watch(payload, {
          attach: (actor, watcher) => actor.attach(payload.node, watcher, payload.present),
          detach: (actor, watcher) => actor.detach(payload.node, watcher)
        })
    })
  }),
  { concurrency: "unbounded", mailboxCapacity: 100_000 }
)
