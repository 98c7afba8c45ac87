/** Time of the test clock that passes while the real world answers: databases, sockets, mail servers. */
import { Duration, Effect } from "effect"
import { TestClock } from "effect/testing"
import { pause } from "#testing/socket-client"

/** Real time between two steps, for what they have begun. */
const betweenMillis = 20

const step = (length: Duration.Input) =>
  Effect.andThen(pause(betweenMillis), TestClock.adjust(length))

/** Runs an effect while virtual time passes, in steps. */
export const whileTimePasses = <A, E, R>(effect: Effect.Effect<A, E, R>, length: Duration.Input) =>
  Effect.raceFirst(effect, Effect.forever(step(length)))

/** Lets virtual time pass, in steps. */
export const passTime = (length: Duration.Input, steps: number) =>
  Effect.repeat(step(length), { times: steps - 1 })
