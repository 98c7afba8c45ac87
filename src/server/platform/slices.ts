/**
 * Work on many items in slices: other work of the process runs in between, so that heartbeats, sockets
 * and timers of a large node do not wait for all of it.
 */
import { Array, Effect } from "effect"

/** At 50 microseconds an item, a slice blocks the event loop for 5 ms. */
const sliceSize = 100

/** Runs `act` for each item, and yields after each slice. */
export const forEachInSlices = <A>(
  items: Iterable<A>,
  act: (item: A) => void
): Effect.Effect<void> =>
  Effect.suspend(() =>
    Effect.forEach(
      Array.chunksOf(items, sliceSize),
      (slice) =>
        Effect.andThen(
          Effect.sync(() => slice.forEach(act)),
          Effect.yieldNow
        ),
      { discard: true }
    )
  )
