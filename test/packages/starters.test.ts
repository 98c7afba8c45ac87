/**
 * `npx @player-backend/cli init` from a registry, as a newcomer does it: each starter is installed, built,
 * and played by two tabs.
 */
import { existsSync, readdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Page } from "playwright-core"
import { freePort } from "#testing/runners"
import { installed, launch, needsChromium } from "../support/client/chromium.ts"
import { startDev } from "../support/packages/dev-server.ts"
import { hasConsumers, needsRegistry } from "../support/packages/consumers.ts"
import { buildPackages, makeFolder } from "../support/packages/game.ts"
import { serveArchives } from "../support/packages/registry.ts"
import { run } from "../support/packages/run.ts"

/** Installing takes a minute alone, and many on a busy machine. */
const gameMillis = 600_000

let registry: Awaited<ReturnType<typeof serveArchives>> | undefined
const home = makeFolder("starters-")

beforeAll(async () => {
  registry = await serveArchives(buildPackages())
  registry.use(home)
})

afterAll(() => registry?.stop())

/** npm asks the registry for the scope, and its cache for the rest. */
const flags = [
  `--userconfig=${join(home, ".npmrc")}`,
  "--prefer-offline",
  "--no-audit",
  "--no-fund",
  "--yes"
]

const ports = () => Effect.runPromise(Effect.scoped(Effect.all([freePort, freePort])))

/** How many players a tab shows. */
const shown: Readonly<Record<string, () => number>> = {
  vanilla: () => (document.querySelector("#status")?.textContent ?? "").split(",").length,
  phaser: () => (document.querySelector("#status")?.textContent ?? "").split(",").length,
  react: () => document.querySelectorAll("li").length
}

/** Both tabs come to one room; the second comes when the first has its room. */
const meet = async (pages: ReadonlyArray<Page>, url: string, starter: string): Promise<void> => {
  const count = shown[starter]
  if (count === undefined) throw new Error(`No such starter: ${starter}`)
  for (const page of pages) {
    await page.goto(url)
    await page.waitForFunction(() =>
      document.querySelector("#status")?.textContent?.startsWith("Room ")
    )
  }
  for (const page of pages) await page.waitForFunction(`(${count.toString()})() === 2`)
}

/** How far the ships of a page with Phaser are apart. */
const distanceOfShips = `import("/src/main.js").then(({ game }) => {
  const [a, b] = [...game.scene.scenes[0].ships.values()]
  return b === undefined ? undefined : Math.hypot(a.x - b.x, a.y - b.y)
})`

/** Nobody has moved, so both ships are at their starts. */
const startApart = async (pages: ReadonlyArray<Page>): Promise<void> => {
  for (const page of pages) await page.waitForFunction(`${distanceOfShips}.then((it) => it > 100)`)
}

const needs = installed ? needsRegistry : needsChromium

describe(`a game from the registry${needs}`, () => {
  for (const starter of ["vanilla", "react", "phaser"]) {
    it.skipIf(!installed || !hasConsumers)(
      `makes a game by npx, builds it, and plays it in two tabs: ${starter}`,
      async () => {
        const name = `game-${starter}`
        const words = ["@player-backend/cli", "init", name, "--starter", starter]
        const made = await run({ cwd: home }, "npx", ...flags, ...words)
        assert.include(made, `Created ${name}`)
        const game = join(home, name)
        const [port, servicePort] = await ports()
        const settings = { HOST: "127.0.0.1", SVC_TURN_PORT: "0", SVC_DEMO_GAMES: "off" }
        await run({ cwd: game }, "npm", "install", ...flags)
        await run({ cwd: game }, "npm", "run", "build")
        assert.isTrue(existsSync(join(game, "dist/index.html")))
        assert.isNotEmpty(readdirSync(join(game, "dist/assets")))
        writeFileSync(
          join(game, "vite.config.js"),
          `import { playerBackend } from "@player-backend/cli/vite"
           const options = ${JSON.stringify({ port: servicePort, env: settings })}
           export default { plugins: [playerBackend(options)] }`
        )
        const dev = await startDev(join(game, "node_modules/.bin/svc"), game, port)
        const browser = await launch()
        try {
          const context = await browser.newContext()
          const pages = [await context.newPage(), await context.newPage()]
          const errors: Array<string> = []
          for (const page of pages) page.on("pageerror", ({ message }) => errors.push(message))
          await dev.step("two tabs meet", () => meet(pages, dev.url, starter))
          if (starter === "phaser") await dev.step("ships start apart", () => startApart(pages))
          assert.deepStrictEqual(errors, [])
        } finally {
          await browser.close()
          await dev.stop()
        }
      },
      gameMillis
    )
  }
})
