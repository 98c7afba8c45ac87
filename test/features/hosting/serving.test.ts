/** Hosted apps by their host name: files, headers, ranges, pages, and what does not answer there. */
import { get } from "node:http"
import { brotliDecompressSync, gunzipSync } from "node:zlib"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { at, configure, request } from "#testing/players"
import { type AppFiles, call, deploy, sha256, visit } from "../../support/hosting.ts"
import { hostingNode, makeHostedProject } from "../../support/hosting-node.ts"

const { Node } = hostingNode("serving")

const navigation = { accept: "text/html,application/xhtml+xml" }

const script = `export const text = "${"hello ".repeat(2000)}"`

const isolated = '{ "crossOriginIsolation": true }'

const files: AppFiles = {
  "index.html": "<!doctype html><p>Home",
  "about.html": "<!doctype html><p>About",
  "docs/index.html": "<!doctype html><p>Docs",
  "assets/index-DiwrgTda.js": script,
  "game.wasm.br": new Uint8Array([1, 2, 3]),
  "Build/web.data.unityweb": new Uint8Array([0x1f, 0x8b, 8, 0]),
  "big.bin": new Uint8Array(Buffer.alloc(400_000, "0123456789"))
}

layer(Node, { timeout: "60 seconds" })("a hosted app", (it) => {
  it.effect("serves the live version by the rules of paths", () =>
    Effect.gen(function* () {
      const { open, target } = yield* makeHostedProject()
      yield* deploy(target, files)
      const bodies = { "/": "Home", "/about": "About", "/about.html": "About", "/docs/": "Docs" }
      for (const [path, text] of Object.entries(bodies)) {
        const page = yield* open(path)
        assert.deepStrictEqual([path, page.status], [path, 200])
        assert.include(page.body.toString(), text)
        assert.strictEqual(page.headers["content-type"], "text/html; charset=utf-8")
        assert.strictEqual(page.headers["cache-control"], "no-cache")
        assert.strictEqual(page.headers["x-content-type-options"], "nosniff")
        assert.isUndefined(page.headers["set-cookie"])
      }
      const folder = yield* open("/docs")
      assert.deepStrictEqual([folder.status, folder.headers.location], [302, "/docs/"])
      assert.include((yield* open("/level/3", navigation)).body.toString(), "Home")
      assert.strictEqual((yield* open("/level/3.png")).status, 404)
      for (const path of ["/robots.txt", "/favicon.ico", "/ads.txt", "/a/sitemap.xml", "/x.PNG"]) {
        const { body, status } = yield* open(path, navigation)
        assert.strictEqual(status, 404, path)
        assert.notInclude(body.toString(), "Home")
      }
      for (const path of ["/users/jane.doe", "/v1.2", "/@ada.example.com", "/robots.txt/"]) {
        assert.include((yield* open(path, navigation)).body.toString(), "Home", path)
      }
      for (const path of ["/%zz", "/..%2f..%2fetc/passwd", "/%00", "/a%5cb", "/.svc/x"]) {
        assert.strictEqual((yield* open(path)).status, 404, path)
      }
      // Functions answer there, and are off.
      assert.strictEqual((yield* open("/.fn/x")).status, 403)
      yield* deploy(target, { ...files, "404.html": "Lost" })
      const lost = yield* open("/level/3", navigation)
      assert.deepStrictEqual([lost.status, lost.body.toString()], [404, "Lost"])
    })
  )

  it.effect("sends compressed forms, entity tags, ranges and types of game engines", () =>
    Effect.gen(function* () {
      const { open, target } = yield* makeHostedProject()
      yield* deploy(target, files)
      const asset = "/assets/index-DiwrgTda.js"
      const plain = yield* open(asset)
      assert.strictEqual(plain.headers["cache-control"], "public, max-age=31536000, immutable")
      assert.strictEqual(plain.headers["etag"], `"${sha256(script)}"`)
      assert.strictEqual(plain.headers["vary"], "Accept-Encoding")
      assert.strictEqual(plain.body.toString(), script)
      const brotli = yield* open(asset, { "accept-encoding": "gzip, br" })
      assert.strictEqual(brotli.headers["content-encoding"], "br")
      assert.strictEqual(brotliDecompressSync(brotli.body).toString(), script)
      const gzip = yield* open(asset, { "accept-encoding": "gzip, br;q=0" })
      assert.strictEqual(gzip.headers["content-encoding"], "gzip")
      assert.strictEqual(gunzipSync(gzip.body).toString(), script)
      for (const tag of [`"${sha256(script)}"`, `W/"${sha256(script)}"`, "*"]) {
        const same = yield* open(asset, { "if-none-match": tag })
        assert.deepStrictEqual([same.status, same.body.length], [304, 0])
      }
      const head = yield* open(asset, {}, "HEAD")
      assert.deepStrictEqual(
        [head.status, head.body.length, head.headers["content-length"]],
        [200, 0, `${script.length}`]
      )
      const unity = yield* open("/Build/web.data.unityweb", {
        "accept-encoding": "gzip"
      })
      assert.strictEqual(unity.headers["content-encoding"], "gzip")
      assert.strictEqual(unity.headers["content-type"], "application/octet-stream")
      const wasm = yield* open("/game.wasm.br", { "accept-encoding": "br" })
      assert.strictEqual(wasm.headers["content-encoding"], "br")
      assert.strictEqual(wasm.headers["content-type"], "application/wasm")
    })
  )

  it.effect("says with 304 what a cache updates, and nothing of the body", () =>
    Effect.gen(function* () {
      const { open, target } = yield* makeHostedProject()
      const percent = { "a%20b.txt": "percent", "a b.txt": "space", "é.txt": "accent" }
      yield* deploy(target, { ...files, ...percent, "svc.hosting.json": isolated })
      const asset = "/assets/index-DiwrgTda.js"
      const tag = `"${sha256(script)}"`
      for (const conditional of [tag, `"other", W/${tag}`, "*"]) {
        const { headers, status } = yield* open(asset, { "if-none-match": conditional })
        assert.strictEqual(status, 304, conditional)
        assert.strictEqual(headers["etag"], tag)
        assert.strictEqual(headers["cache-control"], "public, max-age=31536000, immutable")
        assert.strictEqual(headers["vary"], "Accept-Encoding")
        assert.strictEqual(headers["x-robots-tag"], "noindex")
        assert.strictEqual(headers["cross-origin-embedder-policy"], "require-corp")
        assert.isDefined(headers["date"])
        for (const name of ["content-length", "content-type", "content-encoding"]) {
          assert.isUndefined(headers[name], name)
        }
      }
      const brotli = { "if-none-match": tag, "accept-encoding": "br" }
      assert.strictEqual((yield* open(asset, brotli)).headers["etag"], `W/${tag}`)
      for (const other of ['"other"', tag.slice(0, -1), tag.slice(1)]) {
        const changed = yield* open(asset, { "if-none-match": other })
        assert.deepStrictEqual([other, changed.status], [other, 200])
      }
      const bodyOf = (path: string) => Effect.map(open(path), ({ body }) => body.toString())
      assert.strictEqual(yield* bodyOf("/a%20b.txt"), "space")
      assert.strictEqual(yield* bodyOf("/a%2520b.txt"), "percent")
      assert.strictEqual(yield* bodyOf("/e%CC%81.txt"), "accent")
      assert.strictEqual(yield* bodyOf(`${asset}?v=2`), script)
    })
  )

  it.effect("sends parts of files, from memory and from the disk", () =>
    Effect.gen(function* () {
      const { open, target } = yield* makeHostedProject()
      yield* deploy(target, files)
      const big = Buffer.alloc(400_000, "0123456789")
      const parts: Readonly<Record<string, readonly [number, string, string?]>> = {
        "bytes=0-9": [206, "0123456789", "bytes 0-9/400000"],
        "bytes=399995-": [206, "56789", "bytes 399995-399999/400000"],
        "bytes=-3": [206, "789", "bytes 399997-399999/400000"],
        "bytes=399999-999999": [206, "9", "bytes 399999-399999/400000"],
        "bytes=400000-": [416, "", "bytes */400000"],
        "bytes=0-1,3-4": [200, big.toString()],
        "lines=1-2": [200, big.toString()]
      }
      for (const [range, [status, body, contentRange]] of Object.entries(parts)) {
        const part = yield* open("/big.bin", { range })
        assert.deepStrictEqual([range, part.status], [range, status])
        assert.strictEqual(part.headers["content-range"], contentRange)
        assert.isTrue(part.body.equals(Buffer.from(body)), range)
      }
      const changed = yield* open("/big.bin", { range: "bytes=0-9", "if-range": '"other"' })
      assert.deepStrictEqual([changed.status, changed.body.length], [200, 400_000])
      const small = yield* open("/index.html", { range: "bytes=0-8" })
      assert.deepStrictEqual([small.status, small.body.toString()], [206, "<!doctype"])
      assert.strictEqual((yield* open("/index.html", {}, "POST")).status, 405)
    })
  )

  it.effect(
    "sends each of many clients its own part, though others leave in the middle",
    () =>
      Effect.gen(function* () {
        const { host, open, target, url } = yield* makeHostedProject()
        const numbers = new Uint8Array(Uint32Array.from({ length: 500_000 }, (_, i) => i).buffer)
        yield* deploy(target, { "big.bin": numbers })
        const rangeOf = (client: number) => ({
          first: client * 9347,
          last: client * 9347 + 900_000
        })
        const read = Effect.fnUntraced(function* (client: number) {
          const { first, last } = rangeOf(client)
          const part = yield* open("/big.bin", { range: `bytes=${first}-${last}` })
          assert.isTrue(part.body.equals(numbers.subarray(first, last + 1)), `client ${client}`)
        })
        const leave = (client: number) =>
          Effect.callback<void>((resume) => {
            const { first, last } = rangeOf(client)
            const headers = { host, range: `bytes=${first}-${last}` }
            const { port } = new URL(url)
            get(
              { port, host: "127.0.0.1", path: "/big.bin", headers, agent: false },
              (response) => {
                response.once("data", () => response.destroy())
                response.once("close", () => resume(Effect.void))
              }
            )
          })
        const clients = Array.from({ length: 120 }, (_, client) => client)
        yield* Effect.forEach(clients, (client) => (client % 3 === 0 ? leave : read)(client), {
          concurrency: "unbounded"
        })
      }),
    { tags: "long" }
  )

  it.effect("serves each version at its own address, and a rollback at once", () =>
    Effect.gen(function* () {
      const { open, slug, target, url } = yield* makeHostedProject()
      yield* deploy(target, { "index.html": "one" })
      yield* deploy(target, { "index.html": "two" })
      assert.strictEqual((yield* open("/")).body.toString(), "two")
      yield* call(target, "POST", "deployments/1/activate")
      assert.strictEqual((yield* open("/")).body.toString(), "one")
      const second = yield* visit(url, `v2--${slug}--dev.apps.example.net`, "/")
      assert.strictEqual(second.body.toString(), "two")
      assert.strictEqual(second.headers["x-robots-tag"], "noindex")
      assert.strictEqual((yield* visit(url, `v3--${slug}--dev.apps.example.net`, "/")).status, 404)
      const { body } = yield* call(target, "GET", "hosting")
      assert.deepStrictEqual(at(body, "urls"), [`https://${slug}--dev.apps.example.net/`])
      assert.strictEqual(
        at(body, "previewUrl"),
        `https://v{version}--${slug}--dev.apps.example.net/`
      )
    })
  )

  it.effect("serves a version at once that was asked for before it was there", () =>
    Effect.gen(function* () {
      const { slug, target, url } = yield* makeHostedProject()
      const ask = visit(url, `v1--${slug}--dev.apps.example.net`, "/")
      assert.strictEqual((yield* ask).status, 404)
      yield* deploy(target, { "index.html": "one" }, { activate: false })
      assert.strictEqual((yield* ask).body.toString(), "one")
    })
  )

  it.effect("keeps the query where it adds the slash of a folder", () =>
    Effect.gen(function* () {
      const { open, target } = yield* makeHostedProject()
      yield* deploy(target, { "play/index.html": "one" })
      const locations = yield* Effect.forEach(
        ["/play", "/play?ks=AbCdEfGh12", "/play?a=b?c"],
        (path) => Effect.map(open(path), ({ headers, status }) => [status, headers.location])
      )
      assert.deepStrictEqual(locations, [
        [302, "/play/"],
        [302, "/play/?ks=AbCdEfGh12"],
        [302, "/play/?a=b?c"]
      ])
    })
  )

  it.effect("gives a page of a hosted app the base URL and the publishable key", () =>
    Effect.gen(function* () {
      const { open, target } = yield* makeHostedProject()
      const json = yield* open("/.well-known/svc.json")
      assert.deepStrictEqual(JSON.parse(json.body.toString()), {
        baseUrl: "https://play.example.com",
        publishableKey: target.publishableKey,
        environment: "development"
      })
      const text = (yield* open("/.svc/config.js")).body.toString()
      assert.include(text, target.publishableKey)
      assert.notInclude(text, target.secretKey)
    })
  )

  it.effect("shows a page where nothing is deployed, where hosting is off, and for no app", () =>
    Effect.gen(function* () {
      const { open, slug, target, url } = yield* makeHostedProject()
      const empty = yield* open("/")
      assert.strictEqual(empty.status, 404)
      assert.include(empty.body.toString(), "Nothing deployed")
      yield* deploy(target, { "index.html": "one" })
      yield* configure(target, {})
      yield* Effect.gen(function* () {
        const off = yield* open("/")
        return off.status === 404 && off.body.includes("Hosting is off")
      }).pipe(Effect.repeat({ until: (isOff) => isOff }))
      for (const label of [
        "nobody-x1y2",
        `${slug}--prod`,
        `a.${slug}`,
        "--",
        `${slug}--dev--dev`
      ]) {
        const none = yield* visit(url, `${label}.apps.example.net`, "/")
        assert.strictEqual(none.status, 404, label)
        assert.include(none.body.toString(), "No app has this address", label)
      }
    })
  )

  it.effect("serves no API on the host of a hosted app, not even by WebSocket", () =>
    Effect.gen(function* () {
      const { host, open, production, slug, target, url } = yield* makeHostedProject()
      yield* deploy(target, { "index.html": "Home" })
      for (const path of ["/v1/hosting", "/healthz", "/openapi.json", "/docs", "/dev/mail"]) {
        const page = yield* open(path, { "x-svc-key": target.secretKey })
        assert.deepStrictEqual([path, page.status], [path, 404])
      }
      const other = yield* visit(url, `${slug}.APPS.example.net.:80`, "/v1/platform/info")
      assert.include(other.body.toString(), "Hosting is off")
      assert.isDefined(production)
      const status = yield* Effect.callback<number>((resume) => {
        get(`${url}/v1/realtime`, {
          headers: {
            host,
            connection: "Upgrade",
            upgrade: "websocket",
            "sec-websocket-version": "13",
            "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ=="
          }
        })
          .on("response", (response) => {
            response.resume()
            resume(Effect.succeed(response.statusCode ?? 0))
          })
          .on("upgrade", (_, socket) => {
            socket.destroy()
            resume(Effect.succeed(101))
          })
      })
      assert.strictEqual(status, 404)
    })
  )

  it.effect(
    "lets a hosted app call the API from the app's own origin, whatever the config allows",
    () =>
      Effect.gen(function* () {
        const { slug, target, url } = yield* makeHostedProject()
        yield* configure(target, {
          features: { hosting: true },
          web: { allowedOrigins: ["https://game.example.org"] }
        })
        const statusOf = (origin: string) =>
          Effect.map(
            request(`${url}/v1/gamedata/definitions`, {
              headers: { "x-svc-key": target.publishableKey, origin }
            }),
            ({ status }) => status
          )
        const own = `${slug}--dev.apps.example.net`
        assert.strictEqual(yield* statusOf(`https://${own}`), 200)
        assert.strictEqual(yield* statusOf(`https://v7--${own}`), 200)
        const foreign = [
          `http://${own}`,
          `https://${own}:444`,
          `https://${slug}.apps.example.net`,
          `https://${own}.evil.example`,
          "https://apps.example.net"
        ]
        for (const origin of foreign) assert.strictEqual(yield* statusOf(origin), 403, origin)
      })
  )

  it.effect("sends COOP and COEP where the deployment asks for them", () =>
    Effect.gen(function* () {
      const { open, target } = yield* makeHostedProject()
      yield* deploy(target, {
        "index.html": "Home",
        "svc.hosting.json": '{ "crossOriginIsolation": true, "spa": false }'
      })
      const { headers } = yield* open("/")
      assert.strictEqual(headers["cross-origin-opener-policy"], "same-origin")
      assert.strictEqual(headers["cross-origin-embedder-policy"], "require-corp")
      assert.strictEqual((yield* open("/svc.hosting.json")).status, 404)
      assert.strictEqual((yield* open("/level/3", navigation)).status, 404)
    })
  )
})
