/**
 * The archive of the client, installed by npm beside frameworks and runtimes: each plays against the service
 * of the server package.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Miniflare } from "miniflare"
import type { Browser, Page } from "playwright-core"
import { inject } from "vitest"
import { loadEsbuild } from "../bench/client-sizes.ts"
import { installed, launch, needsChromium } from "../support/client/chromium.ts"
import {
  consumerAt,
  envOf,
  hasConsumers,
  makeConsumer,
  needsRegistry,
  runConsumer
} from "../support/packages/consumers.ts"
import { type Pages, servePages } from "../support/packages/pages.ts"
import { phoneGame } from "../support/packages/phone-game.ts"
import { played, typedPlay } from "../support/packages/play.ts"
import { nextGame, viteGame } from "../support/packages/react-games.ts"
import { run, type Running, start } from "../support/packages/run.ts"
import { unusedPort } from "../support/packages/service.ts"

const { baseUrl, key } = inject("service")

/** How often each kind of frame has left a page. */
const countFrames = (page: Page): ReadonlyMap<string, number> => {
  const counts = new Map<string, number>()
  page.on("websocket", (socket) =>
    socket.on("framesent", ({ payload }) => {
      const [, kind = ""] = /"t":"(\w+)"/.exec(String(payload)) ?? []
      counts.set(kind, (counts.get(kind) ?? 0) + 1)
    })
  )
  return counts
}

/** Opens a game with React and plays in it. Returns what it shows, and how often it has created a room. */
const playIn = async (browser: Browser, url: string) => {
  const context = await browser.newContext()
  const page = await context.newPage()
  const errors: Array<string> = []
  page.on("pageerror", ({ message }) => errors.push(message))
  const frames = countFrames(page)
  await page.goto(url)
  await page.locator("button#game").click()
  const round = page.locator("#game", { hasText: "Round 7" })
  await round.waitFor()
  const text = await round.textContent()
  const server = await page.evaluate(() => document.querySelector("#server")?.textContent)
  await context.close()
  assert.deepStrictEqual(errors, [])
  return { text, server, creates: frames.get("create") }
}

const canBrowse = installed && hasConsumers
const needs = installed ? needsRegistry : needsChromium

describe(`the client and its hooks in games with React${needs}`, () => {
  let browser: Browser

  beforeAll(async () => {
    if (canBrowse) browser = await launch()
  })

  afterAll(() => browser?.close())

  describe("of Vite", () => {
    let pages: Pages
    let game = ""

    beforeAll(async () => {
      if (!canBrowse) return
      game = makeConsumer(viteGame)
      pages = await servePages(game)
    })

    afterAll(() => pages?.close())

    // React shows a component of strict mode twice in development only.
    for (const [mode, shown] of Object.entries({ development: 2, production: 1 })) {
      it.skipIf(!canBrowse)(
        `enters a room once in strict mode, in a build of Vite for ${mode}`,
        async () => {
          const vite = consumerAt("vite/bin/vite.js")
          const env = { ...envOf(game), NODE_ENV: mode }
          const words = [vite, "build", "--mode", mode, "--outDir", mode, "--logLevel", "warn"]
          await run({ cwd: game, env }, process.execPath, ...words)
          const query = new URLSearchParams({ baseUrl, key })
          const { creates, text } = await playIn(
            browser,
            `${pages.url}/${mode}/index.html?${query}`
          )
          assert.strictEqual(text, `Round 7, players 1, shown ${shown}`)
          assert.strictEqual(creates, 1)
        }
      )
    }
  })

  it.skipIf(!canBrowse)(
    "plays in a server component and in a client component of Next",
    async () => {
      const game = makeConsumer(nextGame)
      const next = consumerAt("next/dist/bin/next")
      await runConsumer(game, process.execPath, next, "build")
      const port = await unusedPort()
      const env = { ...envOf(game), GAME_URL: baseUrl, GAME_KEY: key }
      const words = [next, "start", "--hostname", "127.0.0.1", "--port", String(port)]
      const server: Running = await start(
        { cwd: game, env },
        "Ready in",
        process.execPath,
        ...words
      )
      try {
        const shown = await playIn(browser, `http://127.0.0.1:${port}/`)
        assert.deepStrictEqual(shown, {
          text: "Round 7, players 1, shown 1",
          server: "Ada, players 1",
          creates: 1
        })
      } finally {
        await server.stop()
      }
    }
  )
})

describe.skipIf(!hasConsumers)(`the client in other runtimes than Node${needsRegistry}`, () => {
  const module = `{ "type": "module" }`

  it("plays in Bun, which loads it by import and by require", async () => {
    const program = `
      import { play } from "./play.ts"
      const [, , baseUrl = "", key = ""] = process.argv
      const { memoryStorage } = require("@player-backend/client")
      console.log(await play(baseUrl, key, memoryStorage()))`
    const game = makeConsumer({ "package.json": module, "play.ts": typedPlay, "game.ts": program })
    const output = await runConsumer(game, consumerAt(".bin/bun"), "run", "game.ts", baseUrl, key)
    assert.strictEqual(output.trim(), played)
  })

  it("plays in Deno, which checks its types, with leave to use the network only", async () => {
    const program = `
      import { play } from "./play.ts"
      const [baseUrl = "", key = ""] = Deno.args
      console.log(await play(baseUrl, key))`
    const game = makeConsumer({ "package.json": module, "play.ts": typedPlay, "game.ts": program })
    const deno = consumerAt("deno/deno")
    await runConsumer(game, deno, "check", "game.ts")
    const words = ["run", "--no-prompt", "--allow-net", "game.ts", baseUrl, key]
    assert.strictEqual((await runConsumer(game, deno, ...words)).trim(), played)
  })

  it("plays in a worker of workerd, for one request after the other", async () => {
    const program = `
      import { play } from "./play.ts"
      export default {
        fetch: async (_: Request, { baseUrl, key }: { baseUrl: string; key: string }) =>
          new Response(await play(baseUrl, key).catch(String))
      }`
    const game = makeConsumer({ "play.ts": typedPlay, "worker.ts": program })
    const { build } = await loadEsbuild()
    await build({
      absWorkingDir: game,
      entryPoints: ["worker.ts"],
      outfile: "worker.js",
      bundle: true,
      format: "esm",
      conditions: ["workerd", "worker", "browser"]
    })
    const contents = readFileSync(join(game, "worker.js"), "utf8")
    const worker = new Miniflare({
      modules: [{ type: "ESModule", path: "worker.js", contents }],
      compatibilityDate: "2026-07-30",
      bindings: { baseUrl, key }
    })
    try {
      for (const path of ["first", "second"]) {
        const response = await worker.dispatchFetch(`http://game.test/${path}`)
        assert.strictEqual(await response.text(), played)
      }
    } finally {
      await worker.dispose()
    }
  })

  it("plays in a bundle of Metro with the globals of React Native, which Hermes compiles", async () => {
    const game = makeConsumer(phoneGame)
    await runConsumer(game, process.execPath, "bundle.js")
    const output = await runConsumer(game, process.execPath, "phone.js", baseUrl, key)
    assert.strictEqual(output.trim(), `${played}, hooks: function`)
    const hermes = { linux: "linux64-bin/hermesc", darwin: "osx-bin/hermesc" }
    const name = process.platform === "darwin" ? hermes.darwin : hermes.linux
    const compiler = consumerAt(join("hermes-compiler/hermesc", name))
    await runConsumer(game, compiler, "-emit-binary", "-O", "-out", "bundled.hbc", "bundled.js")
  })
})
