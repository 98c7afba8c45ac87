/** The documentation as a site: whole, linked, safe, and usable in a browser without a network. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import type { Page } from "playwright-core"
import { at, request } from "#testing/players"
import { render } from "#server/http/docs-site/render"
import { pageFiles } from "#server/http/docs-site/sources"
import { violationsOf } from "../support/client/axe.ts"
import { Chromium, installed, needsChromium, newVisitor } from "../support/client/chromium.ts"
import { addressOfNode, nodeWith, SharedDatabase } from "../support/http-stack.ts"

const Node = nodeWith().pipe(Layer.provideMerge(SharedDatabase.layer))

const get = (path: string, headers: Record<string, string> = {}) =>
  Effect.flatMap(addressOfNode, (url) => request(`${url}${path}`, { headers }))

const idsOf = (html: string): ReadonlySet<string> =>
  new Set(Array.from(html.matchAll(/ id="([^"]+)"/g), ([, id = ""]) => id))

layer(Node)("the documentation site", (it) => {
  it.effect(
    "lists every page of the documentation site in its navigation, without a broken link",
    () =>
      Effect.gen(function* () {
        const pages = new Map<string, string>()
        for (const { url } of pageFiles()) {
          const { body, headers, status } = yield* get(url)
          assert.strictEqual(status, 200, url)
          assert.include(headers.get("content-type") ?? "", "text/html")
          pages.set(url, String(body))
        }
        assert.isAbove(pages.size, 30)
        pages.set("/docs/api", String((yield* get("/docs/api")).body))
        const home = pages.get("/docs") ?? ""
        for (const url of pages.keys()) assert.include(home, `href="${url}"`)
        for (const [url, html] of pages) {
          for (const [, target = ""] of html.matchAll(/(?:href|src)="(\/docs[^"]*|#[^"]*)"/g)) {
            const [path = "", anchor] = target.split("#")
            const page = pages.get(path === "" ? url : path)
            if (page === undefined) assert.strictEqual((yield* get(path)).status, 200, path)
            else if (anchor) assert.isTrue(idsOf(page).has(anchor), `${target} in ${url}`)
          }
          assert.notInclude(html, `.md"`, url)
        }
      })
  )

  it.effect("serves pages without inline script or style, compressed and with an entity tag", () =>
    Effect.gen(function* () {
      const { body, headers } = yield* get("/docs/guides/rooms")
      assert.notMatch(String(body), /<script>|<style|style="| on\w+="/)
      assert.include(headers.get("content-security-policy") ?? "", "script-src 'self';")
      assert.strictEqual(headers.get("content-encoding"), "gzip")
      const plain = yield* get("/docs/guides/rooms", { "accept-encoding": "identity" })
      assert.strictEqual(plain.body, body)
      const tag = headers.get("etag") ?? ""
      assert.strictEqual((yield* get("/docs/guides/rooms", { "if-none-match": tag })).status, 304)
    })
  )

  it.effect("leads addresses of files to their pages, and has a page for what there is not", () =>
    Effect.gen(function* () {
      const moved = yield* get("/docs/guides/rooms.md")
      assert.include(String(moved.body), '<h1 id="rooms">')
      const lost = yield* get("/docs/nowhere")
      assert.strictEqual(lost.status, 404)
      assert.include(String(lost.body), "<h1>Page not found</h1>")
      for (const path of ["/docs/../package.json", "/docs/%2e%2e/package.json", "/docs/README"]) {
        assert.strictEqual((yield* get(path)).status, 404, path)
      }
    })
  )

  it.effect("finds sections of pages and endpoints in the index of the documentation site", () =>
    Effect.gen(function* () {
      const { body } = yield* get("/docs/-/search.json")
      const entries = Object.values(Object(body))
      const urls = entries.map((entry) => at(entry, "url"))
      assert.include(urls, "/docs/guides/rooms#connections-that-drop")
      assert.include(urls, "/docs/api#savesWrite")
    })
  )
})

layer(Layer.empty)("Markdown of the documentation", (it) => {
  it.effect("shows tags of Markdown as text, and drops addresses with other schemes", () =>
    Effect.sync(() => {
      const { html } = render(
        "# A\n\na <b onclick=x>b</b>\n\n[x](javascript:alert) ![y](data:text/html,z)\n\n<script>1</script>",
        (link) => (link.startsWith("http") ? link : undefined)
      )
      assert.notMatch(html, /<script|<b |javascript:|data:/)
    })
  )
})

const pagesToCheck = {
  light: ["/docs", "/docs/guides/rooms", "/docs/operations/settings", "/docs/api"],
  dark: ["/docs/guides/rooms"]
}

const search = async (page: Page, words: string): Promise<string> => {
  await page.keyboard.press("/")
  await page.keyboard.type(words)
  await page.waitForSelector("#results a")
  await page.keyboard.press("ArrowDown")
  return page.evaluate(() => document.activeElement?.textContent ?? "")
}

layer(Layer.merge(Node, Chromium.layer))(`the documentation in a browser${needsChromium}`, (it) => {
  it.effect.skipIf(!installed)(
    "searches the documentation without a network, by keyboard, and opens what the search found",
    () =>
      Effect.gen(function* () {
        const url = yield* addressOfNode
        const visitor = yield* newVisitor()
        const seen = yield* Effect.promise(async () => {
          const logged: Array<string> = []
          const page = await visitor.newPage()
          page.on("console", (line) => logged.push(line.text()))
          const index = page.waitForResponse("**/search.json")
          await page.goto(`${url}/docs`)
          await (await index).finished()
          await visitor.setOffline(true)
          const found = await search(page, "connections that drop")
          await visitor.setOffline(false)
          await page.keyboard.press("Enter")
          await page.waitForURL("**/docs/guides/rooms#connections-that-drop")
          return { found, logged }
        })
        assert.match(seen.found, /^Connections that drop/)
        assert.deepStrictEqual(seen.logged, [])
      })
  )

  it.effect.skipIf(!installed)(
    "passes axe with the documentation in light and dark, and fits it on a phone",
    () =>
      Effect.gen(function* () {
        const url = yield* addressOfNode
        for (const colorScheme of ["light", "dark"] as const) {
          const visitor = yield* newVisitor({
            colorScheme,
            viewport: { width: 390, height: 844 }
          })
          const faults = yield* Effect.promise(async () => {
            const page = await visitor.newPage()
            const all: Array<string> = []
            for (const path of pagesToCheck[colorScheme]) {
              await page.goto(url + path)
              all.push(...(await violationsOf(page)).map((fault) => `${path} ${fault}`))
              const width = await page.evaluate(() => document.documentElement.scrollWidth)
              if (width > 390) all.push(`${path} is ${width} px wide`)
            }
            return all
          })
          assert.deepStrictEqual(faults, [], colorScheme)
        }
      }),
    { tags: "long" }
  )

  it.effect.skipIf(!installed)(
    "opens the menu of the documentation on a phone, and keeps the chosen theme",
    () =>
      Effect.gen(function* () {
        const url = yield* addressOfNode
        const visitor = yield* newVisitor({ viewport: { width: 390, height: 844 } })
        const seen = yield* Effect.promise(async () => {
          const page = await visitor.newPage()
          await page.goto(`${url}/docs/guides/rooms`)
          const closed = await page.locator("#pages").isVisible()
          await page.click("#menu")
          const open = await page.locator("#pages").isVisible()
          await page.click("#theme")
          await page.click("#pages >> text=Matchmaking")
          await page.waitForURL("**/matchmaking")
          const theme = await page.evaluate(() => document.documentElement.dataset["theme"])
          return { closed, open, theme }
        })
        assert.deepStrictEqual(seen, { closed: false, open: true, theme: "dark" })
      })
  )
})
