/**
 * A guest in Chromium whose network is cut between request and answer of a refresh: in the page, before a
 * reload and before a crash of the page. The guest stays the same.
 *
 * @module-tag long
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import type { BrowserContext, Page } from "playwright-core"
import type { Client } from "#client/client"
import { TestApp } from "#testing/app"
import { Chromium, installed, needsChromium, newVisitor } from "../support/client/chromium.ts"
import { type CuttingProxy, startCuttingProxy } from "../support/client/cutting-proxy.ts"
import { startServer } from "../support/local-server.ts"
import { AppLive } from "../support/service.ts"

declare global {
  /** The client of the game's page. */
  interface Window {
    readonly client: Client
  }
}

const rounds = 200
const refreshPath = "/v1/auth/refresh"

const gameOf = (baseUrl: string, key: string) => `<!doctype html><title>Game</title>
<script type="module">
import { createClient } from "${baseUrl}/sdk/client.js"
window.client = createClient({ baseUrl: "${baseUrl}", key: "${key}" })
document.title = "Ready"
</script>`

const ready = (page: Page) => page.waitForFunction(() => document.title === "Ready")

/** A page whose stored access token has expired. */
const openExpired = async (visitor: BrowserContext, page: Page, url: string): Promise<Page> => {
  const open = page.isClosed() ? await visitor.newPage() : page
  await open.goto(url)
  await ready(open)
  await open.evaluate(() => {
    for (const [name, text] of Object.entries(localStorage)) {
      localStorage.setItem(name, JSON.stringify({ ...JSON.parse(text), expiresAt: 0 }))
    }
  })
  await open.reload()
  await ready(open)
  return open
}

const accessToken = (page: Page) =>
  page.evaluate(() => window.client.sessions.accessToken().then(() => "ok", String))

/** What happens between request and answer. */
const cuts: Readonly<
  Record<string, (page: Page, proxy: CuttingProxy, visitor: BrowserContext) => Promise<Page>>
> = {
  "one answer is lost": async (page, proxy) => {
    proxy.lose(refreshPath, 1)
    // Chromium itself sends a request again on a connection that it used before.
    assert.strictEqual(await accessToken(page), "ok")
    return page
  },
  "all answers are lost": async (page, proxy) => {
    proxy.lose(refreshPath, Number.POSITIVE_INFINITY)
    assert.include(await accessToken(page), "ClientError")
    return page
  },
  "the page reloads": async (page, proxy) => {
    proxy.lose(refreshPath, Number.POSITIVE_INFINITY)
    const lost = proxy.nextLost()
    await page.evaluate(() => void window.client.sessions.accessToken().catch(() => undefined))
    await lost
    proxy.lose(refreshPath, 0)
    await page.reload()
    await ready(page)
    return page
  },
  "the page crashes": async (page, proxy, visitor) => {
    proxy.lose(refreshPath, Number.POSITIVE_INFINITY)
    const lost = proxy.nextLost()
    await page.evaluate(() => void window.client.sessions.accessToken().catch(() => undefined))
    await lost
    const crashed = page.waitForEvent("crash")
    page.goto("chrome://crash").catch(() => undefined)
    await crashed
    await page.close()
    return visitor.newPage()
  }
}

const BrowserLive = Layer.mergeAll(Chromium.layer, AppLive)

layer(BrowserLive, { timeout: "120 seconds", excludeTestServices: true })(
  `a guest in Chromium${needsChromium}`,
  (it) => {
    it.effect.skipIf(!installed)(
      `stays the same over ${rounds} refreshes whose answers were lost`,
      () =>
        Effect.gen(function* () {
          const { publishableKey, url } = yield* TestApp
          const proxy = yield* startCuttingProxy(url)
          const { port } = yield* startServer((_, response) => {
            response.writeHead(200, { "content-type": "text/html" })
            response.end(gameOf(proxy.url, publishableKey))
          })
          const game = `http://localhost:${port}`
          const visitor = yield* newVisitor()
          yield* Effect.promise(async () => {
            let page = await visitor.newPage()
            await page.goto(game)
            await ready(page)
            const id = await page.evaluate(async () => (await window.client.sessions.ensure()).id)
            const kinds = Object.entries(cuts)
            for (let round = 0; round < rounds; round++) {
              const [kind, cut] = kinds[round % kinds.length] ?? assert.fail("no kinds")
              page = await openExpired(visitor, page, game)
              page = await cut(page, proxy, visitor)
              proxy.lose(refreshPath, 0)
              await page.goto(game)
              await ready(page)
              const me = await page.evaluate(async () => (await window.client.players.me()).id)
              assert.strictEqual(me, id, `round ${round}: ${kind}`)
            }
          })
        }),
      600_000
    )
  }
)
