/** Time for durations: unlike the time of day, it never steps when the machine's clock is corrected. */
import type { Clock } from "effect"

const nanosPerMilli = 1e6

/** Reads the monotonic time of a clock, in milliseconds. */
export const monotonicMillis = (clock: Clock.Clock) => (): number =>
  Number(clock.monotonicTimeNanosUnsafe()) / nanosPerMilli
