/** Requests of tests that get no response. */
import { createServer, type Socket } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit } from "effect"
import { request, RequestFailed } from "#testing/players"

/** A server that closes each connection once a request has come. */
const closingServer = Effect.map(
  Effect.acquireRelease(
    Effect.callback<ReturnType<typeof createServer>>((resume) => {
      const close = (socket: Socket) => socket.once("data", () => socket.end())
      const server = createServer(close)
      server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
    }),
    (server) => Effect.sync(() => server.close())
  ),
  (server) => {
    const address = server.address()
    return `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`
  }
)

describe("a request of a test", () => {
  it.live("fails without a response with its method, its path, how long it took, and why", () =>
    Effect.gen(function* () {
      const url = yield* closingServer
      const put = { method: "PUT", body: { score: 1 } }
      const exit = yield* Effect.exit(request(`${url}/v1/saves/slot?key=sk_secret`, put))
      assert.isTrue(Exit.isFailure(exit))
      const error = Exit.isFailure(exit)
        ? exit.cause.reasons.map((it) => Reflect.get(it, "defect"))[0]
        : undefined
      assert.instanceOf(error, RequestFailed)
      assert.match(
        error.message,
        /^PUT \/v1\/saves\/slot got no response within \d+ ms: fetch failed: other side closed$/
      )
      assert.instanceOf(error.cause, TypeError)
    })
  )
})
