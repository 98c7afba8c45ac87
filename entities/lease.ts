/**
 * The right of this process's entities to act. A process may freeze (SIGSTOP, a suspended machine)
 * and lose its shards without noticing; whatever wakes up first must not go on as the owner. The
 * cluster says how long the shards are surely its own; alone, they always are.
 */
import { Context, Effect, type Scope, ScopedRef, Semaphore } from "effect"
import { Entity, Sharding } from "effect/cluster"
import { Unavailable } from "#rpc/errors/codes"

export interface Ownership {
  /** Are the shards surely still this process's? */
  readonly hasLease: () => boolean
  /** Waits until they are. */
  readonly confirmed: Effect.Effect<void>
}

export const Lease = Context.Reference<Ownership>("entities/lease/Lease", {
  defaultValue: () => ({ hasLease: () => true, confirmed: Effect.void })
})

/**
 * The actor of an entity, made when it is first asked for. One that was fenced is made anew then, under
 * a new epoch. Both only when the entity is surely this process's; if it is another's, whoever asks
 * has to look there. One that cannot be made, with the database away, is asked for again by whoever
 * needs it.
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
  const renewing = (yield* Semaphore.make(1)).withPermits(1)

  const renew = Effect.gen(function* () {
    yield* lease.confirmed
    if (!sharding.hasShardId(shardId)) return yield* new Unavailable()
    yield* Effect.catchDefect(ScopedRef.set(activations, make), (defect) =>
      Effect.andThen(Effect.logWarning("An entity could not be woken", defect), new Unavailable())
    )
  }).pipe(Effect.provideContext(context))

  return Effect.suspend((): Effect.Effect<Actor, Unavailable> => {
    const actor = ScopedRef.getUnsafe(activations)
    if (actor?.fenced === false) return Effect.succeed(actor)
    return Effect.andThen(
      renewing(
        Effect.suspend(() =>
          ScopedRef.getUnsafe(activations)?.fenced === false ? Effect.void : renew
        )
      ),
      Effect.suspend(() => {
        const renewed = ScopedRef.getUnsafe(activations)
        return renewed === undefined ? Effect.fail(new Unavailable()) : Effect.succeed(renewed)
      })
    )
  })
})
