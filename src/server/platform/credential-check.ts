/**
 * Whether the credentials of a request still count. A streamed response or an upload lasts as long as its
 * client likes, so it asks again and again: what a credential opened ends with it.
 */
import { Context, Data, Effect, Stream } from "effect"

/** The credentials of a response ended while it was streamed: its connection is cut. */
export class CredentialEnded extends Data.TaggedError("CredentialEnded")<{}> {}

/** Starts to watch credentials; the inner effect returns whether they still count. */
export type WatchCredentials = Effect.Effect<Effect.Effect<boolean>>

/** Watches the credentials of the current request; without any, they always count. */
export const WatchCredentials = Context.Reference<WatchCredentials>(
  "server/platform/credential-check/WatchCredentials",
  { defaultValue: () => Effect.succeed(Effect.succeed(true)) }
)

/** Watches both. */
export const watchBoth = (first: WatchCredentials, second: WatchCredentials): WatchCredentials =>
  Effect.zipWith(first, second, (left, right) =>
    Effect.flatMap(left, (counts) => (counts ? right : Effect.succeed(false)))
  )

/** Starts to watch the credentials of the current request; the inner effect fails once they have ended. */
export const makeCredentialCheck = Effect.gen(function* () {
  const counts = yield* yield* WatchCredentials
  return Effect.flatMap(counts, (ok) => (ok ? Effect.void : Effect.fail(new CredentialEnded())))
})

/** Between two looks at the credentials of work that lasts as long as its client likes. */
const lookMillis = 1000

/** Interrupts the work, and fails, within a second after the credentials of the current request have ended. */
export const untilCredentialsEnd = Effect.fnUntraced(function* <A, E, R>(
  work: Effect.Effect<A, E, R>
) {
  const check = yield* makeCredentialCheck
  const ended = Effect.forever(Effect.andThen(Effect.sleep(lookMillis), check))
  return yield* Effect.raceFirst(work, ended)
})

/** Fails at the next part, or the end, after the credentials of the current request have ended. */
export const whileCredentialsCount = Effect.fnUntraced(function* <A, E, R>(
  parts: Stream.Stream<A, E, R>
) {
  const check = yield* makeCredentialCheck
  // The end, too: what is gone with a deleted player must not look as if there was no more.
  return Stream.concat(
    Stream.tap(parts, () => check),
    Stream.drain(Stream.fromEffect(check))
  )
})
