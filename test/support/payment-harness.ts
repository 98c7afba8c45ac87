/** A node that takes payments at the simulator, and requests of its developers. */
import { assert } from "@effect/vitest"
import { DateTime, Effect, Layer } from "effect"
import { at, request } from "#testing/players"
import { ask } from "./developer-requests.ts"
import { addressOfNode, makeDeveloper, nodeWith, SharedDatabase } from "./http-stack.ts"
import { MovableClock } from "./movable-clock.ts"
import {
  AtSimulator,
  paymentSettings,
  PaymentSimulator,
  sign,
  type SimulatedEvent
} from "./payment-simulator.ts"

export const atStart = MovableClock.layerAt("2026-11-22T20:00:00Z")

export const advance = (hours: number) =>
  Effect.flatMap(MovableClock, (clock) => clock.advance(hours * 3_600_000))

/** A node with these settings beside those of the simulator. */
export const appWith = (settings: Readonly<Record<string, string>>) =>
  nodeWith({ ...paymentSettings, ...settings }).pipe(
    Layer.provideMerge(AtSimulator),
    Layer.provideMerge(atStart),
    Layer.provideMerge(PaymentSimulator.layer),
    Layer.provideMerge(SharedDatabase.layer)
  )

export const App = appWith({})

export type Developer = Effect.Success<typeof makeDeveloper>

export const nowSeconds = Effect.map(DateTime.now, (now) =>
  Math.floor(now.epochMilliseconds / 1000)
)

/** Sends an event to the webhook, as the provider does. */
export const deliver = Effect.fnUntraced(function* (
  event: SimulatedEvent,
  change: { readonly header?: string; readonly payload?: string; readonly age?: number } = {}
) {
  const url = yield* addressOfNode
  const { header, payload } = sign(event, (yield* nowSeconds) - (change.age ?? 0))
  return yield* Effect.promise(async () => {
    const response = await fetch(`${url}/v1/payments/stripe`, {
      method: "POST",
      headers: {
        "content-type": "application/json; charset=utf-8",
        "stripe-signature": change.header ?? header
      },
      body: change.payload ?? payload
    })
    const body: unknown = await response.json()
    return { status: response.status, body }
  })
})

export const pages = {
  successUrl: "https://game.example/paid",
  cancelUrl: "http://localhost:3000/"
}

export const startCheckout = Effect.fnUntraced(function* (
  developer: Developer,
  body: object = {},
  key?: string
) {
  const url = yield* addressOfNode
  return yield* request(`${url}/v1/money/prepaid/checkout`, {
    method: "POST",
    headers: { ...developer.headers, ...(key === undefined ? {} : { "idempotency-key": key }) },
    body: { amount: 2500, ...pages, ...body }
  })
})

/** A checkout of 25 dollars; the id of its session at the provider. */
export const openCheckout = Effect.fnUntraced(function* (developer: Developer) {
  const { provider } = yield* PaymentSimulator
  const answer = yield* startCheckout(developer)
  assert.strictEqual(answer.status, 200, JSON.stringify(answer.body))
  const id = String(at(answer.body, "checkout", "id"))
  const session = [...provider.sessions.values()].find((it) => it["client_reference_id"] === id)
  return { id, session: String(session?.["id"]) }
})

export const prepaid = (developer: Developer) =>
  Effect.map(ask(developer, "GET", "/v1/money/prepaid"), ({ body }) => body)

export const balanceOf = (developer: Developer) =>
  Effect.map(prepaid(developer), (body) => at(body, "balance"))

export const statusOf = (developer: Developer, id: string) =>
  Effect.map(ask(developer, "GET", `/v1/money/prepaid/checkouts/${id}`), ({ body }) =>
    at(body, "checkout", "status")
  )

export const entriesOf = (developer: Developer, query = "") =>
  Effect.map(ask(developer, "GET", `/v1/money/prepaid/ledger${query}`), ({ body }) => {
    const entries = at(body, "entries")
    return Array.isArray(entries) ? entries : []
  })
