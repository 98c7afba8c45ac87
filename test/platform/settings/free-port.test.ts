/** Free ports for servers whose address is needed before they listen. */
import { createServer, type Server } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { freePort } from "#server/platform/settings/free-port"

const host = "127.0.0.1"

/** A server that listens on this port until the scope closes. */
const listenOn = (port: number) =>
  Effect.acquireRelease(
    Effect.callback<Server>((resume) => {
      const server = createServer()
      server.listen(port, host, () => resume(Effect.succeed(server)))
    }),
    (server) => Effect.sync(() => server.close())
  )

describe("freePort", () => {
  it.live("returns no port twice, and none that the system gives to connections", () =>
    Effect.gen(function* () {
      const found = yield* Effect.all(Array.from({ length: 50 }, () => freePort(host)))
      assert.strictEqual(new Set(found).size, 50)
      for (const port of found) {
        assert.isAtLeast(port, 11_000)
        assert.isBelow(port, 32_000)
      }
    })
  )

  it.live("skips ports that are taken", () =>
    Effect.gen(function* () {
      const last = yield* freePort(host)
      const next = last + 1 < 32_000 ? last + 1 : 11_000
      yield* listenOn(next)
      assert.notStrictEqual(yield* freePort(host), next)
    })
  )
})
