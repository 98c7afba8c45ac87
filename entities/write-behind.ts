/**
 * Write-behind core for the snapshots of a node's entities: which are dirty, one write at a time, and
 * counters for metrics. A failed write leaves its entities dirty. Each holds only its newest state, so
 * the number of entities bounds the backlog while the database is away.
 */
import { Array, Clock, Deferred, Effect, Schedule, Semaphore } from "effect"

/** Longest planned time between a change and its snapshot. The guarantee is one second. */
export const snapshotMillis = 400

/** Wait of a change for its snapshot, in a cluster, after which the room withholds replies. */
export const snapshotDeadlineMillis = 1000

/** Monotonic counters of one node's snapshot writes. */
export class SnapshotStats {
  written = 0
  /** Number of failed write statements. */
  failures = 0
  /** Snapshots refused because a newer activation has written. */
  fenced = 0
  /** Start of the current series of failed writes, Unix milliseconds; undefined after a success. */
  failingSince: number | undefined

  recordWritten(snapshots: number): void {
    this.written += snapshots
    this.failingSince = undefined
  }

  recordFenced(): void {
    this.fenced += 1
  }

  recordFailure(now: number): void {
    this.failures += 1
    this.failingSince ??= now
  }
}

type WithLock = <A>(step: Effect.Effect<A>) => Effect.Effect<A>

/** A flush that callers share until it begins: entities that stop together wait for the same one. */
const makeShared =
  (withLock: WithLock) =>
  (flush: Effect.Effect<void>): Effect.Effect<void> => {
    let next: Deferred.Deferred<void> | undefined
    const begin = withLock(Effect.sync(() => (next = undefined)))
    return Effect.suspend(() => {
      if (next !== undefined) return Deferred.await(next)
      const done = Deferred.makeUnsafe<void>()
      next = done
      const running = Effect.uninterruptible(Effect.andThen(begin, flush))
      return Effect.andThen(Deferred.into(running, done), Deferred.await(done))
    })
  }

/** Logs a failed write instead of failing. */
const makeWarn =
  (entities: string) =>
  <A, E, R>(write: Effect.Effect<A, E, R>) =>
    Effect.catchCause(write, (cause) =>
      Effect.logWarning(`Failed to write snapshots of ${entities}; retrying`, cause)
    )

/** Numbers the writes of this process, so that the database refuses one that arrives late. */
const makeCounter = () => {
  let last = 0
  return (): number => (last += 1)
}

/** `entities` names them in logs, in the plural. */
export const makeWriteBehind = Effect.fnUntraced(function* <
  Actor extends { readonly fenced: boolean }
>(entities: string) {
  const dirty = new Set<Actor>()
  const stats = new SnapshotStats()
  const warn = makeWarn(entities)
  /** Serializes writes: an older snapshot must not arrive after a newer one or after a removal. */
  const withLock = (yield* Semaphore.make(1)).withPermits(1)

  /** Runs the write of a batch; if it fails, the entities are dirty again. */
  const attempt = <A, E, R>(batch: ReadonlyArray<Actor>, write: Effect.Effect<A, E, R>) =>
    Effect.suspend(() => {
      for (const actor of batch) dirty.delete(actor)
      return Effect.onError(write, () =>
        Effect.map(Clock.currentTimeMillis, (now) => {
          const retried = batch.filter(({ fenced }) => !fenced)
          for (const actor of retried) dirty.add(actor)
          if (retried.length > 0) stats.recordFailure(now)
        })
      )
    })

  /**
   * Handles the entities of a set in batches, without those added meanwhile. Each batch has its own
   * permit, so that an urgent write waits for one statement, not for all. It reads the set under
   * the first permit: until then a write under way may still fail and put its entities back.
   */
  const inBatches = <E, R>(
    from: ReadonlySet<Actor>,
    size: number,
    handle: (batch: ReadonlyArray<Actor>) => Effect.Effect<void, E, R>
  ) => {
    const handleRest = (batch: ReadonlyArray<Actor>) =>
      Effect.suspend(() => {
        const rest = batch.filter((actor) => from.has(actor))
        return rest.length === 0 ? Effect.void : handle(rest)
      })
    const handleFirst = Effect.suspend(() => {
      const [first = [], ...others] = Array.chunksOf(from, size)
      return Effect.as(handleRest(first), others)
    })
    return Effect.flatMap(withLock(handleFirst), (others) =>
      Effect.forEach(others, (batch) => withLock(handleRest(batch)), { discard: true })
    )
  }

  /** Flushes in the background until the scope closes. */
  const flushPeriodically = <A, E, R>(flush: Effect.Effect<A, E, R>) =>
    warn(flush).pipe(Effect.repeat(Schedule.spaced(snapshotMillis)), Effect.forkScoped)

  const markDirty = (actor: Actor): void => {
    dirty.add(actor)
  }

  const shared = makeShared(withLock)
  return {
    dirty,
    stats,
    withLock,
    attempt,
    inBatches,
    warn,
    flushPeriodically,
    shared,
    markDirty,
    nextWriteNumber: makeCounter()
  }
})

export type WriteBehind = Effect.Success<ReturnType<typeof makeWriteBehind>>
