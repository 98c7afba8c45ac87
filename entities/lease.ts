/**
 * Ownership of shards, and activation of entities. A process may freeze (SIGSTOP, a suspended machine)
 * and lose its shards without noticing; when it resumes, its entities must not act as owners. The
 * cluster says until when the shards are surely this process's. A single node always owns them.
 */
import { Context, Effect, type Scope, ScopedRef, Semaphore } from "effect"
import { Entity, Sharding } from "effect/cluster"
import { Unavailable } from "#rpc/errors/codes"

export interface Ownership {
  /** Whether this process surely still owns its shards. */
  readonly hasLease: () => boolean
  /** Waits until the ownership is confirmed. */
  readonly confirmed: Effect.Effect<void>
}

export const Lease = Context.Reference<Ownership>("entities/lease/Lease", {
  defaultValue: () => ({ hasLease: () => true, confirmed: Effect.void })
})

/**
 * Returns the actor of an entity, and creates it on first use or after it was fenced, under a new
 * epoch. Fails with `Unavailable` if another process owns the shard or the database is away; the
 * caller retries.
 */
export const makeActivations = Effect.fnUntraced(function* <
  Actor extends { readonly fenced: boolean },
  R
>(make: Effect.Effect<Actor, never, R>) {
  const lease = yield* Lease
  const sharding = yield* Sharding.Sharding
  const { shardId } = yield* Entity.CurrentAddress
  const context = yield* Effect.context<Exclude<R, Scope.Scope>>()
  const activations = yield* ScopedRef.make<Actor | undefined>(() => undefined)
  const withLock = (yield* Semaphore.make(1)).withPermits(1)

  const create = Effect.gen(function* () {
    yield* lease.confirmed
    if (!sharding.hasShardId(shardId)) return yield* new Unavailable()
    yield* Effect.catchDefect(ScopedRef.set(activations, make), (defect) =>
      Effect.andThen(Effect.logWarning("Failed to activate an entity", defect), new Unavailable())
    )
  }).pipe(Effect.provideContext(context))

  return Effect.suspend((): Effect.Effect<Actor, Unavailable> => {
    const actor = ScopedRef.getUnsafe(activations)
    if (actor?.fenced === false) return Effect.succeed(actor)
    return Effect.andThen(
      withLock(
        Effect.suspend(() =>
          ScopedRef.getUnsafe(activations)?.fenced === false ? Effect.void : create
        )
      ),
      Effect.suspend(() => {
        const created = ScopedRef.getUnsafe(activations)
        return created === undefined ? Effect.fail(new Unavailable()) : Effect.succeed(created)
      })
    )
  })
})
