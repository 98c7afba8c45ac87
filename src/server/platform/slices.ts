/**
 * Work on many items in slices. Other work of the process runs in between, so heartbeats, sockets
 * and timers of a large node do not wait for all items.
 */
import { Effect } from "effect"

/** Items of a slice. At 50 microseconds an item, a slice blocks the event loop for 5 ms. */
const sliceSize = 100

/** Runs `act` for each item, and yields after each slice. The items are read slice by slice, too. */
export const forEachInSlices = <A>(
  items: Iterable<A>,
  act: (item: A) => void
): Effect.Effect<void> =>
  Effect.gen(function* () {
    let left = sliceSize
    for (const item of items) {
      act(item)
      left -= 1
      if (left > 0) continue
      left = sliceSize
      yield* Effect.yieldNow
    }
  })
