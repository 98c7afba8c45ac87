/**
 * A Vite game from `svc init`, deployed by `svc` and played in Chromium at its own address: by two tabs, in
 * a second version, and after a rollback.
 */
import { execFile } from "node:child_process"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer, Redacted } from "effect"
import type { BrowserContext, Page } from "playwright-core"
import { inject } from "vitest"
import { TestApp, TestDatabase } from "#testing/app"
import { at } from "#testing/players"
import { freePort } from "#testing/runners"
import { makeFolder } from "../../../support/cli/svc.ts"
import { Chromium, installed, needsChromium, newVisitor } from "../../../support/client/chromium.ts"

/** The base URL, whose port is that of the service: hosted pages find it there. */
class Base extends Context.Service<Base, string>()("test/features/hosting/long/vite-game/Base") {}

const Live = Layer.unwrap(
  Effect.map(Effect.scoped(freePort), (port) => {
    const url = `http://localhost:${port}`
    const app = TestApp.layerWith({ PORT: String(port), SVC_BASE_URL: url })
    return Layer.merge(Layer.succeed(Base, url), app)
  })
).pipe(
  Layer.provide(
    Layer.unwrap(Effect.sync(() => TestDatabase.layerOn(Redacted.make(inject("postgres")))))
  )
)

const pathOf = (file: string) => fileURLToPath(new URL(`../../../../${file}`, import.meta.url))

/** The starter's config with the client of this checkout. */
const viteConfig = `export default {
  build: { target: "esnext" },
  resolve: { alias: { "@player-backend/client": "${pathOf("src/client/client.ts")}" } }
}`

/** Builds in a process of its own: this one has the environment of a test. */
const runVite = (cwd: string) =>
  promisify(execFile)(
    pathOf("node_modules/.bin/node"),
    [pathOf("node_modules/vite/bin/vite.js"), "build"],
    {
      cwd,
      env: {}
    }
  )

/** A player's tab at an address, once the player is in a room. */
const openTab = (visitor: BrowserContext, url: string) =>
  Effect.promise(async () => {
    const page = await visitor.newPage()
    await page.goto(url)
    await page.waitForFunction(() =>
      document.querySelector("#status")?.textContent?.startsWith("Room")
    )
    return page
  })

/** Waits until both tabs show two players, and one draws the dot that the other moves there. */
const play = (moving: Page, watching: Page, x: number) =>
  Effect.promise(async () => {
    for (const page of [moving, watching]) {
      await page.waitForFunction(() =>
        document.querySelector("#status")?.textContent?.includes(", ")
      )
    }
    await moving.mouse.move(x, 200)
    await watching.waitForFunction((x) => {
      const drawn = document.querySelector("canvas")?.getContext("2d")
      return drawn?.getImageData(x, 200, 1, 1).data[3] === 255
    }, x)
  })

layer(Layer.mergeAll(Chromium.layer, Live), {
  timeout: "120 seconds",
  excludeTestServices: true
})(`a Vite game${needsChromium}`, (it) => {
  it.effect.skipIf(!installed)(
    "deploys a Vite game, which two tabs play, replaces it and rolls it back",
    () =>
      Effect.gen(function* () {
        const { secretKey } = yield* TestApp
        const folder = yield* makeFolder({ SVC_URL: yield* Base, SVC_SECRET_KEY: secretKey })
        const svc = Effect.fnUntraced(function* (args: string) {
          const { code, stderr, stdout } = yield* folder.svc(`${args} --json`, { cwd: "game" })
          assert.strictEqual(code, 0, stderr)
          const answer: unknown = JSON.parse(stdout)
          return answer
        })
        const make = Effect.promise(() => runVite(join(folder.path, "game")))
        assert.strictEqual((yield* folder.svc("init game")).code, 0)
        yield* folder.write("game/vite.config.js", viteConfig)
        yield* svc("config push")
        yield* make
        const url = String(at(yield* svc("deploy"), "url"))
        assert.match(url, /^http:\/\/[a-z0-9-]+--dev\.localhost:\d+\/$/)

        const visitor = yield* newVisitor()
        const first = yield* openTab(visitor, url)
        const second = yield* openTab(visitor, url)
        yield* play(first, second, 200)

        const html = yield* folder.read("game/index.html")
        yield* folder.write("game/index.html", html.replace("My game", "Level 2"))
        yield* make
        assert.deepInclude(yield* svc("deploy"), { version: 2, live: true, uploadedFiles: 1 })
        const titleOf = (page: Page) =>
          Effect.promise(async () => {
            await page.reload()
            return page.title()
          })
        assert.strictEqual(yield* titleOf(first), "Level 2")
        assert.strictEqual(yield* titleOf(second), "Level 2")
        yield* play(second, first, 300)
        assert.deepInclude(yield* svc("rollback"), { version: 1, live: true })
        assert.strictEqual(yield* titleOf(first), "My game")
        yield* play(first, second, 400)
      })
  )
})
