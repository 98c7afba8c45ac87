/** Requests end in a bounded time when the database is lost or frozen and when the process stops. */
import { connect, type Socket } from "node:net"
import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer, Redacted, Scope } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { TestClock } from "effect/testing"
import { HttpServerHandle } from "#server/http/server"
import { at, request, type TestResponse } from "#testing/players"
import { proxyTo } from "../support/http/raw.ts"
import { addressOfNode, makeTenants, nodeWith, SharedDatabase } from "../support/http-stack.ts"

/** Advances the test clock until a fiber has ended. */
const untilEnded = <A, E>(fiber: Fiber.Fiber<A, E>) =>
  TestClock.adjust("1 second").pipe(
    Effect.repeat({ until: () => fiber.pollUnsafe() !== undefined }),
    Effect.andThen(Fiber.join(fiber))
  )

/** Stops a node on the test clock. A node waits for its database only until a timeout. */
const stopNode = (scope: Scope.Closeable) =>
  Effect.flatMap(Effect.forkChild(Scope.close(scope, Exit.void)), untilEnded)

/** A node that reaches its database through a proxy. */
const startNode = Effect.gen(function* () {
  const direct = new URL(Redacted.value(yield* SharedDatabase))
  const proxy = yield* proxyTo(Number(direct.port))
  direct.port = `${proxy.port}`
  const throughProxy = Layer.succeed(SharedDatabase, Redacted.make(direct.href))
  const scope = yield* Effect.acquireRelease(Scope.make(), stopNode)
  const fresh = Layer.fresh(nodeWith().pipe(Layer.provide(throughProxy)))
  const node = yield* Layer.buildWithScope(fresh, scope)
  const url = yield* Effect.provideContext(addressOfNode, node)
  const { development } = yield* Effect.provideContext(makeTenants, node)
  const key = { "x-svc-key": development.publishableKey }
  const guest = request(`${url}/v1/auth/guest`, { headers: key, body: {} })
  assert.strictEqual((yield* guest).status, 200)
  return { proxy, url, guest }
})

const assertUnavailable = (answer: TestResponse) => {
  assert.strictEqual(answer.status, 503)
  assert.strictEqual(at(answer.body, "error", "code"), "unavailable")
}

layer(SharedDatabase.layer)("faults", (it) => {
  it.effect("answers 503 at once without a database, and serves endpoints that need none", () =>
    Effect.gen(function* () {
      const { guest, proxy, url } = yield* startNode
      yield* proxy.cut
      assertUnavailable(yield* guest)
      const ready = yield* request(`${url}/readyz`)
      assert.strictEqual(ready.status, 503)
      assert.deepInclude(ready.body, { ready: false, database: false })
      assert.strictEqual((yield* request(`${url}/healthz`)).status, 200)
      assert.strictEqual((yield* request(`${url}/.well-known/jwks.json`)).status, 200)
    })
  )

  it.effect(
    "answers 503 after 5 seconds when the database is frozen",
    () =>
      Effect.gen(function* () {
        const { guest, proxy } = yield* startNode
        yield* proxy.freeze
        const answer = yield* Effect.forkChild(guest)
        yield* Effect.repeat(proxy.hasDropped, { until: (dropped) => dropped })
        yield* TestClock.adjust("5 seconds")
        assertUnavailable(yield* Fiber.join(answer))
      }),
    { tags: "long" }
  )

  it.effect("answers 503 to requests that are pending when the process stops", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const Endless = HttpRouter.add(
        "GET",
        "/endless",
        Effect.andThen(Deferred.succeed(begun, undefined), Effect.never)
      )
      const scope = yield* Scope.make()
      const node = yield* Layer.buildWithScope(Layer.fresh(nodeWith({}, Endless)), scope)
      const url = yield* Effect.provideContext(addressOfNode, node)
      const answer = yield* Effect.forkChild(request(`${url}/endless`))
      yield* Deferred.await(begun)
      yield* untilEnded(yield* Effect.forkChild(Scope.close(scope, Exit.void)))
      assertUnavailable(yield* Fiber.join(answer))
    })
  )

  it.effect(
    "stops the node when the last request is answered, whatever connections clients keep open",
    () =>
      Effect.gen(function* () {
        const begun = yield* Deferred.make<void>()
        const released = yield* Deferred.make<void>()
        const Slow = HttpRouter.add(
          "GET",
          "/slow",
          Deferred.succeed(begun, undefined).pipe(
            Effect.andThen(Deferred.await(released)),
            Effect.as(HttpServerResponse.text("done"))
          )
        )
        const scope = yield* Scope.make()
        const node = yield* Layer.buildWithScope(Layer.fresh(nodeWith({}, Slow)), scope)
        const url = new URL(yield* Effect.provideContext(addressOfNode, node))
        const silent = connect(Number(url.port), url.hostname).on("error", () => undefined)
        const kept = connect(Number(url.port), url.hostname).on("error", () => undefined)
        let response = ""
        kept.on("data", (chunk) => (response += String(chunk)))
        kept.write("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
        yield* Deferred.await(begun)
        const stopping = yield* Effect.forkChild(Scope.close(scope, Exit.void))
        yield* Effect.yieldNow
        yield* Deferred.succeed(released, undefined)
        // The clock of the test stands still: no grace period ends.
        yield* Fiber.join(stopping)
        assert.match(response, /^HTTP\/1.1 200 /)
        silent.destroy()
      })
  )

  it.effect("stops the node while an upgraded socket stays open", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const node = yield* Layer.buildWithScope(Layer.fresh(nodeWith()), scope)
      const url = new URL(yield* Effect.provideContext(addressOfNode, node))
      const { onUpgrade } = yield* Effect.provideContext(HttpServerHandle, node)
      const upgraded = yield* Effect.callback<Socket>((resume) => {
        const socket = connect(Number(url.port), url.hostname)
        socket.on("error", () => undefined)
        onUpgrade("/held", () => resume(Effect.succeed(socket)))
        socket.write(
          "GET /held HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
            "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )
      })
      assert.isFalse(upgraded.closed)
      yield* untilEnded(yield* Effect.forkChild(Scope.close(scope, Exit.void)))
    })
  )
})
