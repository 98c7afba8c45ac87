/** Files of apps on cards: what the renderer may read, and how much time each environment has. */
import { NodeServices } from "@effect/platform-node"
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, FileSystem, Layer } from "effect"
import { shareCards } from "#rpc/share/limits"
import { at, request, type TestTarget } from "#testing/players"
import {
  FailedAssets,
  fontProblem,
  pictureProblem
} from "#server/features/share/cards/asset-checks"
import { DrawBudget } from "#server/features/share/cards/draw-budget"
import {
  addressOfNode,
  configure,
  makeTenants,
  nodeWith,
  SharedDatabase,
  type Tenant
} from "../../support/http-stack.ts"
import { deploy } from "../../support/hosting.ts"

const png = (width: number, height: number): Uint8Array => {
  const bytes = new Uint8Array(33)
  bytes.set([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13, 0x49, 0x48, 0x44, 0x52])
  const view = new DataView(bytes.buffer)
  view.setUint32(16, width)
  view.setUint32(20, height)
  return bytes
}

/** A JPEG with an EXIF segment and fill bytes before its frame. */
const jpeg = (width: number, height: number): Uint8Array => {
  const [high, low] = [(n: number) => n >> 8, (n: number) => n & 255]
  const frame = [0xff, 0xc2, 0, 17, 8, high(height), low(height), high(width), low(width), 3]
  return new Uint8Array([0xff, 0xd8, 0xff, 0xe1, 0, 4, 9, 9, 0xff, ...frame, ...Array(9).fill(0)])
}

const text = (content: string) => new TextEncoder().encode(content)

describe("files of an app on its cards", () => {
  it("lets PNG and JPEG of bounded size through, by their first bytes", () => {
    for (const picture of [png, jpeg]) {
      assert.isUndefined(pictureProblem(picture(1200, 600)))
      assert.isUndefined(pictureProblem(picture(4096, 4096)))
      assert.match(pictureProblem(picture(4097, 4096)) ?? "", /4097 by 4096 pixels/)
      assert.match(pictureProblem(picture(8193, 1)) ?? "", /8193 by 1 pixels/)
      assert.match(pictureProblem(picture(0, 600)) ?? "", /no size/)
    }
    assert.match(pictureProblem(png(0xffffffff, 0xffffffff)) ?? "", /pixels/)
  })

  it("refuses SVG, WebP, truncated and endless pictures", () => {
    const webp = text("RIFF\u0000\u0000\u0000\u0000WEBPVP8 ")
    const noFrame = new Uint8Array(100).fill(0xff).with(1, 0xd8)
    const zeroLengths = new Uint8Array([0xff, 0xd8, 0xff, 0xe1, 0, 0, 0xff, 0xe1, 0, 0, 0xff, 0xe1])
    const svg = text('<svg xmlns="http://www.w3.org/2000/svg"/>')
    const cut = [png(9, 9).slice(0, 20), jpeg(9, 9).slice(0, 12)]
    for (const bytes of [svg, webp, noFrame, zeroLengths, new Uint8Array(), ...cut]) {
      assert.match(pictureProblem(bytes) ?? "", /neither a PNG nor a JPEG/)
    }
  })

  it("lets TTF and OTF through, and refuses compressed fonts", () => {
    assert.isUndefined(fontProblem(new Uint8Array([0, 1, 0, 0, 0, 12])))
    assert.isUndefined(fontProblem(text("OTTO....")))
    for (const font of [text("wOF2...."), text("wOFF...."), text("OT")]) {
      assert.match(fontProblem(font) ?? "", /neither a TTF nor an OTF/)
    }
  })

  it("remembers a bounded number of failed files for an hour", () => {
    const failed = new FailedAssets()
    failed.add("first", 0)
    assert.isTrue(failed.has("first", shareCards.failedAssetSeconds * 1000 - 1))
    assert.isFalse(failed.has("first", shareCards.failedAssetSeconds * 1000))
    for (let index = 0; index < shareCards.failedAssetsMax; index += 1) failed.add(`${index}`, 1)
    assert.isFalse(failed.has("first", 1))
    assert.isTrue(failed.has("0", 1))
  })
})

describe("the time for drawing", () => {
  it("closes an environment that used more than its time while others draw, and only it", () => {
    const budget = new DrawBudget()
    budget.use("greedy", shareCards.drawBudgetMillis + 1000, 0)
    assert.isTrue(budget.isOpen("greedy", 0), "nobody else draws")
    budget.use("modest", 100, 1)
    assert.isFalse(budget.isOpen("greedy", 1))
    assert.isTrue(budget.isOpen("modest", 1))
    assert.isTrue(budget.isOpen("greedy", shareCards.waitMillis + 1), "the others have stopped")
  })

  it("gives time back at its share", () => {
    const budget = new DrawBudget()
    budget.use("greedy", shareCards.drawBudgetMillis + 1000, 0)
    const back = 1000 / shareCards.drawBudgetShare
    budget.use("modest", 100, back)
    assert.isFalse(budget.isOpen("greedy", back - 100))
    assert.isTrue(budget.isOpen("greedy", back + 100))
  })
})

const Hosted = Layer.unwrap(
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const folder = yield* fs.makeTempDirectoryScoped({ prefix: "card-assets-" })
    const env = { SVC_DATA_DIR: folder, SVC_HOSTING_DOMAIN: "apps.example.net" }
    return nodeWith(env).pipe(Layer.provideMerge(SharedDatabase.layer))
  })
).pipe(Layer.provideMerge(NodeServices.layer))

/** The address of the card of an app, on the node of this context. */
const imageOf = Effect.fnUntraced(function* ({ publishableKey: key }: Tenant) {
  const url = yield* addressOfNode
  const tags = yield* request(`${url}/v1/share/tags`, { headers: { "x-svc-key": key } })
  return `${url}${new URL(String(at(tags.body, "defaultImage"))).pathname}`
})

const pictureAt = (url: string) =>
  Effect.promise(async () => {
    const response = await fetch(url)
    return { status: response.status, bytes: await response.bytes() }
  })

layer(Hosted)("the background of a card", (it) => {
  it.effect("draws no SVG as a background, and warns of it", () =>
    Effect.gen(function* () {
      const url = yield* addressOfNode
      const { development } = yield* makeTenants
      const target: TestTarget = { url, ...development }
      const images = { enabled: true, background: "card.svg" }
      yield* configure(development, { features: { hosting: true }, share: { images } })
      const image = yield* imageOf(development)
      const builtIn = yield* pictureAt(image)
      const svg =
        '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><rect width="9" height="9" fill="red"/></svg>'
      yield* deploy(target, { "index.html": "<p>", "card.svg": svg })
      for (const attempt of [1, 2]) {
        const { bytes, status } = yield* pictureAt(image)
        assert.strictEqual(status, 200)
        assert.isTrue(Buffer.from(bytes).equals(Buffer.from(builtIn.bytes)), `${attempt}`)
      }
      const pushed = yield* request(`${url}/v1/config`, {
        method: "PUT",
        headers: { "x-svc-key": development.secretKey },
        body: { features: { hosting: true }, share: { images: { ...images, title: "Other" } } }
      })
      assert.match(String(at(pushed.body, "warnings", 0, "message")), /neither a PNG nor a JPEG/)
    })
  )
})
