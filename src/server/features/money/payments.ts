/**
 * Applies the reports of the payment provider: payments, refunds and disputes. Reports may arrive
 * twice, late, in any order, and on several runners at once. The ledger has each once. The ledger
 * credits a payment only if its amount matches the checkout.
 */
import { Context, DateTime, Effect, Layer, Option, Schema } from "effect"
import { CheckoutId } from "#rpc/ids"
import { secondsPerDay } from "#rpc/units"
import { CheckoutRepository, type CheckoutRow, type ReturnRow } from "#sql/money/checkouts"
import { LedgerRepository } from "#sql/money/ledger"
import { makeTransaction, sweepDaily } from "#server/platform/database"
import { Ledger } from "./ledger.ts"
import { creditFrom, returnToProvider } from "./postings.ts"
import type { PaymentFact, ReturnFact, SessionFact } from "./provider.ts"

/** Refunds and disputes of payments that are not ours are forgotten after this time. */
const foreignReturnSeconds = 90 * secondsPerDay

const decodeId = Schema.decodeUnknownOption(CheckoutId)

/** Currency of all checkouts. */
const currency = "usd"

const words = {
  refund: { taken: "Refund of a payment", back: "Refund that failed" },
  dispute: { taken: "Disputed payment", back: "Disputed payment, decided for you" }
}

export class Payments extends Context.Service<
  Payments,
  {
    /** Applies a report in one transaction. */
    readonly apply: (fact: PaymentFact) => Effect.Effect<void>
  }
>()("server/features/money/payments/Payments") {
  static readonly layer = Layer.effect(
    Payments,
    Effect.gen(function* () {
      const repository = yield* CheckoutRepository
      const transaction = yield* makeTransaction
      const applySession = yield* makeApplySession
      const applyReturn = yield* makeApplyReturn
      yield* sweepDaily("Refunds of foreign payments", (now) =>
        repository.sweepReturns(DateTime.subtract(now, { seconds: foreignReturnSeconds }))
      )
      return Payments.of({
        apply: Effect.fn("Payments.apply")((fact: PaymentFact) =>
          transaction(fact.kind === "session" ? applySession(fact) : applyReturn(fact))
        )
      })
    })
  )
}

/** Updates the ledger to the state of a refund or dispute. */
const makeSettle = Effect.gen(function* () {
  const ledger = yield* Ledger
  const postings = yield* LedgerRepository
  return Effect.fnUntraced(function* (
    { amount, id, isTaken, kind }: ReturnRow,
    { developerId }: CheckoutRow
  ) {
    const source = `${kind}:${id}`
    const event = { developerId, kind: "refund" as const }
    if (isTaken) {
      yield* ledger.post({
        ...event,
        source,
        description: words[kind].taken,
        movement: returnToProvider(amount)
      })
      return
    }
    // Money that was never taken cannot come back.
    if (!(yield* postings.isPosted(source))) return
    yield* ledger.post({
      ...event,
      source: `${source}:back`,
      description: words[kind].back,
      movement: creditFrom("provider", amount)
    })
  })
})

const makeApplySession = Effect.gen(function* () {
  const repository = yield* CheckoutRepository
  const postings = yield* LedgerRepository
  const ledger = yield* Ledger
  const settle = yield* makeSettle

  const credit = Effect.fnUntraced(function* (checkout: CheckoutRow, fact: SessionFact) {
    const { developerId, id } = checkout
    const { paymentId } = fact
    yield* repository.setPaid({ id, paymentId })
    yield* ledger.post({
      developerId,
      kind: "topup",
      source: `checkout:${id}`,
      description: "Top-up",
      movement: creditFrom("provider", checkout.amount)
    })
    if (paymentId === null) return
    for (const returned of yield* repository.returnsOf(paymentId)) yield* settle(returned, checkout)
  })

  return Effect.fnUntraced(function* (fact: SessionFact) {
    const checkoutId = Option.getOrUndefined(decodeId(fact.checkoutId))
    if (checkoutId === undefined) return
    if (fact.paymentId !== null) yield* repository.lockPayment(fact.paymentId)
    const found = Option.getOrUndefined(yield* repository.find(checkoutId))
    if (found === undefined) return
    yield* postings.lock(found.developerId)
    if (fact.state === "expired" || fact.state === "failed") {
      return yield* repository.setEnded({ id: checkoutId, status: fact.state })
    }
    if (fact.state === "open") return
    const isExpected =
      fact.amount === found.amount &&
      fact.currency === currency &&
      (found.sessionId ?? fact.sessionId) === fact.sessionId
    if (isExpected) return yield* credit(found, fact)
    yield* Effect.logError(
      "Failed to credit a payment: amount, currency or session differs from its checkout"
    ).pipe(Effect.annotateLogs({ checkout: checkoutId, session: fact.sessionId }))
  })
})

const makeApplyReturn = Effect.gen(function* () {
  const repository = yield* CheckoutRepository
  const settle = yield* makeSettle
  return Effect.fnUntraced(function* (fact: ReturnFact) {
    const { paymentId } = fact
    yield* repository.lockPayment(paymentId)
    yield* repository.putReturn({ ...fact, updatedAt: yield* DateTime.now })
    const found = Option.getOrUndefined(yield* repository.findByPayment(paymentId))
    // The payment may be reported later, and then takes its refunds with it.
    if (found === undefined) return
    const stored = yield* repository.returnsOf(paymentId)
    yield* Effect.forEach(
      stored.filter(({ id }) => id === fact.id),
      (returned) => settle(returned, found),
      { discard: true }
    )
  })
})
