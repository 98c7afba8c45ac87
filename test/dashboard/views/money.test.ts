/** The page of prepaid money in a real browser, with payments at the simulator of the provider. */
import { assert, layer } from "@effect/vitest"
import { DateTime, Effect, Layer, type Scope } from "effect"
import type { Page } from "playwright-core"
import { TestApp } from "#testing/app"
import { at, request } from "#testing/players"
import { Chromium, installed, needsChromium } from "../../support/client/chromium.ts"
import { expectAccessible, signedIn } from "../../support/dashboard/visitor.ts"
import { deploy, enable } from "../../support/function-calls.ts"
import {
  AtSimulator,
  paymentSettings,
  PaymentSimulator,
  sign
} from "../../support/payment-simulator.ts"
import { AppLive, DatabaseLive } from "../../support/service.ts"

const ask = <A>(run: () => Promise<A>) => Effect.promise(run)

const Billed = TestApp.layerWith({
  ...paymentSettings,
  SVC_PRICES: JSON.stringify({ functionRequests: { microUsd: 1500, per: 1 } })
}).pipe(Layer.provide([AtSimulator, DatabaseLive]), Layer.provideMerge(PaymentSimulator.layer))

const title = (page: Page) => page.getByRole("heading", { name: "Money", level: 1 })

/** Opens the page by the account menu. */
const openMoney = (page: Page) =>
  Effect.promise(async () => {
    await page.getByLabel("Account", { exact: true }).click()
    await page.getByRole("group").getByRole("link", { name: "Money" }).click()
    await title(page).waitFor()
  })

/** The developer pays the latest checkout, and the provider reports it. */
const payLatest = Effect.gen(function* () {
  const { url } = yield* TestApp
  const { provider } = yield* PaymentSimulator
  const now = Math.floor((yield* DateTime.now).epochMilliseconds / 1000)
  const session = [...provider.sessions.keys()].at(-1) ?? ""
  const { header, payload } = sign(provider.pay(session, now), now)
  const headers = { "content-type": "application/json", "stripe-signature": header }
  yield* ask(async () => {
    const response = await fetch(`${url}/v1/payments/stripe`, {
      method: "POST",
      headers,
      body: payload
    })
    assert.strictEqual(response.status, 200)
  })
})

/** Pays as often as this by the API, 5 dollars each. */
const payments = Effect.fnUntraced(function* (times: number) {
  const { developer, url } = yield* TestApp
  const login = yield* request(`${url}/v1/developers/login`, { body: developer })
  const headers = { authorization: `Bearer ${String(at(login.body, "token"))}` }
  const body = { amount: 500, successUrl: url, cancelUrl: url }
  for (let i = 0; i < times; i++) {
    const answer = yield* request(`${url}/v1/money/prepaid/checkout`, { headers, body })
    assert.strictEqual(answer.status, 200, JSON.stringify(answer.body))
    yield* payLatest
  }
})

const options = { timeout: "120 seconds", excludeTestServices: true } as const

layer(Layer.mergeAll(Chromium.layer, Billed), options)(
  `the page of money${needsChromium}`,
  (it) => {
    const test = (
      name: string,
      run: () => Effect.Effect<void, never, Chromium | PaymentSimulator | TestApp | Scope.Scope>
    ) => it.effect.skipIf(!installed)(name, run, 240_000)

    test("takes a payment, and shows it in the balance and the ledger", () =>
      Effect.gen(function* () {
        const { complaints, page } = yield* signedIn()
        const dialog = page.getByRole("dialog")
        yield* openMoney(page)
        yield* ask(() => page.getByText("There is no credit.").waitFor())
        yield* ask(() => page.getByText("No entry yet").waitFor())
        yield* expectAccessible(page)
        const pay = async (amount: string) => {
          await page.getByLabel("Amount in US dollars").fill(amount)
          await page.getByRole("button", { name: "Go on to pay" }).click()
        }
        yield* ask(async () => {
          await pay("1")
          await page.getByRole("alert").getByText("invalid_amount").waitFor()
          await pay("12.34")
          await dialog.getByRole("heading", { name: "Pay $12.34" }).waitFor()
        })
        const link = page.getByRole("link", { name: "Open the payment page" })
        const href = yield* ask(() => link.getAttribute("href"))
        assert.match(String(href), /^https:\/\/checkout\.stripe\.com\//)
        yield* expectAccessible(page)
        yield* payLatest
        yield* ask(async () => {
          await page.getByText("$12.34 are credited.").waitFor()
          await dialog.waitFor({ state: "detached" })
          await page.getByRole("cell", { name: /^Payment/ }).waitFor()
          await page.getByText("There is no credit.").waitFor({ state: "detached" })
        })
        yield* expectAccessible(page)
        assert.deepStrictEqual(complaints, [])
      }))

    test("loads the ledger page by page", () =>
      Effect.gen(function* () {
        yield* payments(21)
        const { page } = yield* signedIn()
        const rows = page.getByRole("row", { name: /Payment/ })
        yield* openMoney(page)
        yield* ask(async () => {
          await rows.nth(19).waitFor()
          assert.strictEqual(await rows.count(), 20)
          await page.getByRole("button", { name: "Load more" }).click()
          await rows.nth(20).waitFor()
          await page.getByRole("button", { name: "Load more" }).waitFor({ state: "detached" })
        })
      }))

    test("shows the usage of a month with its cost", () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        yield* payments(1)
        yield* enable(app)
        const { url } = Object(yield* deploy(app))
        yield* request(String(url).replace("http://localhost:8080", app.url), { method: "GET" })
        const { page } = yield* signedIn()
        yield* openMoney(page)
        const usage = page.getByRole("region", { name: "Usage", exact: true })
        yield* ask(async () => {
          await usage.getByRole("button", { name: "Count now" }).click()
          await usage
            .getByRole("row", { name: /Calls of functions 1 requests \$0\.0015/ })
            .waitFor()
          await usage.getByLabel("Month").selectOption({ index: 1 })
          await usage.getByText("$0.0015").first().waitFor({ state: "detached" })
        })
        assert.match(new URL(page.url()).search, /month=20\d\d-\d\d/)
      }))

    test("says what is owed and what waits for a confirmed address, and fits a phone", () =>
      Effect.gen(function* () {
        const viewport = { width: 390, height: 844 }
        const { complaints, page } = yield* signedIn({ viewport })
        yield* ask(() =>
          page.route(
            (url) => url.pathname === "/v1/money/prepaid",
            (route) =>
              route.fulfill({
                json: { balance: 0, owed: 725, invite: { granted: 0, remaining: 0, pending: 500 } }
              })
          )
        )
        yield* openMoney(page)
        yield* ask(async () => {
          await page.getByText("You owe $7.25.").waitFor()
          await page.getByRole("button", { name: "Send the link" }).click()
          await page.getByText("The link is on its way to your address.").waitFor()
        })
        yield* expectAccessible(page)
        const width = yield* ask(() => page.evaluate(() => document.documentElement.scrollWidth))
        assert.isAtMost(width, viewport.width)
        assert.deepStrictEqual(complaints, [])
      }))
  }
)

layer(Layer.mergeAll(Chromium.layer, AppLive), options)(`without billing${needsChromium}`, (it) => {
  it.effect.skipIf(!installed)(
    "the page of money says without billing that nothing is charged",
    () =>
      Effect.gen(function* () {
        const { page } = yield* signedIn()
        yield* openMoney(page)
        yield* ask(() => page.getByText("Billing is off").waitFor())
        yield* expectAccessible(page)
      }),
    120_000
  )
})
