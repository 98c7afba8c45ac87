/** Shares of tenants in the outgoing requests, and requests that this process could not make. */
import { pbkdf2Sync } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Outgoing, outgoingLimits, type OutgoingRequest } from "#server/platform/outgoing"
import { startServer } from "../support/local-server.ts"

describe("shares of tenants", () => {
  const ask = (options: Partial<OutgoingRequest>) =>
    Effect.flatMap(Outgoing, (outgoing) =>
      outgoing.request({
        purpose: "signIns",
        url: "https://example.com/",
        method: "GET",
        headers: {},
        timeoutMillis: 20_000,
        responseMaxBytes: 16,
        targets: "anywhere",
        ...options
      })
    )
  const fork = (count: number, options: Partial<OutgoingRequest>) =>
    Effect.forEach(
      Array.from({ length: count }),
      () => Effect.forkChild(ask(options), { startImmediately: true }),
      { discard: true }
    )

  it.live("signs in at a provider while webhooks and another tenant's sign-ins hang", () =>
    Effect.gen(function* () {
      const hanging = yield* startServer(() => undefined)
      const { port } = yield* startServer((_, response) => response.end("me"))
      const url = `http://127.0.0.1:${hanging.port}/`
      for (let n = 0; n < 20; n++) {
        yield* fork(100, { purpose: "webhooks", tenant: `hooks ${n}`, url })
      }
      const { permitsPerKey, waitingPerKey } = outgoingLimits.signIns
      yield* fork(permitsPerKey + waitingPerKey, { tenant: "a", url })
      assert.strictEqual((yield* Effect.flip(ask({ tenant: "a", url })))._tag, "unavailable")
      const answer = yield* ask({ tenant: "b", url: `http://127.0.0.1:${port}/` })
      assert.strictEqual(answer.body, "me")
    }).pipe(Effect.provide(Outgoing.layer))
  )

  it.live(
    "fails a request with unavailable, not as the server's silence, when this process is too busy",
    () =>
      Effect.gen(function* () {
        const { port } = yield* startServer((_, response) => {
          // Blocks the process for longer than the timeout.
          pbkdf2Sync("busy", "salt", 2_000_000, 32, "sha256")
          response.end("late")
        })
        const error = yield* Effect.flip(
          ask({ url: `http://127.0.0.1:${port}/`, timeoutMillis: 100 })
        )
        assert.strictEqual(error._tag, "unavailable")
      }).pipe(Effect.provide(Outgoing.layer))
  )
})
