/**
 * A payment provider for tests: the part of Stripe's API that the service calls, over HTTP, and what happens
 * at a payment page. It delivers events only when a test says so: twice, late, in any order, or never.
 */
import { createServer } from "node:http"
import { Context, Effect, Layer } from "effect"
import { Stripe } from "stripe"
import { PaymentBaseUrl } from "#server/features/money/provider"

export const webhookSecret = "whsec_simulated_secret"
const stripe = new Stripe("sk_test_simulated_key")

type Values = Readonly<Record<string, unknown>>
export interface SimulatedEvent {
  readonly id: string
  readonly type: string
  readonly created: number
  readonly data: { readonly object: Values }
}

/** Signs an event as the provider does, at a time in Unix seconds. */
export const sign = (event: SimulatedEvent, timestamp: number, secret = webhookSecret) => {
  const payload = JSON.stringify(event, null, 2)
  return {
    payload,
    header: stripe.webhooks.generateTestHeaderString({ payload, secret, timestamp })
  }
}

class Simulator {
  readonly sessions = new Map<string, Values>()
  readonly events: Array<SimulatedEvent> = []
  /** Form fields of the requests for sessions. */
  readonly requests: Array<Values> = []
  readonly #sessionOfKey = new Map<string, string>()
  isDown = false
  #ids = 0

  /** Answers a request to the API. */
  answer(method: string, url: URL, key: string, fields: Values): readonly [number, unknown] {
    if (this.isDown) return [500, { error: { type: "api_error", message: "down" } }]
    const [, , resource, , id = ""] = url.pathname.split("/")
    if (resource === "events") {
      const since = Number(url.searchParams.get("created[gte]"))
      const data = this.events.filter(({ created }) => created >= since).toReversed()
      return [200, { object: "list", has_more: false, url: "/v1/events", data }]
    }
    if (method === "GET") return [200, this.sessions.get(id)]
    const known = this.#sessionOfKey.get(key)
    if (known !== undefined) return [200, this.sessions.get(known)]
    this.requests.push(fields)
    const session = {
      id: this.#id("cs"),
      object: "checkout.session",
      url: `https://checkout.stripe.com/c/${this.#ids}`,
      client_reference_id: fields["client_reference_id"],
      amount_total: Number(fields["line_items[0][price_data][unit_amount]"]),
      currency: fields["line_items[0][price_data][currency]"],
      status: "open",
      payment_status: "unpaid",
      payment_intent: null
    }
    this.#sessionOfKey.set(key, session.id)
    this.sessions.set(session.id, session)
    return [200, session]
  }

  /** The developer pays; the payment is in the event, or comes later where `status` is unpaid. */
  pay(sessionId: string, created: number, change: Values = {}): SimulatedEvent {
    const paid = { status: "complete", payment_status: "paid", payment_intent: this.#id("pi") }
    return this.#change("checkout.session.completed", sessionId, created, { ...paid, ...change })
  }

  expire(sessionId: string, created: number): SimulatedEvent {
    return this.#change("checkout.session.expired", sessionId, created, { status: "expired" })
  }

  /** An event about a refund or a dispute of a paid session. */
  returned(type: string, sessionId: string, created: number, object: Values): SimulatedEvent {
    const payment = this.sessions.get(sessionId)?.["payment_intent"]
    return this.#emit(type, created, { payment_intent: payment, ...object })
  }

  #change(type: string, id: string, created: number, change: Values): SimulatedEvent {
    const session = { ...this.sessions.get(id), ...change }
    this.sessions.set(id, session)
    return this.#emit(type, created, session)
  }

  #emit(type: string, created: number, object: Values): SimulatedEvent {
    const event = { id: this.#id("evt"), object: "event", type, created, data: { object } }
    this.events.push(event)
    return event
  }

  #id(prefix: string): string {
    return `${prefix}_${++this.#ids}`
  }
}

export class PaymentSimulator extends Context.Service<
  PaymentSimulator,
  { readonly provider: Simulator; readonly url: string }
>()("test/support/payment-simulator/PaymentSimulator") {
  static readonly layer = Layer.effect(
    PaymentSimulator,
    Effect.gen(function* () {
      const provider = new Simulator()
      const server = createServer(async (request, response) => {
        const pieces: Array<Buffer> = []
        for await (const piece of request) pieces.push(Buffer.from(piece))
        const fields = Object.fromEntries(new URLSearchParams(Buffer.concat(pieces).toString()))
        const url = new URL(request.url ?? "/", "http://stripe")
        const key = String(request.headers["idempotency-key"])
        const [status, body] = provider.answer(request.method ?? "", url, key, fields)
        response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body))
      })
      yield* Effect.acquireRelease(
        Effect.callback<void>((resume) => {
          server.listen(0, "127.0.0.1", () => resume(Effect.void))
        }),
        () =>
          Effect.sync(() => {
            server.close()
            server.closeAllConnections()
          })
      )
      const address = server.address()
      const port = typeof address === "object" && address !== null ? address.port : 0
      return { provider, url: `http://127.0.0.1:${port}` }
    })
  )
}

/** Settings of a node that takes payments. */
export const paymentSettings = {
  SVC_BILLING: "on",
  SVC_STRIPE_SECRET_KEY: "sk_test_simulated_key",
  SVC_STRIPE_WEBHOOK_SECRETS: `whsec_replaced_secret,${webhookSecret}`
}

/** Takes the payments of a node at the simulator. */
export const AtSimulator = Layer.effect(
  PaymentBaseUrl,
  Effect.map(PaymentSimulator, ({ url }) => new URL(url))
)
