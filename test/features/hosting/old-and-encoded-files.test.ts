/** Files of versions before the live one, files that were uploaded compressed, and missing assets. */
import { once } from "node:events"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { createServer } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { brotliCompressSync, gzipSync } from "node:zlib"
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import { hosting } from "#rpc/hosting/limits"
import { sendDecoded } from "#server/features/hosting/decoded"
import { at } from "#testing/players"
import { call, deploy } from "../../support/hosting.ts"
import { hostingNode, makeHostedProject } from "../../support/hosting-node.ts"

const { Node } = hostingNode("old-files")

const home = { "index.html": "<!doctype html><p>Home", "404.html": "<p>Lost" }
const first = "/assets/level-DiwrgTda.js"
const second = "/assets/level-Bq3XyZ9a.js"
const navigation = { accept: "text/html,application/xhtml+xml" }

layer(Node, { timeout: "60 seconds" })("files of a hosted app", (it) => {
  it.effect("serves hashed files of a version for seven days after it was live", () =>
    Effect.gen(function* () {
      const { open, openVersion, sql, target } = yield* makeHostedProject()
      yield* deploy(target, { ...home, [first.slice(1)]: "one", "plain.js": "old" })
      const { version } = yield* deploy(target, { ...home, [second.slice(1)]: "two" })
      const old = yield* open(first)
      assert.deepStrictEqual([old.status, old.body.toString()], [200, "one"])
      assert.strictEqual(old.headers["cache-control"], "public, max-age=31536000, immutable")
      assert.strictEqual((yield* open(second)).body.toString(), "two")
      assert.strictEqual((yield* open("/plain.js")).status, 404)
      assert.strictEqual((yield* openVersion(Number(version))(first)).status, 404)
      const age = (seconds: number) =>
        sql`
          update deployments set deactivated_at = deactivated_at - ${seconds} * interval '1 second'
          where deactivated_at is not null`
      yield* age(hosting.staleDays * 86_400)
      assert.strictEqual((yield* open(first)).status, 200)
      yield* age(1)
      assert.strictEqual((yield* open(first)).status, 404)
    })
  )

  it.effect("serves no file of a version that has been deleted, or was never live", () =>
    Effect.gen(function* () {
      const { open, sql, target } = yield* makeHostedProject()
      yield* deploy(target, { ...home, [first.slice(1)]: "one" })
      yield* deploy(target, { ...home, [second.slice(1)]: "never" }, { activate: false })
      yield* deploy(target, home)
      assert.strictEqual((yield* open(first)).body.toString(), "one")
      assert.strictEqual((yield* open(second)).status, 404)
      const listed = yield* call(target, "GET", "deployments")
      const id = String(at(listed.body, "deployments", 2, "deploymentId"))
      yield* sql`delete from deployments where id = ${id}`
      assert.strictEqual((yield* open(first)).status, 404)
    })
  )

  it.effect("answers for a missing asset with text, never with a page", () =>
    Effect.gen(function* () {
      const { open, target } = yield* makeHostedProject()
      yield* deploy(target, home)
      for (const [path, headers] of [
        [first, {}],
        [first, navigation],
        ["/app.js", { accept: "*/*" }],
        ["/art/hero.png", {}]
      ] as const) {
        const missing = yield* open(path, headers)
        assert.strictEqual(missing.status, 404, path)
        assert.strictEqual(missing.headers["content-type"], "text/plain; charset=utf-8", path)
        assert.strictEqual(missing.headers["cache-control"], "no-store", path)
      }
      const page = yield* open("/level/3", navigation)
      assert.deepStrictEqual([page.status, page.body.toString()], [404, "<p>Lost"])
    })
  )

  it.effect("decodes a compressed upload for a client that cannot read the compression", () =>
    Effect.gen(function* () {
      const { open, target } = yield* makeHostedProject()
      const wasm = Buffer.from("wasm ".repeat(50_000))
      yield* deploy(target, {
        ...home,
        "game.wasm.br": new Uint8Array(brotliCompressSync(wasm)),
        "game.data.gz": new Uint8Array(gzipSync(wasm)),
        "web.data.unityweb": new Uint8Array(gzipSync(wasm))
      })
      for (const [path, encoding] of [
        ["/game.wasm.br", "br"],
        ["/game.data.gz", "gzip"]
      ] as const) {
        const encoded = yield* open(path, { "accept-encoding": "gzip, br", range: "bytes=0-9" })
        assert.deepStrictEqual(
          [encoded.status, encoded.headers["content-encoding"], encoded.headers["vary"]],
          [200, encoding, "Accept-Encoding"]
        )
        assert.isUndefined(encoded.headers["accept-ranges"])
        assert.isBelow(encoded.body.length, 1000)
        for (const headers of [
          {},
          { "accept-encoding": `${encoding};q=0` },
          { range: "bytes=5-9" }
        ]) {
          const decoded = yield* open(path, headers)
          assert.strictEqual(decoded.status, 200)
          assert.isUndefined(decoded.headers["content-encoding"])
          assert.strictEqual(decoded.headers["vary"], "Accept-Encoding")
          assert.notStrictEqual(decoded.headers["etag"], encoded.headers["etag"])
          assert.isTrue(decoded.body.equals(wasm))
        }
      }
      // The loader of this format decodes what the browser does not.
      const raw = yield* open("/web.data.unityweb")
      assert.isUndefined(raw.headers["content-encoding"])
      assert.isTrue(raw.body.equals(gzipSync(wasm)))
    })
  )
})

describe("a file that decodes to more bytes than the limit", () => {
  it.live("ends the response at the limit, and reports the fault", () =>
    Effect.gen(function* () {
      const path = join(yield* Effect.promise(() => mkdtemp(join(tmpdir(), "svc-bomb-"))), "b.gz")
      yield* Effect.addFinalizer(() => Effect.promise(() => rm(path, { force: true })))
      yield* Effect.promise(() => writeFile(path, gzipSync(Buffer.alloc(4_000_000))))
      let passed = 0
      const outcome = Promise.withResolvers<unknown>()
      const server = createServer((request, response) => {
        const onBytes = (bytes: number): void => void (passed += bytes)
        sendDecoded(path, "gzip", { request, response }, onBytes, 1_000_000).then(
          () => outcome.resolve("sent"),
          outcome.resolve
        )
      })
      server.listen(0, "127.0.0.1")
      yield* Effect.promise(() => once(server, "listening"))
      yield* Effect.addFinalizer(() => Effect.sync(() => server.close()))
      const address = server.address()
      const port = typeof address === "object" ? address?.port : 0
      const answer = yield* Effect.promise(() =>
        fetch(`http://127.0.0.1:${port}`)
          .then((response) => response.arrayBuffer())
          .catch(String)
      )
      assert.strictEqual(typeof answer, "string")
      assert.match(
        String(yield* Effect.promise(() => outcome.promise)),
        /decodes to too many bytes/
      )
      assert.isBelow(passed, 1_200_000)
    }).pipe(Effect.scoped)
  )
})
