/**
 * Cache of rows. A look-up that failed says nothing about the row, so the next caller repeats it: a short
 * fault of the database does not last as long as an entry.
 */
import { Cache, type Duration, type Effect, Exit } from "effect"

export const makeValueCache = <Key, A, E = never, R = never>(options: {
  readonly capacity: number
  readonly timeToLive: Duration.Input
  readonly lookup: (key: Key) => Effect.Effect<A, E, R>
}) =>
  Cache.makeWith(options.lookup, {
    capacity: options.capacity,
    timeToLive: Exit.match({ onSuccess: () => options.timeToLive, onFailure: () => 0 })
  })
