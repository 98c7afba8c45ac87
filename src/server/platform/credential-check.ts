/**
 * Check whether the credentials of a request still count. A body, an upload, a streamed response or
 * a webhook lasts as long as its other end likes. So the service checks them again, and ends what
 * they opened together with them.
 */
import { Clock, Context, Data, Effect, Stream } from "effect"
import type { CodedError } from "#rpc/errors/wire"
import { monotonicMillis } from "#entities/monotonic"

/**
 * Error for a response whose credentials ended while it was streamed: the service cuts its
 * connection.
 */
export class CredentialEnded extends Data.TaggedError("CredentialEnded")<{}> {}

/**
 * Error for a request whose credentials ended while it was handled: the service answers it as a new
 * one.
 */
export class CredentialRefused extends Data.TaggedError("CredentialRefused")<{
  readonly error: CodedError
}> {}

/** Starts to watch credentials; the inner effect returns whether they still count. */
export type WatchCredentials = Effect.Effect<Effect.Effect<boolean>>

/** The credentials of a request. */
interface Credentials {
  /** Monotonic milliseconds at which they were checked. */
  readonly checkedAt: number
  /** Checks them again; fails as a new request would. */
  readonly check: Effect.Effect<void, CodedError>
  readonly watch: WatchCredentials
}

/** The credentials of the current request; without any, they always count. */
const RequestCredentials = Context.Reference<Credentials>(
  "server/platform/credential-check/RequestCredentials",
  {
    defaultValue: () => ({
      checkedAt: Infinity,
      check: Effect.void,
      watch: Effect.succeed(Effect.succeed(true))
    })
  }
)

/** Watches both. */
const watchBoth = (first: WatchCredentials, second: WatchCredentials): WatchCredentials =>
  Effect.zipWith(first, second, (left, right) =>
    Effect.flatMap(left, (counts) => (counts ? right : Effect.succeed(false)))
  )

/** Watches credentials that count for as long as they pass their check. */
const watchCheck = (check: Credentials["check"]): WatchCredentials =>
  Effect.succeed(Effect.match(check, { onFailure: () => false, onSuccess: () => true }))

/** Adds credentials that were checked just now to those of the request. */
export const provideCredentials =
  (check: Credentials["check"], watch: WatchCredentials = watchCheck(check)) =>
  <A, E, R>(handler: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.withFiber((fiber) => {
      const before = fiber.getRef(RequestCredentials)
      return Effect.provideService(handler, RequestCredentials, {
        checkedAt: Math.min(before.checkedAt, monotonicMillis(fiber.getRef(Clock.Clock))()),
        check: Effect.andThen(before.check, check),
        watch: watchBoth(before.watch, watch)
      })
    })

/** Credentials that were checked less than a second ago are not checked again. */
const recheckMillis = 1000

/**
 * Ends the current request if it took long and its credentials have ended meanwhile. Call it after
 * the slow part, and before a change.
 */
export const requireCredentials: Effect.Effect<void> = Effect.withFiber((fiber) => {
  const { check, checkedAt } = fiber.getRef(RequestCredentials)
  if (monotonicMillis(fiber.getRef(Clock.Clock))() - checkedAt < recheckMillis) return Effect.void
  return Effect.catch(check, (error) => Effect.die(new CredentialRefused({ error })))
})

/** Starts to watch the credentials of the current request; the inner effect fails once they have ended. */
export const makeCredentialCheck = Effect.gen(function* () {
  const counts = yield* (yield* RequestCredentials).watch
  return Effect.flatMap(counts, (ok) => (ok ? Effect.void : Effect.fail(new CredentialEnded())))
})

/** Interval between two checks of credentials, for work that lasts as long as its client likes. */
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
