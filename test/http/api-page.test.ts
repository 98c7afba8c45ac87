/** The API page: small, whole, and without any other request, also in a browser and on a phone. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { at, request } from "#testing/players"
import { addressOfNode, nodeWith, SharedDatabase } from "../support/http-stack.ts"
import { Chromium, installed, needsChromium, newVisitor } from "../support/client/chromium.ts"

const Node = nodeWith().pipe(Layer.provideMerge(SharedDatabase.layer))
const maxBytes = 340_000
const gzipMaxBytes = 50_000

const page = Effect.gen(function* () {
  const url = `${yield* addressOfNode}/docs/api`
  const { body, headers } = yield* request(url, { headers: { "accept-encoding": "identity" } })
  return { url, html: String(body), headers }
})

layer(Node)("the API page", (it) => {
  it.effect("serves the API page in less than 340 KB, and in less than 50 KB with gzip", () =>
    Effect.gen(function* () {
      const { headers, html, url } = yield* page
      assert.isBelow(Buffer.byteLength(html), maxBytes)
      assert.strictEqual(headers.get("content-encoding"), null)
      const small = yield* request(url, { headers: { "accept-encoding": "gzip" } })
      assert.isBelow(Number(small.headers.get("content-length")), gzipMaxBytes)
      assert.strictEqual(small.body, html)
    })
  )

  it.effect("shows every endpoint and schema, and no link leads nowhere", () =>
    Effect.gen(function* () {
      const { html } = yield* page
      const openapi = yield* request(`${yield* addressOfNode}/openapi.json`)
      const ids = new Set(Array.from(html.matchAll(/ id="([^"]+)"/g), ([, id]) => id))
      for (const methods of Object.values(Object(at(openapi.body, "paths")))) {
        for (const operation of Object.values(Object(methods))) {
          assert.isTrue(ids.has(String(at(operation, "operationId"))))
        }
      }
      for (const name of Object.keys(Object(at(openapi.body, "components", "schemas")))) {
        assert.isTrue(ids.has(`schema-${name}`), name)
      }
      for (const [, target = ""] of html.matchAll(/href="#([^"]+)"/g)) {
        assert.isTrue(ids.has(target), target)
      }
    })
  )
})

const Browser = Layer.merge(Node, Chromium.layer)

layer(Browser)(`the API page in a browser${needsChromium}`, (it) => {
  it.effect.skipIf(!installed)(
    "works offline on a phone: opens what a link names, and filters",
    () =>
      Effect.gen(function* () {
        const { html } = yield* page
        const visitor = yield* newVisitor({ viewport: { width: 390, height: 844 } })
        const seen = yield* Effect.promise(async () => {
          const requests: Array<string> = []
          const tab = await visitor.newPage()
          tab.on("request", (sent) => requests.push(sent.url()))
          tab.on("console", (line) => requests.push(line.text()))
          await tab.route("**", (route) => route.fulfill({ body: html, contentType: "text/html" }))
          await tab.goto("http://docs.test/docs/api#savesWrite")
          const isOpen = await tab
            .locator("#savesWrite")
            .evaluate((block) => block.matches("[open]"))
          const width = await tab.evaluate(() => document.documentElement.scrollWidth)
          const scrolls = await tab.evaluate(
            () => document.querySelectorAll(":is(pre, .wide):not([tabindex='0'])").length === 0
          )
          await tab.fill("input[type=search]", "v1/saves/{key} write")
          const visible = await tab.locator("main details:visible").count()
          return { requests, isOpen, width, scrolls, visible }
        })
        assert.deepStrictEqual(seen, {
          requests: ["http://docs.test/docs/api"],
          isOpen: true,
          width: 390,
          scrolls: true,
          visible: 1
        })
      })
  )

  it.effect.skipIf(!installed)("runs its script under its own content security policy", () =>
    Effect.gen(function* () {
      const { url } = yield* page
      const visitor = yield* newVisitor()
      const lines = yield* Effect.promise(async () => {
        const logged: Array<string> = []
        const tab = await visitor.newPage()
        tab.on("console", (line) => logged.push(line.text()))
        await tab.goto(`${url}#schema-Save`)
        await tab.waitForSelector("#schema-Save[open] pre")
        return logged.filter((line) => !line.includes("favicon"))
      })
      assert.deepStrictEqual(lines, [])
    })
  )
})
