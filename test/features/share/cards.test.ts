/** Card images: what they show, that equal ones are drawn once, and that a fault stays in its process. */
import type { ChildProcess } from "node:child_process"
import { subscribe, unsubscribe } from "node:diagnostics_channel"
import { get as httpGet } from "node:http"
import { NodeServices } from "@effect/platform-node"
import { assert, layer } from "@effect/vitest"
import { ConfigProvider, Effect, Exit, Fiber, FileSystem, Layer, Option } from "effect"
import { SecureRandom } from "effect/crypto"
import { TestClock } from "effect/testing"
import { at, guest, request, type TestTarget } from "#testing/players"
import { makeCardCache } from "#server/features/share/cards/cache"
import { makeRenderer } from "#server/features/share/cards/renderer"
import type { Card } from "#server/features/share/cards/layout"
import { Settings } from "#server/platform/settings/settings"
import {
  addressOfNode,
  buildAnother,
  configure,
  makeTenants,
  nodeWith,
  SharedDatabase
} from "../../support/http-stack.ts"
import { deploy } from "../../support/hosting.ts"
import { codeOf, play } from "../../support/moderation-calls.ts"

const makeFolder = Effect.flatMap(FileSystem.FileSystem, (fs) =>
  fs.makeTempDirectoryScoped({ prefix: "cards-" })
)

const Node = Layer.unwrap(
  Effect.map(makeFolder, (folder) =>
    nodeWith({ SVC_DATA_DIR: folder }).pipe(Layer.provideMerge(SharedDatabase.layer))
  )
).pipe(Layer.provideMerge(NodeServices.layer))

/** The address of the card of an app, on the node of this context. */
const imageOf = Effect.fnUntraced(function* (key: string) {
  const url = yield* addressOfNode
  const tags = yield* request(`${url}/v1/share/tags`, { headers: { "x-svc-key": key } })
  return `${url}${new URL(String(at(tags.body, "defaultImage"))).pathname}`
})

const appOf = Effect.fnUntraced(function* (share: object) {
  const url = yield* addressOfNode
  const { development } = yield* makeTenants
  yield* configure(development, { share })
  const target: TestTarget = { url, ...development }
  return { target, tenant: development, image: yield* imageOf(target.publishableKey) }
})

/** Fetches a picture; returns its head and its size. */
const fetchImage = (url: string, headers: Record<string, string> = {}) =>
  Effect.promise(async () => {
    const response = await fetch(url, { headers })
    return { status: response.status, headers: response.headers, bytes: await response.bytes() }
  })

const sizeOf = (png: Uint8Array) => {
  const view = new DataView(png.buffer, png.byteOffset)
  return { width: view.getUint32(16), height: view.getUint32(20) }
}

const card: Card = {
  title: "Star Racer",
  line: undefined,
  score: undefined,
  name: undefined,
  theme: { background: "#0f1115", accent: "#ffcc33", text: "#ffffff" }
}

const plain = { background: undefined, font: undefined }

/** Calls back for each process that the test starts. */
const onProcess = (onStart: (process: ChildProcess) => void) => {
  const listener = (message: unknown) => onStart((message as { process: ChildProcess }).process)
  return Effect.acquireRelease(
    Effect.sync(() => subscribe("child_process", listener)),
    () => Effect.sync(() => unsubscribe("child_process", listener))
  )
}

/** The processes that this test has started so far. */
const startedProcesses = Effect.gen(function* () {
  const started: Array<ChildProcess> = []
  yield* onProcess((process) => started.push(process))
  return started
})

/** The answers of all drawing processes that this test starts. */
const drawings = Effect.gen(function* () {
  const replies: Array<unknown> = []
  yield* onProcess((process) => process.on("message", (reply) => replies.push(reply)))
  return replies
})

layer(Node)("a card image", (it) => {
  it.effect("serves a cacheable card image of 1200 by 600 pixels, and 304 for its ETag", () =>
    Effect.gen(function* () {
      const { image } = yield* appOf({ images: { enabled: true } })
      const first = yield* fetchImage(image)
      assert.strictEqual(first.status, 200)
      assert.strictEqual(first.headers.get("content-type"), "image/png")
      assert.strictEqual(first.headers.get("cache-control"), "public, max-age=86400")
      assert.deepStrictEqual(sizeOf(first.bytes), { width: 1200, height: 600 })
      const etag = first.headers.get("etag") ?? ""
      const again = yield* fetchImage(image, { "if-none-match": `W/${etag}` })
      assert.strictEqual(again.status, 304)
      assert.strictEqual(again.headers.get("etag"), etag)
      assert.strictEqual(again.bytes.byteLength, 0)
    })
  )

  it.effect("shows the score and the name of a share link on its card", () =>
    Effect.gen(function* () {
      const { image, target } = yield* appOf({
        images: { enabled: true },
        links: { enabled: true }
      })
      const ada = yield* guest(target, "Ada")
      const etags = yield* Effect.forEach(
        [
          { kind: "plain" },
          { kind: "score", score: 5 },
          { kind: "challenge", score: 5 },
          { kind: "score", score: 5, showName: true }
        ],
        (link) =>
          Effect.gen(function* () {
            const { body } = yield* play(target, ada, "POST", "share/links", link)
            const id = String(at(body, "link")).slice(-10)
            const found = yield* fetchImage(image.replace("card.png", `${id}.png`))
            assert.strictEqual(found.status, 200)
            return found.headers.get("etag")
          })
      )
      assert.strictEqual(new Set(etags).size, etags.length)
      assert.strictEqual(etags[0], (yield* fetchImage(image)).headers.get("etag"))
    })
  )

  it.effect("finds no card of an unknown app or link, and refuses one while images are off", () =>
    Effect.gen(function* () {
      const { image, target, tenant } = yield* appOf({ images: { enabled: true } })
      for (const path of [
        "nobody/card.png",
        "nobody--dev/card.png",
        "--dev/card.png",
        "%00/card.png"
      ]) {
        const answer = yield* request(`${target.url}/v1/share/images/${path}`)
        assert.strictEqual(codeOf(answer), "not_found", path)
      }
      for (const name of ["0123456789.png", "x.png", "..png"]) {
        assert.strictEqual(
          codeOf(yield* request(image.replace("card.png", name))),
          "not_found",
          name
        )
      }
      yield* configure(tenant, {})
      assert.strictEqual(codeOf(yield* request(image)), "share_images_disabled")
    })
  )

  it.effect("draws a card image once for 40 clients that request it at the same time", () =>
    Effect.gen(function* () {
      const { target } = yield* appOf({ images: { enabled: true, title: "Once" } })
      const drawn = yield* drawings
      // A node that has drawn nothing before, so the test sees its first process start.
      const node = yield* buildAnother(nodeWith({ SVC_DATA_DIR: yield* makeFolder }))
      const image = yield* Effect.provideContext(imageOf(target.publishableKey), node)
      const answers = yield* Effect.forEach(Array.from({ length: 40 }), () => fetchImage(image), {
        concurrency: "unbounded"
      })
      assert.lengthOf(drawn, 1)
      for (const { bytes, status } of answers) {
        assert.strictEqual(status, 200)
        assert.deepStrictEqual(bytes, at(drawn, 0, "png"))
      }
    })
  )

  it.effect("serves a card image to those who wait when the first who requested it has gone", () =>
    Effect.gen(function* () {
      const { image } = yield* appOf({ images: { enabled: true, title: "Gone" } })
      const roundTrip = request(image.replace("card.png", "0123456789.png"))
      const gone = new AbortController()
      const first = fetch(image, { signal: gone.signal }).then(
        () => "answered",
        () => "gone"
      )
      yield* roundTrip
      const second = fetchImage(image)
      const waiting = yield* Effect.forkChild(second, { startImmediately: true })
      yield* roundTrip
      gone.abort()
      yield* Effect.promise(() => first)
      assert.strictEqual((yield* Fiber.join(waiting)).status, 200)
    })
  )
})

const millisPerDay = 86_400_000

layer(Layer.mergeAll(NodeServices.layer, SecureRandom.layerWebCrypto))("cards on disk", (it) => {
  it.effect("removes cards from the disk a day after they were drawn", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const folder = yield* fs.makeTempDirectoryScoped({ prefix: "cards-" })
      yield* TestClock.setTime(3 * millisPerDay)
      const open = makeCardCache.pipe(Effect.provide(dataDirectory(folder)))
      const cards = yield* open
      const [old, fresh] = ["a".repeat(64), "b".repeat(64)]
      yield* cards.write(old, new Uint8Array([1]))
      yield* cards.write(fresh, new Uint8Array([2]))
      // Two days ago, and now, in seconds of the test's clock.
      yield* fs.utimes(`${folder}/cards/${old}.png`, millisPerDay / 1000, millisPerDay / 1000)
      const now = (3 * millisPerDay) / 1000
      yield* fs.utimes(`${folder}/cards/${fresh}.png`, now, now)
      const again = yield* open
      yield* Effect.repeat(again.read(old), { until: Option.isNone })
      assert.isTrue(Option.isSome(yield* again.read(fresh)))
    })
  )
})

const dataDirectory = (folder: string) =>
  Settings.layer.pipe(
    Layer.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env: { SVC_DATA_DIR: folder } })))
  )

const onlyLinux = process.platform === "linux" ? "" : " (skipped: unless Linux)"

layer(NodeServices.layer)("the process that draws", (it) => {
  it.effect("draws any text of any script", () =>
    Effect.gen(function* () {
      const draw = yield* makeRenderer
      for (const title of [
        "星のレース",
        "سباق النجوم",
        "מירוץ",
        "ดาว",
        "별 경주",
        "🚀🚀🚀",
        "\u202eabc",
        "a".repeat(500)
      ]) {
        const png = yield* draw("env", { card: { ...card, title }, ...plain })
        assert.deepStrictEqual(sizeOf(png), { width: 1200, height: 600 }, title)
      }
    })
  )

  it.effect("draws Hangul and symbols with a real glyph, which some fonts only claim to have", () =>
    Effect.gen(function* () {
      const draw = yield* makeRenderer
      const drawTitle = (title: string) =>
        Effect.map(draw("env", { card: { ...card, title }, ...plain }), (png) => Buffer.from(png))
      const missing = yield* drawTitle("\u{12400}")
      for (const title of "한국어글★→∞①♪●") {
        assert.isFalse((yield* drawTitle(title)).equals(missing), title)
      }
    })
  )

  it.effect("answers a fault for a hostile font or picture, and draws the next card", () =>
    Effect.gen(function* () {
      const draw = yield* makeRenderer
      const noise = new Uint8Array(100_000).map((_, index) => (index * 7919) % 251)
      const font = yield* Effect.exit(draw("env", { card, background: undefined, font: noise }))
      assert.isTrue(Exit.isFailure(font))
      yield* Effect.exit(draw("env", { card, background: noise, font: undefined }))
      const png = yield* draw("env", { card, ...plain })
      assert.deepStrictEqual(sizeOf(png), { width: 1200, height: 600 })
    })
  )

  it.effect("replaces a drawing process that dies, and draws the card all the same", () =>
    Effect.gen(function* () {
      const started = yield* startedProcesses
      const draw = yield* makeRenderer
      yield* draw("env", { card, ...plain })
      for (const count of [1, 2]) {
        assert.strictEqual(started.length, count)
        started.at(-1)?.kill("SIGKILL")
        const png = yield* draw("env", { card, ...plain })
        assert.deepStrictEqual(sizeOf(png), { width: 1200, height: 600 })
      }
    })
  )

  it.effect.skipIf(onlyLinux !== "")(
    `gives a drawing more time while it gets no CPU${onlyLinux}`,
    () =>
      Effect.gen(function* () {
        const started = yield* startedProcesses
        const draw = yield* makeRenderer
        yield* draw("env", { card, ...plain })
        started[0]?.kill("SIGSTOP")
        const late = yield* Effect.forkChild(draw("env", { card, ...plain }))
        yield* TestClock.adjust("20 seconds")
        started[0]?.kill("SIGCONT")
        assert.deepStrictEqual(sizeOf(yield* Fiber.join(late)), { width: 1200, height: 600 })

        started[0]?.kill("SIGSTOP")
        const never = yield* Effect.forkChild(Effect.flip(draw("env", { card, ...plain })))
        yield* TestClock.adjust("30 seconds")
        assert.deepInclude(yield* Fiber.join(never), { kind: "slow" })
        yield* draw("env", { card, ...plain })
        assert.lengthOf(started, 2)
      })
  )
})

const Hosted = Layer.unwrap(
  Effect.map(makeFolder, (folder) => {
    const env = { SVC_DATA_DIR: folder, SVC_HOSTING_DOMAIN: "apps.example.net" }
    return nodeWith(env).pipe(Layer.provideMerge(SharedDatabase.layer))
  })
).pipe(Layer.provideMerge(NodeServices.layer))

/** Fetches a path of an app's host. */
const visit = (url: string, host: string, path: string) =>
  Effect.callback<{ readonly status: number; readonly bytes: Uint8Array }>((resume) => {
    const sent = httpGet(`${url}${path}`, { headers: { host }, agent: false }, (response) => {
      const pieces: Array<Buffer> = []
      response.on("data", (piece: Buffer) => pieces.push(piece))
      response.on("end", () =>
        resume(Effect.succeed({ status: response.statusCode ?? 0, bytes: Buffer.concat(pieces) }))
      )
    })
    sent.on("error", (error) => resume(Effect.die(error)))
  })

layer(Hosted)("the card of a hosted app", (it) => {
  it.effect("serves cards of a hosted app on the app's own host, where its links lead", () =>
    Effect.gen(function* () {
      const url = yield* addressOfNode
      const { development } = yield* makeTenants
      const target: TestTarget = { url, ...development }
      const share = { images: { enabled: true }, links: { enabled: true } }
      yield* configure(development, { features: { hosting: true }, share })
      yield* deploy(target, { "index.html": "<p>Game" })
      const ada = yield* guest(target, "Ada")
      const { body } = yield* play(target, ada, "POST", "share/links", {
        kind: "score",
        score: 3
      })
      const link = new URL(String(at(body, "link")))
      const { host } = link
      assert.match(host, /^test-[a-z0-9]+--dev\.apps\.example\.net$/)
      const id = link.searchParams.get("ks") ?? ""
      const image = new URL(String(at(body, "imageUrl"))).pathname
      const direct = yield* fetchImage(`${url}${image}`)
      const own = yield* visit(url, host, `/.card/${id}.png`)
      assert.strictEqual(own.status, 200)
      assert.deepStrictEqual(Buffer.from(own.bytes), Buffer.from(direct.bytes))
      assert.strictEqual((yield* visit(url, host, "/.card.png")).status, 200)
      assert.strictEqual((yield* visit(url, host, "/.card/0123456789.png")).status, 404)
    })
  )

  it.effect("draws a card with the live version's background, and without broken files", () =>
    Effect.gen(function* () {
      const url = yield* addressOfNode
      const { development } = yield* makeTenants
      const target: TestTarget = { url, ...development }
      const images = { enabled: true, background: "card.png", font: "font.ttf" }
      yield* configure(development, { features: { hosting: true }, share: { images } })
      const image = yield* imageOf(development.publishableKey)
      const builtIn = yield* fetchImage(image)
      const draw = yield* makeRenderer
      const theme = { ...card.theme, background: "#ff0000" }
      const background = new Uint8Array(yield* draw("env", { card: { ...card, theme }, ...plain }))
      yield* deploy(target, { "index.html": "<p>", "card.png": background })
      const withBackground = yield* fetchImage(image)
      assert.strictEqual(withBackground.status, 200)
      assert.notDeepEqual(Buffer.from(withBackground.bytes), Buffer.from(builtIn.bytes))
      yield* deploy(target, {
        "index.html": "<p>",
        "font.ttf": "no font",
        "card.png": "no picture"
      })
      const pushed = yield* request(`${url}/v1/config`, {
        method: "PUT",
        headers: { "x-svc-key": development.secretKey },
        body: { features: { hosting: true }, share: { images: { ...images, font: "none.ttf" } } }
      })
      const warnings = at(pushed.body, "warnings")
      assert.strictEqual(at(warnings, 0, "path"), "share.images.background")
      assert.match(String(at(warnings, 0, "message")), /cannot be used .*deploy a PNG or JPEG/)
      assert.strictEqual(at(warnings, 1, "path"), "share.images.font")
      assert.match(String(at(warnings, 1, "message")), /is not in the live version/)
      yield* configure(development, { features: { hosting: true }, share: { images } })
      const broken = yield* fetchImage(image)
      assert.strictEqual(broken.status, 200)
      assert.deepStrictEqual(Buffer.from(broken.bytes), Buffer.from(builtIn.bytes))
    })
  )
})
