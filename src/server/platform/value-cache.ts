/**
 * Cache of rows. A look-up that failed reveals nothing about the row, so the next caller repeats
 * it. A short fault of the database does not last as long as an entry.
 *
 * A look-up runs with the services of its caller alone. The library's cache merges them with those
 * of the fiber that has made the cache, which here has none. A merge would copy all services for
 * each look-up.
 */
import { Cache, Context, type Duration, Effect, Exit } from "effect"

export const makeValueCache = <Key, A, E = never>(options: {
  readonly capacity: number
  readonly timeToLive: Duration.Input
  readonly lookup: (key: Key) => Effect.Effect<A, E>
}) =>
  Cache.makeWith(options.lookup, {
    capacity: options.capacity,
    timeToLive: Exit.match({ onSuccess: () => options.timeToLive, onFailure: () => 0 })
  }).pipe(Effect.updateContext((_: Context.Context<never>) => Context.empty()))
