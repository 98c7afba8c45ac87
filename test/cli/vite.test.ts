/** The Vite plugin in a real project: its service, keys, config file, and two players in one window. */
import { mkdir, readFile, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { NodeServices } from "@effect/platform-node"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, FileSystem, Layer, Redacted } from "effect"
import { createLogger, createServer, resolveConfig } from "vite"
import { inject, vi } from "vitest"
import { localService } from "#cli/vite/local-service"
import { playerBackend } from "#cli/vite/plugin"
import { portsOf, servicePortKey } from "#cli/service-port"
import { cloneDatabase } from "#testing/database"
import { at, request } from "#testing/players"
import { freePort } from "#testing/runners"
import { Chromium, installed, needsChromium, newVisitor } from "../support/client/chromium.ts"

/** A game that signs a guest in, once, and shows its id. */
const game = `
const signIn = async () => {
  const response = await fetch(import.meta.env.VITE_SVC_URL + "/v1/auth/guest", {
    method: "POST",
    headers: { "content-type": "application/json", "x-svc-key": import.meta.env.VITE_SVC_KEY },
    body: "{}"
  })
  localStorage.setItem("player", (await response.json()).player.id)
}
if (localStorage.getItem("player") === null) await signIn()
document.querySelector("p").textContent = localStorage.player`

const html = `<!doctype html><p></p><script type="module" src="/game.js"></script>`

const eventually = (check: () => Promise<boolean>) =>
  Effect.promise(() => vi.waitUntil(check, { timeout: 60_000, interval: 50 }))

const settings = { HOST: "127.0.0.1", SVC_THROTTLES: "off" }

/** A Vite project, its dev server, and what Vite logged. */
const make = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const root = yield* fs.makeTempDirectoryScoped({ prefix: "vite-game-" })
  const database = yield* cloneDatabase(Redacted.make(inject("postgres")))
  const port = yield* freePort
  const vitePort = yield* freePort
  const file = join(root, "svc.config.json")
  yield* Effect.promise(async () => {
    await mkdir(join(root, ".svc"))
    await writeFile(join(root, "index.html"), html)
    await writeFile(join(root, "game.js"), game)
    await writeFile(file, JSON.stringify({ version: 1, features: { saves: true } }))
  })
  const lines: Array<string> = []
  const log = (line: string): void => void lines.push(line)
  const customLogger = { ...createLogger(), info: log, error: log }
  const env = { ...settings, DATABASE_URL: Redacted.value(database) }
  const server = yield* Effect.acquireRelease(
    Effect.promise(async () => {
      const made = await createServer({
        root,
        plugins: [playerBackend({ port, env })],
        customLogger,
        configFile: false,
        server: { port: vitePort, host: "localhost" }
      })
      return made.listen()
    }),
    (made) => Effect.promise(() => made.close())
  )
  const { development } = JSON.parse(
    yield* Effect.promise(() => readFile(join(root, ".svc/dev-keys.json"), "utf8"))
  )
  const url = `http://localhost:${port}`
  const config = () =>
    Effect.runPromise(
      request(`${url}/v1/config`, { headers: { "x-svc-key": String(development.secretKey) } })
    )
  const [page = ""] = server.resolvedUrls?.local ?? []
  const key = String(development.publishableKey)
  return { config, file, key, lines, page, url, close: () => server.close() }
})

class Game extends Context.Service<Game, Effect.Success<typeof make>>()("test/cli/vite.test/Game") {
  static readonly layer = Layer.effect(Game, make).pipe(Layer.provide(NodeServices.layer))
}

// All tests share one dev server. The last one stops it.
layer(Game.layer, { timeout: "90 seconds" })("the Vite plugin", (it) => {
  it.effect("starts the service, injects its address and key, and pushes each saved config", () =>
    Effect.gen(function* () {
      const { config, file, key, lines, page, url } = yield* Game
      const script = yield* request(`${page}game.js`)
      assert.include(String(script.body), url)
      assert.include(String(script.body), key)
      assert.strictEqual(at((yield* Effect.promise(config)).body, "features", "saves"), true)

      const changed = { version: 1, features: { saves: true, stats: true } }
      yield* Effect.promise(() => writeFile(file, JSON.stringify(changed)))
      yield* eventually(async () => at((await config()).body, "features", "stats") === true)

      yield* Effect.promise(() => writeFile(file, `{ "version": 1, "featurs": {} }`))
      yield* eventually(async () => /was not pushed[^]*1:17/.test(lines.join("\n")))
      assert.strictEqual(at((yield* Effect.promise(config)).body, "features", "stats"), true)
    })
  )

  it.effect("names the data directory of another game's service at the only port it may use", () =>
    Effect.gen(function* () {
      const { url } = yield* Game
      const ports = [Number(new URL(url).port)]
      const message = yield* Effect.promise(() =>
        localService({ ports, dataDir: "/tmp/another-game/.svc", env: {} }).then(
          () => "started",
          (error: Error) => error.message
        )
      )
      assert.match(
        message,
        /service of the data directory .*\.svc has the port \d+\..*--service-port/
      )
    })
  )

  it.effect("takes the port of the command line before that of the game's own config", () =>
    Effect.gen(function* () {
      const seen: Array<ReadonlyArray<number>> = []
      const plugin = {
        name: "reads-ports",
        config: (config: object) => void seen.push(portsOf(config, 8123), portsOf({}, undefined))
      }
      const inline = { configFile: false as const, plugins: [plugin], [servicePortKey]: 9001 }
      yield* Effect.promise(() => resolveConfig(inline, "serve"))
      assert.deepStrictEqual(seen[0], [9001])
      assert.deepStrictEqual(seen[1]?.slice(0, 3), [8080, 8081, 8082])
      assert.deepStrictEqual(portsOf({}, 8123), [8123])
    })
  )

  it.effect.skipIf(!installed)(
    `shows two players in one window, each with its own guest${needsChromium}`,
    () =>
      Effect.gen(function* () {
        const { page } = yield* Game
        const visitor = yield* newVisitor()
        const { again, first } = yield* Effect.promise(async () => {
          const tab = await visitor.newPage()
          await tab.goto(`${page}__players`)
          const show = [0, 1].map((half) => tab.frameLocator("iframe").nth(half).locator("p"))
          const shown = async () => {
            for (const text of show) await text.filter({ hasText: /^pl_/ }).waitFor()
            return Promise.all(show.map((text) => text.textContent()))
          }
          const first = await shown()
          await tab.reload()
          return { first, again: await shown() }
        })
        assert.strictEqual(new Set(first).size, 2)
        assert.deepStrictEqual(again, first)
      }).pipe(Effect.provide(Chromium.layer)),
    { tags: "long" }
  )

  it.effect("stops the service with Vite's dev server", () =>
    Effect.gen(function* () {
      const { close, url } = yield* Game
      yield* Effect.promise(close)
      const refused = yield* Effect.promise(() =>
        fetch(`${url}/healthz`).then(
          () => false,
          () => true
        )
      )
      assert.isTrue(refused)
    })
  )
})
