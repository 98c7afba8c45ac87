/**
 * OAuth sign-ins of two games: the provider of one hangs for all its players, those of the other sign in.
 *
 * @module-tag long
 */
import { createServer } from "node:http"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Fiber, Layer } from "effect"
import { outgoingLimits } from "#server/platform/outgoing"
import { request } from "#testing/players"
import {
  makeApp,
  OAuthNodeLive,
  Providers,
  signIn,
  startFlow
} from "../../support/oauth/oauth-harness.ts"
import { addressOfNode } from "../../support/http-stack.ts"

/** A provider that takes every request and answers none. */
class HangingProvider extends Context.Service<
  HangingProvider,
  { readonly url: string; readonly requests: () => number }
>()("test/features/oauth/fairness/HangingProvider") {
  static readonly layer = Layer.effect(
    HangingProvider,
    Effect.acquireRelease(
      Effect.callback<HangingProvider["Service"] & { readonly close: () => void }>((resume) => {
        let requests = 0
        const server = createServer(() => {
          requests += 1
        })
        server.listen(0, "127.0.0.1", () => {
          const address = server.address()
          const port = typeof address === "object" && address !== null ? address.port : 0
          const close = () => {
            server.close()
            server.closeAllConnections()
          }
          resume(
            Effect.succeed({ url: `http://127.0.0.1:${port}`, requests: () => requests, close })
          )
        })
      }),
      ({ close }) => Effect.sync(close)
    )
  )
}

const Node = Layer.unwrap(
  Effect.map(HangingProvider, ({ url }) => OAuthNodeLive({}, { x: url }))
).pipe(Layer.provideMerge(HangingProvider.layer))

layer(Node, { excludeTestServices: true })("OAuth sign-ins of two games", (it) => {
  it.effect("signs players of one game in while the provider of the other hangs", () =>
    Effect.gen(function* () {
      const hanging = yield* HangingProvider
      const { discord } = yield* Providers
      const url = yield* addressOfNode
      const [flooded, other] = yield* Effect.all([makeApp, makeApp])
      const { permitsPerKey, waitingPerKey } = outgoingLimits.signIns
      const arrive = Effect.gen(function* () {
        const state = new URL(yield* startFlow(flooded, "x")).searchParams.get("state") ?? ""
        const query = new URLSearchParams({ code: "code", state }).toString()
        return yield* request(`${url}/v1/auth/oauth/x/callback?${query}`)
      })
      const flood = yield* Effect.forkChild(
        Effect.forEach(Array.from({ length: permitsPerKey + waitingPerKey }), () => arrive, {
          concurrency: "unbounded"
        })
      )
      while (hanging.requests() < permitsPerKey) yield* Effect.yieldNow
      discord.accounts.set("ada", {
        email: "ada@example.com",
        emailVerified: true,
        username: "ada"
      })
      assert.strictEqual((yield* signIn(other, "discord", "ada")).status, 200)
      yield* Fiber.interrupt(flood)
    })
  )
})
