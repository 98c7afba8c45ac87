/** Checkouts: how they are opened, and what their requests may ask for. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { checkoutThrottle } from "#server/features/money/prepaid-top-ups"
import { at, request } from "#testing/players"
import { ask, codeOf } from "../../support/developer-requests.ts"
import { addressOfNode, makeDeveloper, nodeWith, SharedDatabase } from "../../support/http-stack.ts"
import {
  advance,
  App,
  appWith,
  atStart,
  balanceOf,
  deliver,
  entriesOf,
  nowSeconds,
  openCheckout,
  pages,
  prepaid,
  startCheckout,
  statusOf
} from "../../support/payment-harness.ts"
import { PaymentSimulator } from "../../support/payment-simulator.ts"

layer(App, { timeout: "120 seconds", excludeTestServices: true })("checkouts", (it) => {
  it.effect("opens a checkout that asks for strong authentication, and credits it once paid", () =>
    Effect.gen(function* () {
      const { provider } = yield* PaymentSimulator
      const developer = yield* makeDeveloper
      const answer = yield* startCheckout(developer)
      assert.deepInclude(at(answer.body, "checkout"), {
        status: "open",
        amount: 2500,
        currency: "usd",
        expiresAt: "2026-11-23T19:00:00.000Z"
      })
      const id = String(at(answer.body, "checkout", "id"))
      assert.deepInclude(provider.requests.at(-1), {
        "payment_method_options[card][request_three_d_secure]": "challenge",
        customer_email: developer.email,
        success_url: pages.successUrl,
        "line_items[0][price_data][unit_amount]": "2500"
      })
      assert.strictEqual(yield* balanceOf(developer), 0)
      const session = String(
        [...provider.sessions.values()].find((one) => one["client_reference_id"] === id)?.["id"]
      )
      const event = provider.pay(session, yield* nowSeconds)
      assert.strictEqual((yield* deliver(event)).status, 200)
      assert.deepStrictEqual(yield* prepaid(developer), { balance: 2500, owed: 0, invite: null })
      assert.strictEqual(yield* statusOf(developer, id), "paid")
      assert.deepInclude((yield* entriesOf(developer))[0], {
        kind: "topup",
        account: "prepaid",
        amount: 2500,
        balanceAfter: 2500
      })
    })
  )

  it.effect(
    "opens one checkout session for an idempotency key, also when the first answer was lost",
    () =>
      Effect.gen(function* () {
        const { provider } = yield* PaymentSimulator
        const developer = yield* makeDeveloper
        const before = provider.requests.length
        const answers = yield* Effect.all(
          Array.from({ length: 5 }, () => startCheckout(developer, {}, "key-1")),
          { concurrency: "unbounded" }
        )
        assert.lengthOf(new Set(answers.map(({ body }) => at(body, "checkout", "id"))), 1)
        assert.strictEqual(provider.requests.length, before + 1)
        provider.isDown = true
        assert.strictEqual(
          codeOf(yield* startCheckout(developer, {}, "key-2")),
          "payments_unavailable"
        )
        provider.isDown = false
        const again = yield* startCheckout(developer, {}, "key-2")
        assert.strictEqual(again.status, 200)
        assert.strictEqual(
          codeOf(yield* startCheckout(developer, { amount: 2600 }, "key-1")),
          "idempotency_key_reused"
        )
        assert.strictEqual(
          codeOf(yield* startCheckout(developer, {}, "no key")),
          "invalid_idempotency_key"
        )
        // Another developer's key is another key, and a day later the key is free again.
        const other = yield* startCheckout(yield* makeDeveloper, { amount: 2600 }, "key-1")
        assert.strictEqual(other.status, 200)
        yield* advance(25)
        const later = yield* startCheckout(developer, { amount: 2600 }, "key-1")
        assert.strictEqual(later.status, 200, JSON.stringify(later.body))
      })
  )

  it.effect(
    "refuses amounts out of range and pages that are not the developer's to return to",
    () =>
      Effect.gen(function* () {
        const developer = yield* makeDeveloper
        for (const amount of [499, 1_000_001, 0, -500, 500.5, 1e15]) {
          const answer = yield* startCheckout(developer, { amount })
          assert.strictEqual(codeOf(answer), "invalid_amount")
          assert.deepStrictEqual(at(answer.body, "error", "details"), {
            min: 500,
            max: 1_000_000,
            unit: "cents"
          })
        }
        for (const body of [
          { successUrl: "http://game.example/" },
          { successUrl: "javascript:alert(1)" },
          { cancelUrl: "https://user:word@game.example/" },
          { cancelUrl: "/relative" },
          { successUrl: "https://game.example/\n" },
          { cancelUrl: `https://game.example/${"x".repeat(2048)}` },
          { amount: "2500" }
        ]) {
          assert.strictEqual(codeOf(yield* startCheckout(developer, body)), "invalid_request")
        }
        for (const amount of [500, 1_000_000]) {
          assert.strictEqual((yield* startCheckout(developer, { amount })).status, 200)
        }
      })
  )

  it.effect("hides a checkout from other developers", () =>
    Effect.gen(function* () {
      const developer = yield* makeDeveloper
      const { id } = yield* openCheckout(developer)
      const stranger = yield* makeDeveloper
      assert.strictEqual(yield* statusOf(developer, id), "open")
      for (const other of [id, "chk_1", `chk_${"0".repeat(26)}`]) {
        const answer = yield* ask(stranger, "GET", `/v1/money/prepaid/checkouts/${other}`)
        assert.strictEqual(codeOf(answer), "not_found")
      }
      assert.lengthOf(yield* entriesOf(stranger), 0)
    })
  )
})

const unpaid = (billing: string) =>
  nodeWith({ SVC_BILLING: billing }).pipe(
    Layer.provideMerge(atStart),
    Layer.provideMerge(SharedDatabase.layer)
  )

layer(unpaid("on"), { excludeTestServices: true })("billing without a payment provider", (it) => {
  it.effect("refuses a wrong amount before it looks for the payment provider", () =>
    Effect.gen(function* () {
      const developer = yield* makeDeveloper
      const wrong = yield* startCheckout(developer, { amount: 0 })
      assert.strictEqual(codeOf(wrong), "invalid_amount")
      assert.strictEqual(codeOf(yield* startCheckout(developer)), "payments_unavailable")
    })
  )
})

layer(unpaid("off"), { excludeTestServices: true })("money without billing", (it) => {
  it.effect("shows zeros and empty lists without billing, and takes no payments", () =>
    Effect.gen(function* () {
      const developer = yield* makeDeveloper
      assert.deepStrictEqual(yield* prepaid(developer), { balance: 0, owed: 0, invite: null })
      const { body } = yield* ask(developer, "GET", "/v1/money/prepaid/ledger")
      assert.deepStrictEqual(body, { entries: [], nextCursor: null })
      const usage = yield* ask(developer, "GET", "/v1/money/usage?refresh=true")
      assert.deepInclude(usage.body, { period: "2026-11", components: [], totalMicroUsd: 0 })
      assert.strictEqual(codeOf(yield* startCheckout(developer)), "payments_unavailable")
      assert.strictEqual((yield* startCheckout(developer)).status, 503)
      const url = yield* addressOfNode
      const event = yield* request(`${url}/v1/payments/stripe`, { method: "POST", body: {} })
      assert.strictEqual(event.status, 404)
      for (const period of ["2026", "2026-13", "26-01", "2026-1"]) {
        const answer = yield* ask(developer, "GET", `/v1/money/usage?period=${period}`)
        assert.strictEqual(codeOf(answer), "invalid_request")
      }
    })
  )
})

layer(appWith({ SVC_THROTTLES: "on" }), { timeout: "120 seconds", excludeTestServices: true })(
  "the limit of checkouts",
  (it) => {
    it.effect("returns the first checkout to a retry, also when no further one may be opened", () =>
      Effect.gen(function* () {
        const developer = yield* makeDeveloper
        const first = yield* startCheckout(developer, {}, "first")
        for (let opened = 1; opened < checkoutThrottle.burst; opened++) {
          assert.strictEqual((yield* startCheckout(developer)).status, 200)
        }
        const refused = yield* startCheckout(developer)
        assert.strictEqual(codeOf(refused), "rate_limited")
        assert.isNotNull(refused.headers.get("retry-after"))
        const retried = yield* startCheckout(developer, {}, "first")
        assert.deepStrictEqual([retried.status, retried.body], [200, first.body])
      })
    )
  }
)
