/**
 * Keeps entities in memory that have members and no watching node. Idle entities leave memory; one with
 * absent members alone must not, because a grace runs only while its entity is awake.
 */
import { Effect, Iterable, Schedule } from "effect"
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

/** Wakes such entities of this node, again and again, until the scope closes. */
export const stayAwake = Effect.fnUntraced(function* (
  actors: ReadonlyMap<string, WakefulActor>,
  wake: (id: string) => Effect.Effect<void, unknown>
) {
  const idleMillis = yield* IdleMillis
  const wakeAll = Effect.suspend(() => {
    const needed = Array.from(actors.values()).filter(isNeeded)
    // A call that fails finds the entity on its way to another runner, where it wakes again.
    return Effect.forEach(needed, ({ id }) => Effect.exit(wake(id)), { concurrency, discard: true })
  })
  yield* wakeAll.pipe(
    Effect.repeat(Schedule.spaced(idleMillis / callsPerIdleTime)),
    Effect.forkScoped
  )
})
