/**
 * The right of this process's entities to act. A process may freeze (SIGSTOP, a suspended machine)
 * and lose its shards without noticing; whatever wakes up first must not go on as the owner. The
 * cluster says how long the shards are surely its own; alone, they always are.
 */
import { Context, Effect } from "effect"

export interface Ownership {
  /** Are the shards surely still this process's? */
  readonly held: () => boolean
  /** Waits until they are. */
  readonly confirmed: Effect.Effect<void>
}

export const Lease = Context.Reference<Ownership>("entities/lease/Lease", {
  defaultValue: () => ({ held: () => true, confirmed: Effect.void })
})
