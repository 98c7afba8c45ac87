/**
 * The entity of a bucket of players' sessions: gives the actor its time, stands between it and the
 * cluster, and knows the seat of a player's last room, if it is still kept. A gateway on this node
 * takes a short cut through {@link LocalSessions}.
 */
import { Clock, Context, Effect, Layer, Schedule, Stream } from "effect"
import { Entity } from "effect/cluster"
import { Unavailable } from "#rpc/errors/codes"
import { type Find, batchReads } from "#sql/batching"
import { RoomRepository } from "#sql/rooms"
import { Lease, makeActivations } from "../lease.ts"
import { type LocalActors, makeLocalActors, ThisNode } from "../local-actors.ts"
import { makeOutputQueue } from "../output-queue.ts"
import { makeTimer } from "../timer.ts"
import { SessionsActor, type SessionsRuntime } from "./actor.ts"
import { PlayerSessions, type SessionOutput } from "./protocol.ts"

/** The buckets of sessions that live on this node, and the seats that they look up together. */
export class LocalSessions extends Context.Service<
  LocalSessions,
  LocalActors<SessionsActor, SessionOutput> & { readonly seatsOf: Find<string> }
>()("entities/player-session/entity/LocalSessions") {
  static readonly layer = Layer.effect(
    LocalSessions,
    Effect.gen(function* () {
      const rows = yield* RoomRepository
      const seatsOf = yield* batchReads(rows.seatsOf)
      return LocalSessions.of({ ...makeLocalActors<SessionsActor, SessionOutput>(), seatsOf })
    })
  )
}

const patience = Schedule.spaced(500)

/** Brings a bucket to life on this node, until the scope closes. */
const makeActor = Effect.fnUntraced(function* (entityId: string) {
  const clock = yield* Clock.Clock
  const rows = yield* RoomRepository
  const local = yield* LocalSessions
  const lease = yield* Lease
  const scope = yield* Effect.scope
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  const [environmentId = ""] = entityId.split("/")
  const wakeAt = yield* makeTimer(() => actor.tick())
  const load = (playerIds: ReadonlyArray<string>): void => {
    const looking = local.seatsOf(environmentId, playerIds).pipe(
      Effect.tapDefect((defect) => Effect.logDebug("Seats could not be looked up", defect)),
      Effect.catchDefect(() => Effect.fail(new Unavailable())),
      Effect.retry(patience),
      Effect.map((seats) => actor.loaded(playerIds, seats))
    )
    runFork(Effect.forkIn(looking, scope))
  }
  const runtime: SessionsRuntime = {
    now: () => clock.currentTimeMillisUnsafe(),
    hasLease: lease.hasLease,
    wakeAt,
    load
  }
  const actor: SessionsActor = new SessionsActor(yield* rows.nextEpoch, runtime)
  yield* Effect.acquireRelease(
    Effect.sync(() => local.actors.set(entityId, actor)),
    () =>
      Effect.sync(() => {
        if (local.actors.get(entityId) === actor) local.actors.delete(entityId)
        actor.fence()
      })
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
  { concurrency: "unbounded", maxIdleTime: "1 minute", mailboxCapacity: 100_000 }
)
