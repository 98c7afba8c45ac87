/** Prepaid money over HTTP: `/v1/money`, and the events of the payment provider. */
import { DateTime, Effect, Layer } from "effect"
import { Api } from "#rpc/api"
import { CurrentDeveloper } from "#rpc/auth"
import { NotFound } from "#rpc/errors/codes"
import { http } from "#rpc/limits"
import type { LedgerEntry, PrepaidBalance } from "#rpc/money"
import { type EntryRow, LedgerRepository } from "#sql/money/ledger"
import { apiGroup } from "#server/platform/api-group"
import { invalidRequest } from "#server/platform/invalid-request"
import { pageOf } from "#server/platform/pages"
import { Settings } from "#server/platform/settings/settings"
import { withRetryAfter } from "#server/platform/throttle-guard"
import { Checkouts } from "./prepaid-top-ups.ts"
import { Ledger } from "./ledger.ts"
import { Payments } from "./payments.ts"
import { factOf, PaymentProvider } from "./provider.ts"
import { Reconciliation } from "./reconciliation.ts"
import { UsageReports } from "./usage.ts"

const toEntry = ({ amount, balanceAfter, createdAt, ...entry }: EntryRow): LedgerEntry => ({
  ...entry,
  amount: Number(amount),
  balanceAfter: Number(balanceAfter),
  createdAt: DateTime.formatIso(createdAt)
})

const noBalance: PrepaidBalance = { balance: 0, owed: 0, invite: null }

const MoneyGroup = apiGroup(
  Api,
  "money",
  Effect.fn(function* (handlers) {
    const checkouts = yield* Checkouts
    const ledger = yield* Ledger
    const repository = yield* LedgerRepository
    const usage = yield* UsageReports
    const { enabled } = (yield* Settings).money
    return handlers.handleAll({
      balance: Effect.fnUntraced(function* () {
        const { developerId } = yield* CurrentDeveloper
        if (!enabled) return noBalance
        const { invite, invitePending, owed, prepaid } = yield* ledger.balances(developerId)
        const granted = yield* repository.granted(developerId)
        const credit = {
          granted: Number(granted),
          remaining: Number(invite),
          pending: Number(invitePending)
        }
        return {
          balance: Number(prepaid),
          owed: Number(-owed),
          invite: granted + invitePending > 0n ? credit : null
        }
      }),
      ledger: Effect.fnUntraced(function* ({ query: { cursor, limit = http.pageDefault } }) {
        const { developerId } = yield* CurrentDeveloper
        if (!enabled) return { entries: [], nextCursor: null }
        const found = yield* repository.page({
          developerId,
          after: cursor ?? null,
          limit: limit + 1
        })
        const { nextCursor, rows } = pageOf(found, limit, ({ id }) => id)
        return { entries: rows.map(toEntry), nextCursor }
      }),
      checkout: Effect.fnUntraced(function* ({ headers, payload }) {
        const caller = yield* CurrentDeveloper
        const start = checkouts.start(caller, payload, headers["idempotency-key"])
        return { checkout: yield* withRetryAfter(start) }
      }),
      readCheckout: Effect.fnUntraced(function* ({ params: { checkoutId } }) {
        return { checkout: yield* checkouts.read(yield* CurrentDeveloper, checkoutId) }
      }),
      usage: Effect.fnUntraced(function* ({ query: { period, refresh } }) {
        const { developerId } = yield* CurrentDeveloper
        return yield* usage.read({ developerId, period, refresh: refresh === "true" })
      })
    })
  })
)

/**
 * Events of the payment provider. The signature covers the raw bytes, so the handler reads the body as
 * text.
 */
const PaymentsGroup = apiGroup(
  Api,
  "payments",
  Effect.fn(function* (handlers) {
    const payments = yield* Payments
    const provider = yield* PaymentProvider
    const { enabled } = (yield* Settings).money
    return handlers.handleRaw(
      "stripe",
      Effect.fnUntraced(function* ({ request }) {
        if (!enabled || provider === undefined) return yield* new NotFound()
        const body = yield* Effect.orDie(request.text)
        const event = yield* provider.verify(body, request.headers["stripe-signature"] ?? "")
        // Stripe repeats for days what is refused, so that a newer release may still read it.
        const fact = yield* factOf(event).pipe(
          Effect.tapError((error) => Effect.logWarning("Failed to read an event of Stripe", error)),
          Effect.mapError(({ issue }) => invalidRequest(issue))
        )
        if (fact !== undefined) yield* payments.apply(fact)
        return { received: true as const }
      })
    )
  })
)

/** Groups `money` and `payments`, and the hourly work of both. */
export const MoneyHttp = Layer.mergeAll(MoneyGroup, PaymentsGroup, Reconciliation).pipe(
  Layer.provide([Checkouts.layer, UsageReports.layer]),
  Layer.provide(Payments.layer),
  Layer.provide(PaymentProvider.layer)
)
