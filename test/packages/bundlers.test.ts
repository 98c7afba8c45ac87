/**
 * The client package of a game with nothing but the packages: bundled by esbuild, Vite and webpack, as a plain
 * script of the service, in a service worker, and with the storage of React Native. Each plays against
 * the service of the server package.
 */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import type { Browser } from "playwright-core"
import { inject } from "vitest"
import {
  loadEsbuild,
  measureClients,
  ownClients,
  peerClients,
  sizeTable
} from "../bench/client-sizes.ts"
import { installed, launch, needsChromium } from "../support/client/chromium.ts"
import {
  consumerAt,
  hasConsumers,
  makeConsumer,
  needsRegistry,
  runConsumer
} from "../support/packages/consumers.ts"
import { buildPackages, makeGame, runIn } from "../support/packages/game.ts"
import { type Pages, servePages } from "../support/packages/pages.ts"
import { played, playOf } from "../support/packages/play.ts"

const page = `
import { play } from "./play.js"
const { searchParams } = new URL(location.href)
const show = (text) => { document.title = String(text) }
play(searchParams.get("baseUrl"), searchParams.get("key")).then(show, show)
`

const worker = `
import { memoryStorage } from "@player-backend/client"
import { play } from "./play.js"
addEventListener("message", ({ data, source }) => {
  const options = { storage: memoryStorage() }
  play(data.baseUrl, data.key, options).then((text) => source.postMessage(text), (e) => source.postMessage(String(e)))
})
`

const workerPage = `<script type="module">
const { searchParams } = new URL(location.href)
navigator.serviceWorker.onmessage = ({ data }) => { document.title = data }
await navigator.serviceWorker.register("./worker.js", { type: "module" })
const { active } = await navigator.serviceWorker.ready
active.postMessage(Object.fromEntries(searchParams))
</script>`

/** Bundles a page, and prints what webpack says of it. */
const webpackBuild = `
const [, , path, to] = process.argv
const webpack = require(path)
const config = { mode: "production", context: __dirname, entry: "./page.js", output: { path: to } }
webpack(config, (error, stats) => {
  if (error) throw error
  const { errors, warnings } = stats.toJson()
  console.log(JSON.stringify([...errors, ...warnings].map(({ message }) => message)))
})
`

const html = (script: string) => `<!doctype html><script type="module" src="${script}"></script>`

const service = inject("service")

let game = ""
let pages: Pages
let browser: Browser

/** What a page shows once it has played. */
const shown = async (path: string): Promise<string> => {
  const { baseUrl, key } = service
  const tab = await browser.newPage()
  await tab.goto(`${pages.url}/${path}?${new URLSearchParams({ baseUrl, key })}`)
  await tab.waitForFunction(() => document.title !== "")
  const title = await tab.title()
  await tab.close()
  return title
}

beforeAll(async () => {
  game = makeGame(buildPackages().filter((archive) => archive.includes("-client-")))
  mkdirSync(join(game, "out"))
  const files = {
    "play.js": playOf("@player-backend/client"),
    "page.js": page,
    "worker.js": worker,
    "index.html": html("./page.js")
  }
  for (const [name, text] of Object.entries(files)) writeFileSync(join(game, name), text)
  if (!installed) return
  pages = await servePages(join(game, "out"))
  browser = await launch()
})

afterAll(async () => {
  await browser?.close()
  await pages?.close()
})

/** Bundles files of the game with esbuild into `out`. */
const bundle = async (options: Readonly<Record<string, unknown>>) => {
  const { build } = await loadEsbuild()
  const common = { absWorkingDir: game, bundle: true, format: "esm", minify: true }
  await build({ ...common, ...options })
}

describe(`the client package in Chromium${needsChromium}`, () => {
  it.skipIf(!installed)("plays with the client package bundled by esbuild", async () => {
    await bundle({ entryPoints: ["page.js"], splitting: true, outdir: "out/esbuild" })
    writeFileSync(join(game, "out/esbuild/index.html"), html("./page.js"))
    assert.strictEqual(await shown("esbuild/index.html"), played)
  })

  it.skipIf(!installed)("plays with the client package bundled by Vite", async () => {
    runIn(game, "vite", "build", "--base", "./", "--outDir", "out/vite", "--logLevel", "warn")
    assert.strictEqual(await shown("vite/index.html"), played)
  })

  it.skipIf(!installed || !hasConsumers)(
    `plays with the client package bundled by webpack, without a warning${needsRegistry}`,
    async () => {
      const consumer = makeConsumer({
        "package.json": `{ "type": "module" }`,
        "play.js": playOf("@player-backend/client"),
        "page.js": page,
        "webpack.cjs": webpackBuild
      })
      const to = join(game, "out/webpack")
      const webpack = consumerAt("webpack")
      const output = await runConsumer(consumer, process.execPath, "webpack.cjs", webpack, to)
      assert.deepStrictEqual(JSON.parse(output), [])
      writeFileSync(join(to, "index.html"), html("./main.js"))
      assert.strictEqual(await shown("webpack/index.html"), played)
    }
  )

  it.skipIf(!installed)("plays with the client as a script that the service serves", async () => {
    mkdirSync(join(game, "out/plain"))
    writeFileSync(join(game, "out/plain/play.js"), playOf(`${service.baseUrl}/sdk/client.js`))
    writeFileSync(join(game, "out/plain/page.js"), page)
    writeFileSync(join(game, "out/plain/index.html"), html("./page.js"))
    assert.strictEqual(await shown("plain/index.html"), played)
  })

  it.skipIf(!installed)("plays with the client package in a service worker", async () => {
    await bundle({ entryPoints: ["worker.js"], outfile: "out/worker/worker.js" })
    writeFileSync(join(game, "out/worker/index.html"), workerPage)
    assert.strictEqual(await shown("worker/index.html"), played)
  })
})

/** The store of React Native, in memory: all its calls are asynchronous. */
const asyncStorage = `
export class AsyncStorage {
  texts = new Map<string, string>()
  async getItem(key: string, callback?: (error?: Error | null, result?: string | null) => void) {
    await new Promise((resolve) => setTimeout(resolve, 1))
    callback?.(null, null)
    return this.texts.get(key) ?? null
  }
  async setItem(key: string, value: string): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, 1))
    this.texts.set(key, value)
  }
  async removeItem(key: string): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, 1))
    this.texts.delete(key)
  }
}
`

const mobileGame = `
import { createClient, type SessionStorage } from "@player-backend/client"
import { AsyncStorage } from "./async-storage.ts"
declare const process: { readonly argv: ReadonlyArray<string> }
// React Native has no writable URL, no document and no locks.
for (const name of ["href", "pathname", "search", "searchParams"]) {
  const { get } = Object.getOwnPropertyDescriptor(URL.prototype, name) ?? {}
  const set = () => { throw new Error(name + " is not implemented") }
  Object.defineProperty(URL.prototype, name, { get, set, configurable: true })
}
Object.defineProperty(globalThis, "navigator", { value: undefined })
const [, , baseUrl = "", key = ""] = process.argv
const storage: SessionStorage = new AsyncStorage()
const visit = async () => {
  const client = createClient({ baseUrl, key, storage })
  const { id } = await client.sessions.ensure({ displayName: "Ada" })
  const listed = await client.rooms.list({ limit: 5 })
  const room = await client.rooms.create({ mode: "default" })
  await room.leave()
  client.close()
  return [id, listed.length] as const
}
const [first, again] = [await visit(), await visit()]
console.log(JSON.stringify({ isSame: first[0] === again[0] }))
`

describe("the client package on a phone", () => {
  it("accepts React Native's AsyncStorage as client storage, and returns as the same player", () => {
    writeFileSync(join(game, "async-storage.ts"), asyncStorage)
    writeFileSync(join(game, "mobile.ts"), mobileGame)
    const options = "--strict --noEmit --module nodenext --target es2024 --lib es2024,dom"
    const extensions = ["--allowImportingTsExtensions", "--types", ""]
    runIn(game, "tsc", ...options.split(" "), ...extensions, "mobile.ts")
    const output = runIn(game, "node", "mobile.ts", service.baseUrl, service.key)
    assert.deepStrictEqual(JSON.parse(output), { isSame: true })
  })
})

describe("the size of the client", () => {
  it("bundles the client smaller than each of four other clients, with two bundlers", async () => {
    const own = await measureClients(ownClients)
    const others = await measureClients(peerClients())
    process.stdout.write(`${sizeTable([...own, ...others])}\n`)
    const [least] = own
    for (const other of others) {
      assert.isBelow(Number(least?.rolldown), other.rolldown, other.name)
      assert.isBelow(Number(least?.esbuild), other.esbuild, other.name)
    }
  }, 240_000)
})
