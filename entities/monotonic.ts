/** Time for durations: unlike the time of day, it never steps when the machine's clock is corrected. */
import type { Clock } from "effect"

const nanosPerMilli = 1e6

/** Reads the monotonic time of a clock, in milliseconds. */
export const monotonicMillis = (clock: Clock.Clock) => (): number =>
  Number(clock.monotonicTimeNanosUnsafe()) / nanosPerMilli

/**
 * Clocks for durations in milliseconds: the time of day and the monotonic time. The one that
 * advances more measures a duration. The time of day may be set back, and a monotonic clock may
 * stand still while the machine sleeps.
 */
export const durationClocks = (clock: Clock.Clock): ReadonlyArray<() => number> => [
  () => clock.currentTimeMillisUnsafe(),
  monotonicMillis(clock)
]
