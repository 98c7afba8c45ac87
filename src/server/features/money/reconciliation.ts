/**
 * Hourly reconciliation with the payment provider, by one runner at a time. Applies the events that no
 * webhook delivered, and reads the expired checkouts.
 */
import { Cause, DateTime, Effect, Layer, Option } from "effect"
import { secondsPerHour, secondsPerDay } from "#rpc/units"
import { CheckoutRepository, type CheckoutRow } from "#sql/money/checkouts"
import { sweepHourly } from "#server/platform/database"
import { Payments } from "./payments.ts"
import { factOf, PaymentProvider, reconciledMax } from "./provider.ts"

/** The provider lists events of this time. */
const reconciledSeconds = 29 * secondsPerDay

/** Events before the last reconciliation that the next one reads again. */
const reconciledOverlapSeconds = 2 * secondsPerHour

/** Applies provider events and states of expired checkouts that this service may have missed. */
export const makeReconcile = Effect.gen(function* () {
  const payments = yield* Payments
  const provider = yield* PaymentProvider
  const repository = yield* CheckoutRepository
  if (provider === undefined) return () => Effect.void

  const applyEvents = Effect.fnUntraced(function* (now: DateTime.Utc) {
    const { until } = Option.getOrElse(yield* repository.reconciledUntil, () => ({ until: now }))
    const from = DateTime.max(
      DateTime.subtract(until, { seconds: reconciledOverlapSeconds }),
      DateTime.subtract(now, { seconds: reconciledSeconds })
    )
    const events = yield* provider.listEvents(Math.floor(from.epochMilliseconds / 1000))
    // Oldest first, so that a stop in between leaves a history without gaps.
    for (const event of events.toReversed()) {
      const fact = yield* Effect.option(
        Effect.tapError(factOf(event), (error) =>
          Effect.logWarning("Failed to read an event of Stripe", error)
        )
      )
      if (Option.isSome(fact) && fact.value !== undefined) yield* payments.apply(fact.value)
    }
    // The list is cut at its oldest end: what is missing is logged, not forgotten in silence.
    if (events.length === reconciledMax) {
      yield* Effect.logWarning("Failed to reconcile all payments: the provider has more events")
    }
    yield* repository.setReconciled(now)
  })

  const readExpired = Effect.fnUntraced(function* ({ id, sessionId }: CheckoutRow) {
    if (sessionId === null) return yield* repository.setEnded({ id, status: "expired" })
    const fact = yield* provider.readSession(sessionId)
    yield* payments.apply(fact)
  })

  return Effect.fnUntraced(function* (now: DateTime.Utc) {
    yield* applyEvents(now)
    const expired = yield* repository.listExpired({ now, limit: reconciledMax })
    yield* Effect.forEach(expired, readExpired, { discard: true })
  })
})

/** Runs the reconciliation once an hour, on one runner. */
export const Reconciliation = Layer.effectDiscard(
  Effect.gen(function* () {
    const reconcile = yield* makeReconcile
    const repository = yield* CheckoutRepository
    yield* sweepHourly("Payments", (now) =>
      repository.claim({ now, until: DateTime.add(now, { minutes: 55 }) }).pipe(
        Effect.flatMap((claimed) => (claimed ? reconcile(now) : Effect.void)),
        Effect.catchCause((cause) =>
          Effect.logWarning("Failed to reconcile payments", Cause.pretty(cause))
        )
      )
    )
  })
)
