/**
 * A clock whose time of day a test sets, for nodes whose hourly work must not run for each hour of a jump:
 * sleeps and durations are real.
 */
import { Clock, Context, DateTime, Effect, Layer } from "effect"

const nanosPerMilli = 1_000_000n

export class MovableClock extends Context.Service<
  MovableClock,
  {
    readonly setTime: (iso: string) => Effect.Effect<void>
    readonly advance: (millis: number) => Effect.Effect<void>
  }
>()("test/support/movable-clock/MovableClock") {
  /** Starts at a time, and stands still until a test moves it. */
  static readonly layerAt = (iso: string) =>
    Layer.effectContext(
      Effect.map(Clock.Clock, (real) => {
        let millis = DateTime.makeUnsafe(iso).epochMilliseconds
        const nanos = () => BigInt(millis) * nanosPerMilli
        const clock: Clock.Clock = {
          currentTimeMillisUnsafe: () => millis,
          currentTimeMillis: Effect.sync(() => millis),
          currentTimeNanosUnsafe: nanos,
          currentTimeNanos: Effect.sync(nanos),
          monotonicTimeNanosUnsafe: () => real.monotonicTimeNanosUnsafe(),
          monotonicTimeNanos: real.monotonicTimeNanos,
          sleep: (duration) => real.sleep(duration)
        }
        const movable = MovableClock.of({
          setTime: (next) =>
            Effect.sync(() => {
              millis = DateTime.makeUnsafe(next).epochMilliseconds
            }),
          advance: (by) =>
            Effect.sync(() => {
              millis += by
            })
        })
        return Context.make(Clock.Clock, clock).pipe(Context.add(MovableClock, movable))
      })
    )
}
