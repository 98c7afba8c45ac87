/**
 * Keeps entities in memory that have members and no watching node. Idle entities leave memory; one with
 * absent members alone must not, because a grace runs only while its entity is awake.
 */
import { Effect, Iterable, Layer, Schedule } from "effect"
import { IdleMillis } from "./idle-time.ts"

/** An entity is called several times in its idle time. */
const callsPerIdleTime = 3
const concurrency = 16

interface WakefulActor {
  readonly id: string
  readonly memberIds: Iterable<string>
  readonly watchers: { readonly isWatched: boolean }
}

const isNeeded = ({ memberIds, watchers }: WakefulActor): boolean =>
  !watchers.isWatched && !Iterable.isEmpty(memberIds)

interface WakeClient {
  readonly Wake: () => Effect.Effect<void, unknown>
}

/** Wakes such entities of this node, again and again. */
export const stayAwake = <R1, R2>(
  local: Effect.Effect<{ readonly actors: ReadonlyMap<string, WakefulActor> }, never, R1>,
  makeClient: Effect.Effect<(id: string) => WakeClient, never, R2>
) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const { actors } = yield* local
      const client = yield* makeClient
      const idleMillis = yield* IdleMillis
      const wakeAll = Effect.suspend(() => {
        const needed = Array.from(actors.values()).filter(isNeeded)
        // A call that fails finds the entity on its way to another runner, where it wakes again.
        const wake = ({ id }: WakefulActor) => Effect.exit(client(id).Wake())
        return Effect.forEach(needed, wake, { concurrency, discard: true })
      })
      yield* wakeAll.pipe(
        Effect.repeat(Schedule.spaced(idleMillis / callsPerIdleTime)),
        Effect.forkScoped
      )
    })
  )
