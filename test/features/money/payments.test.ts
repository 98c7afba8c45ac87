/** What the payment provider reports of checkouts: payments, refunds and disputes. */
import { assert, layer } from "@effect/vitest"
import { DateTime, Effect, Exit, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { CheckoutRepository } from "#sql/money/checkouts"
import { Payments } from "#server/features/money/payments"
import { factOf, PaymentProvider } from "#server/features/money/provider"
import { makeReconcile } from "#server/features/money/reconciliation"
import { at } from "#testing/players"
import { ask, codeOf } from "../../support/developer-requests.ts"
import { makeDeveloper } from "../../support/http-stack.ts"
import {
  advance,
  App,
  balanceOf,
  deliver,
  entriesOf,
  nowSeconds,
  openCheckout,
  prepaid,
  statusOf
} from "../../support/payment-harness.ts"
import { PaymentSimulator, sign, type SimulatedEvent } from "../../support/payment-simulator.ts"

layer(App, { timeout: "120 seconds", excludeTestServices: true })("payments", (it) => {
  it.effect(
    "accepts only events with a signature of their bytes that is neither old nor dated ahead",
    () =>
      Effect.gen(function* () {
        const { provider } = yield* PaymentSimulator
        const developer = yield* makeDeveloper
        const { session } = yield* openCheckout(developer)
        const event = provider.pay(session, yield* nowSeconds)
        const now = yield* nowSeconds
        const { header, payload } = sign(event, now)
        for (const change of [
          { header: "" },
          { header: sign(event, now, "whsec_of_another").header },
          { header: header.replace(/.$/, (end) => (end === "0" ? "1" : "0")) },
          { payload: payload.replace("2500", "9999") },
          { payload: JSON.stringify(event) },
          { payload: "" },
          { age: 301 },
          { age: -301 },
          { age: -3600 }
        ]) {
          const answer = yield* deliver(event, change)
          assert.strictEqual(answer.status, 400, JSON.stringify(change))
          assert.strictEqual(codeOf(answer), "invalid_request")
        }
        assert.strictEqual(yield* balanceOf(developer), 0)
        assert.strictEqual((yield* deliver(event, { age: 299 })).status, 200)
        assert.strictEqual((yield* deliver(event, { age: -299 })).status, 200)
        assert.strictEqual(yield* balanceOf(developer), 2500)
      })
  )

  it.effect("credits a payment once, however often and wherever its events arrive", () =>
    Effect.gen(function* () {
      const { provider } = yield* PaymentSimulator
      const developer = yield* makeDeveloper
      const { id, session } = yield* openCheckout(developer)
      const event = provider.pay(session, yield* nowSeconds)
      yield* Effect.all([deliver(event), deliver(event), deliver(event)], {
        concurrency: "unbounded"
      })
      const async = provider.returned(
        "checkout.session.async_payment_succeeded",
        session,
        yield* nowSeconds,
        { ...provider.sessions.get(session) }
      )
      yield* deliver(async)
      // The expiry of a session that was paid comes late.
      yield* deliver(provider.expire(session, yield* nowSeconds))
      assert.strictEqual(yield* balanceOf(developer), 2500)
      assert.strictEqual(yield* statusOf(developer, id), "paid")
    })
  )

  it.effect(
    "credits no unpaid, failed or expired payment until the provider reports it as paid",
    () =>
      Effect.gen(function* () {
        const { provider } = yield* PaymentSimulator
        const developer = yield* makeDeveloper
        const delayed = yield* openCheckout(developer)
        yield* deliver(
          provider.pay(delayed.session, yield* nowSeconds, { payment_status: "unpaid" })
        )
        assert.strictEqual(yield* statusOf(developer, delayed.id), "open")
        const unpaid = { ...provider.sessions.get(delayed.session) }
        const now = yield* nowSeconds
        yield* deliver(
          provider.returned("checkout.session.async_payment_failed", delayed.session, now, unpaid)
        )
        assert.strictEqual(yield* statusOf(developer, delayed.id), "failed")
        const left = yield* openCheckout(developer)
        yield* deliver(provider.expire(left.session, yield* nowSeconds))
        assert.strictEqual(yield* statusOf(developer, left.id), "expired")
        assert.strictEqual(yield* balanceOf(developer), 0)
        // The provider's word that it was paid counts, also after that.
        yield* deliver(provider.pay(left.session, yield* nowSeconds))
        assert.strictEqual(yield* statusOf(developer, left.id), "paid")
        assert.strictEqual(yield* balanceOf(developer), 2500)
      })
  )

  it.effect("credits no payment of another amount, currency or session, and no foreign one", () =>
    Effect.gen(function* () {
      const { provider } = yield* PaymentSimulator
      const developer = yield* makeDeveloper
      const now = yield* nowSeconds
      for (const change of [
        { amount_total: 9_999_999 },
        { currency: "jpy" },
        { id: "cs_of_another" }
      ]) {
        const { session } = yield* openCheckout(developer)
        assert.strictEqual((yield* deliver(provider.pay(session, now, change))).status, 200)
      }
      const { session } = yield* openCheckout(developer)
      for (const reference of [null, `chk_${"0".repeat(26)}`, "order-7"]) {
        const foreign = provider.pay(session, now, { client_reference_id: reference })
        assert.strictEqual((yield* deliver(foreign)).status, 200)
      }
      assert.strictEqual(yield* balanceOf(developer), 0)
    })
  )

  it.effect(
    "takes refunded and disputed amounts off the balance, in whatever order their events arrive",
    () =>
      Effect.gen(function* () {
        const { provider } = yield* PaymentSimulator
        const now = yield* nowSeconds
        const refund = (id: string, amount: number, status = "succeeded") => ({
          id,
          amount,
          status
        })
        const run = Effect.fnUntraced(function* (
          order: (events: ReadonlyArray<SimulatedEvent>) => ReadonlyArray<SimulatedEvent>,
          suffix: string
        ) {
          const developer = yield* makeDeveloper
          const { session } = yield* openCheckout(developer)
          const of = (type: string, object: object) =>
            provider.returned(type, session, now, { ...object })
          const events = [
            provider.pay(session, now),
            of("refund.created", refund(`re_partial_${suffix}`, 700)),
            of("refund.created", refund(`re_failing_${suffix}`, 800, "pending")),
            of("refund.failed", refund(`re_failing_${suffix}`, 800, "failed")),
            of("charge.dispute.created", refund(`dp_lost_${suffix}`, 1000, "needs_response")),
            of("charge.dispute.closed", refund(`dp_lost_${suffix}`, 1000, "lost")),
            of("charge.dispute.created", refund(`dp_won_${suffix}`, 900, "under_review")),
            of("charge.dispute.closed", refund(`dp_won_${suffix}`, 900, "won")),
            of(
              "charge.dispute.created",
              refund(`dp_asked_${suffix}`, 300, "warning_needs_response")
            )
          ]
          for (const event of order(events)) assert.strictEqual((yield* deliver(event)).status, 200)
          assert.deepStrictEqual(yield* prepaid(developer), { balance: 800, owed: 0, invite: null })
        })
        yield* run((events) => events, "a")
        yield* run((events) => events.toReversed(), "b")
        yield* run((events) => [...events.slice(4), ...events.slice(0, 4)], "c")
        yield* run((events) => events.flatMap((event) => [event, event]), "d")
      })
  )

  it.effect("owes what was refunded but is spent, until a payment covers it", () =>
    Effect.gen(function* () {
      const { provider } = yield* PaymentSimulator
      const developer = yield* makeDeveloper
      const now = yield* nowSeconds
      const { session } = yield* openCheckout(developer)
      yield* deliver(provider.pay(session, now))
      const dispute = { id: "dp_more", amount: 4000, status: "needs_response" }
      yield* deliver(provider.returned("charge.dispute.created", session, now, dispute))
      assert.deepStrictEqual(yield* prepaid(developer), { balance: 0, owed: 1500, invite: null })
      const next = yield* openCheckout(developer)
      yield* deliver(provider.pay(next.session, now))
      assert.deepStrictEqual(yield* prepaid(developer), { balance: 1000, owed: 0, invite: null })
      const entries = yield* entriesOf(developer)
      const sum = (account: string) =>
        entries
          .filter((entry) => at(entry, "account") === account)
          .reduce((total: number, entry) => total + Number(at(entry, "amount")), 0)
      assert.deepStrictEqual([sum("prepaid"), sum("owed")], [1000, 0])
      const first = yield* ask(developer, "GET", "/v1/money/prepaid/ledger?limit=2")
      const rest = yield* entriesOf(developer, `?cursor=${at(first.body, "nextCursor")}`)
      assert.deepStrictEqual([...Object(at(first.body, "entries")), ...rest], entries)
    })
  )

  it.effect(
    "finds in a reconciliation what no event reported, and forgets what was never paid",
    () =>
      Effect.gen(function* () {
        const { provider } = yield* PaymentSimulator
        const developer = yield* makeDeveloper
        const reconcile = yield* makeReconcile.pipe(
          Effect.provide(Layer.mergeAll(Payments.layer, PaymentProvider.layer))
        )
        const paid = yield* openCheckout(developer)
        const left = yield* openCheckout(developer)
        const lost = yield* openCheckout(developer)
        const created = yield* nowSeconds
        const strange = { id: 7, currency: "usd" }
        const unreadable = {
          id: "evt_strange",
          type: "checkout.session.completed",
          created,
          data: { object: strange }
        }
        provider.events.push(unreadable)
        provider.pay(paid.session, created)
        const refused = yield* deliver(unreadable)
        assert.deepStrictEqual(
          [refused.status, at(refused.body, "error", "code")],
          [400, "invalid_request"]
        )
        yield* reconcile(yield* DateTime.now)
        yield* reconcile(yield* DateTime.now)
        assert.strictEqual(yield* balanceOf(developer), 2500)
        const sql = yield* SqlClient.SqlClient
        yield* sql`update checkouts set session_id = null, url = null where id = ${lost.id}`
        yield* advance(24)
        provider.expire(left.session, (yield* nowSeconds) - 1_000_000)
        yield* reconcile(yield* DateTime.now)
        assert.strictEqual(yield* statusOf(developer, left.id), "expired")
        const rows = yield* sql`select status from checkouts where id = ${lost.id}`
        assert.deepStrictEqual(rows, [{ status: "expired" }])
        assert.strictEqual(yield* balanceOf(developer), 2500)
      })
  )

  it.effect("applies an event wholly when the process dies between any two statements", () =>
    Effect.gen(function* () {
      const { provider } = yield* PaymentSimulator
      const repository = yield* CheckoutRepository
      let calls = 0
      let fatal = 0
      const crashing = new Proxy(repository, {
        get: (target, name) => {
          const method: unknown = Reflect.get(target, name)
          if (typeof method !== "function") return method
          return (...args: ReadonlyArray<unknown>) =>
            Effect.suspend(() => {
              const run: Effect.Effect<unknown> = Reflect.apply(method, target, args)
              return ++calls === fatal ? Effect.andThen(run, Effect.die("crashed")) : run
            })
        }
      })
      const payments = yield* Payments.pipe(
        Effect.provide(
          Layer.fresh(Payments.layer).pipe(
            Layer.provide(Layer.succeed(CheckoutRepository, crashing))
          )
        )
      )
      const developer = yield* makeDeveloper
      let expected = 0
      let crashes = 0
      for (fatal = 1; crashes === fatal - 1; fatal++) {
        const { session } = yield* openCheckout(developer)
        const now = yield* nowSeconds
        const paid = yield* factOf(provider.pay(session, now))
        const refund = { id: `re_crash_${fatal}`, amount: 500, status: "succeeded" }
        const back = yield* factOf(provider.returned("refund.created", session, now, refund))
        calls = 0
        for (const fact of [back, paid]) {
          if (fact === undefined) continue
          const exit = yield* Effect.exit(payments.apply(fact))
          if (Exit.isSuccess(exit)) continue
          crashes += 1
          // The provider repeats what was not acknowledged.
          yield* payments.apply(fact)
        }
        expected += 2000
        assert.strictEqual(yield* balanceOf(developer), expected)
      }
      assert.isAtLeast(crashes, 6)
    })
  )
})
