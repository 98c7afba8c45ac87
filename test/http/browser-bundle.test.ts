/** A service whose files for browsers cannot be bundled. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { at, request } from "#testing/players"
import { addressOfNode, nodeWith, SharedDatabase } from "../support/http-stack.ts"

// No folder can be made below a file, so there is nowhere to keep a bundle.
const Node = nodeWith({ SVC_DATA_DIR: "/dev/null/data" }).pipe(
  Layer.provideMerge(SharedDatabase.layer)
)

layer(Node)("a service that cannot bundle what browsers load", (it) => {
  it.effect("says so to pages that import the client and at the dashboard, and goes on", () =>
    Effect.gen(function* () {
      const url = yield* addressOfNode
      for (const path of ["/sdk/client.js", "/sdk/client.js.map"]) {
        const { body, headers, status } = yield* request(url + path)
        assert.deepStrictEqual([status, at(body, "error", "code")], [503, "unavailable"], path)
        assert.include(String(at(body, "error", "message")), "`npm ci` installs what it is built")
        assert.isNull(headers.get("etag"))
      }
      const dashboard = yield* request(`${url}/dashboard`)
      assert.strictEqual(dashboard.status, 503)
      assert.include(String(dashboard.body), "The dashboard could not be built")
      assert.strictEqual((yield* request(`${url}/openapi.json`)).status, 200)
    })
  )
})
