/** The packages of `npm run packages`, each in a game of its own outside of this repository. */
import { execFileSync, spawnSync } from "node:child_process"
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { rolldown } from "rolldown"
import { at } from "#testing/players"
import { freePort } from "#testing/runners"
import { inject } from "vitest"
import manifest from "../../package.json" with { type: "json" }
import type { Browser } from "playwright-core"
import { installed, launch, needsChromium } from "../support/client/chromium.ts"
import { hasConsumers, needsRegistry } from "../support/packages/consumers.ts"
import { type DevServer, startDev, stepMillis } from "../support/packages/dev-server.ts"
import { buildPackages, makeGame, manifestOf, nodeOf, runIn } from "../support/packages/game.ts"
import { played, playOf } from "../support/packages/play.ts"

let archives: ReadonlyArray<string> = []
let game = ""

const program = `
import { createClient, isError, memoryStorage, type Room } from "@player-backend/client"

interface State { round: number }
interface Messages { move: { x: number } }

export const play = async (): Promise<number> => {
  const client = createClient({ baseUrl: "http://localhost:1", key: "pk_1", storage: memoryStorage() })
  try {
    const room: Room<State, object, Messages> = await client.rooms.quickMatch<State, object, Messages>("default")
    room.on("message", ({ data }) => data.x.toFixed())
    room.setState({ round: 2 })
    return room.state.round ?? 0
  } catch (error) {
    if (isError(error, "already_in_room")) return error.details.roomId.length
    if (isError(error, "network_error")) return -1
    throw error
  }
}
`

beforeAll(() => {
  archives = buildPackages()
  game = makeGame(archives.filter((archive) => archive.includes("backend-client-")))
  writeFileSync(join(game, "game.ts"), program)
  const options = { strict: true, skipLibCheck: false, noEmit: true, target: "es2024", types: [] }
  for (const [module, moduleResolution] of [
    ["nodenext", "nodenext"],
    ["esnext", "bundler"]
  ]) {
    const compilerOptions = { ...options, module, moduleResolution, lib: ["es2024", "dom"] }
    const config = { compilerOptions, files: ["game.ts"] }
    writeFileSync(join(game, `tsconfig.${moduleResolution}.json`), JSON.stringify(config))
  }
})

/** Plays under a version of Node, which may lack a `WebSocket`. */
const playIn = (node: string): string => {
  const player = makeGame(
    archives.filter((archive) => archive.includes("backend-client-")),
    ["ws"]
  )
  writeFileSync(join(player, "play.js"), playOf("@player-backend/client"))
  writeFileSync(
    join(player, "run.js"),
    `import { memoryStorage } from "@player-backend/client"
     import { WebSocket } from "ws"
     import { play } from "./play.js"
     const [, , baseUrl, key] = process.argv
     const options = "WebSocket" in globalThis ? {} : { WebSocket }
     console.log(await play(baseUrl, key, { storage: memoryStorage(), ...options }))`
  )
  const { baseUrl, key } = inject("service")
  const options = { cwd: player, encoding: "utf8" } as const
  return execFileSync(node, ["run.js", baseUrl, key], options).trim()
}

describe("the client package", () => {
  for (const resolution of ["nodenext", "bundler"]) {
    it(`compiles the client package under ${resolution}, with all declarations checked, without effect`, () => {
      runIn(game, "tsc", "--project", `tsconfig.${resolution}.json`)
    })
  }

  for (const version of ["20.9.0", "22.23.3"]) {
    it.skipIf(!hasConsumers)(`plays in Node ${version}${needsRegistry}`, () => {
      assert.strictEqual(playIn(nodeOf(version)), played)
    })
  }

  it("plays in the Node of the service", () => {
    assert.strictEqual(playIn(process.execPath), played)
  })

  it("ships typed hooks for React in the client package, with React as an optional peer", () => {
    const archive = archives.filter((file) => file.includes("backend-client-"))
    const app = makeGame(archive, ["react", "@types/react"])
    const text = `import { useRoom } from "@player-backend/client/react"
      import type { Room } from "@player-backend/client"
      interface State { round: number }
      export const Round = ({ room }: { room: Room<State> | null }) => useRoom(room)?.state.round ?? 0`
    writeFileSync(join(app, "round.ts"), text)
    const options = ["--strict", "--noEmit", "--module", "nodenext", "--types", ""]
    runIn(app, "tsc", ...options, "round.ts")
    writeFileSync(join(app, "run.mjs"), `import "@player-backend/client/react"`)
    execFileSync(process.execPath, ["run.mjs"], { cwd: app })
    const manifest = manifestOf(game, "client")
    assert.strictEqual(at(manifest, "peerDependencies", "react"), ">=18")
    assert.isTrue(at(manifest, "peerDependenciesMeta", "react", "optional"))
  })

  it("bundles TypeScript that imports the client package for a browser", async () => {
    const bundle = await rolldown({ input: join(game, "game.ts"), platform: "browser" })
    const { output } = await bundle.generate()
    await bundle.close()
    assert.include(output[0].code, "/v1/auth/guest")
  })

  it("names the commit in the client package, which has no side effects", () => {
    const manifest = manifestOf(game, "client")
    assert.match(String(at(manifest, "gitHead")), /^[0-9a-f]{40}$/)
    assert.isFalse(at(manifest, "sideEffects"))
    assert.deepStrictEqual(at(manifest, "dependencies"), {})
  })
})

describe("the CLI package", () => {
  const install = (): string =>
    makeGame(
      archives.filter((archive) => archive.includes("backend-cli-")),
      ["effect", "@effect/platform-node", "@humanwhocodes/momoa", "ignore", "vite"]
    )

  const versionUnder = (node: string): string => {
    const svc = join(install(), "node_modules/@player-backend/cli/bin/svc.cjs")
    return execFileSync(node, [svc, "--version"], { encoding: "utf8" })
  }

  it("prints the version of the CLI package under the Node of the service", () => {
    assert.match(versionUnder(process.execPath), /\d+\.\d+\.\d+/)
  })

  it.skipIf(!hasConsumers)(
    `prints the version of the CLI package under the oldest Node that it runs under${needsRegistry}`,
    () => {
      assert.match(versionUnder(nodeOf("22.19.0")), /\d+\.\d+\.\d+/)
    }
  )

  it.skipIf(!hasConsumers)(
    `says under an older Node which one the CLI needs, and no more${needsRegistry}`,
    () => {
      const svc = join(install(), "node_modules/@player-backend/cli/bin/svc.cjs")
      const { status, stderr, stdout } = spawnSync(nodeOf("20.9.0"), [svc, "init"], {
        encoding: "utf8"
      })
      assert.deepStrictEqual([status, stdout], [1, ""])
      const said =
        /^svc needs Node 22\.19 or newer, and this is 20\.\d+\.\d+\.\nInstall a newer one, .*\n$/
      assert.match(stderr, said)
    }
  )

  it("resolves every program that the CLI starts in the server package", () => {
    const both = makeGame(archives)
    const source = join(both, "node_modules/@player-backend/cli/src")
    const modules = readdirSync(source, { recursive: true, encoding: "utf8" })
    const programs = modules
      .filter((file) => file.endsWith(".js"))
      .flatMap((file) =>
        Array.from(
          readFileSync(join(source, file), "utf8").matchAll(/import\.meta\.resolve\("([^"]+)"\)/g),
          ([, program = ""]) => program
        )
      )
    assert.sameMembers(programs, [
      "@player-backend/server/backup",
      "@player-backend/server/main",
      "@player-backend/server/operator"
    ])
    const { resolve } = createRequire(join(both, "game.js"))
    for (const program of programs) assert.match(resolve(program), /server\/.*\/main\.js$/)
  })

  it("ships a Vite plugin with types in the CLI package", () => {
    const cli = install()
    const config = `import { playerBackend } from "@player-backend/cli/vite"
      export default { plugins: [playerBackend({ port: 8081 })] }
      console.log(playerBackend().name)`
    writeFileSync(join(cli, "vite.config.ts"), config)
    const options = [
      "--strict",
      "--noEmit",
      "--module",
      "nodenext",
      "--skipLibCheck",
      "--types",
      ""
    ]
    runIn(cli, "tsc", ...options, "vite.config.ts")
    writeFileSync(join(cli, "vite.config.mjs"), config)
    const output = execFileSync(process.execPath, ["vite.config.mjs"], {
      cwd: cli,
      encoding: "utf8"
    })
    assert.strictEqual(output.trim(), "player-backend")
  })
})

const isUp = (url: string): Promise<boolean> =>
  fetch(url, { signal: AbortSignal.timeout(5000) }).then(
    ({ ok }) => ok,
    () => false
  )

const makeInitGame = async () => {
  const folder = makeGame(
    archives.filter((archive) => !archive.includes("backend-testing-")),
    [...Object.keys(manifest.dependencies), "vite"]
  )
  const svc = join(folder, "node_modules/@player-backend/cli/bin/svc.cjs")
  execFileSync(process.execPath, [svc, "init", "my-game"], { cwd: folder })
  const game = join(folder, "my-game")
  const [port, servicePort] = await Effect.runPromise(
    Effect.scoped(Effect.all([freePort, freePort]))
  )
  const env = { HOST: "127.0.0.1", SVC_TURN_PORT: "0", SVC_DEMO_GAMES: "off" }
  writeFileSync(
    join(game, "vite.config.js"),
    `import { playerBackend } from "@player-backend/cli/vite"
     export default { plugins: [playerBackend(${JSON.stringify({ port: servicePort, env })})] }`
  )
  return { game, svc, port, servicePort }
}

/** Two tabs meet in a room; after a change of its page the first one is in that room again. */
const playInTwoTabs = async (browser: Browser, dev: DevServer, game: string): Promise<void> => {
  const context = await browser.newContext()
  context.setDefaultTimeout(stepMillis)
  const tabs = { one: await context.newPage(), two: await context.newPage() }
  // Who comes at the same moment may get a room of its own.
  for (const [name, page] of Object.entries(tabs)) {
    await dev.step(`tab ${name} loads`, () => page.goto(dev.url))
    await dev.step(`tab ${name} enters a room`, () =>
      page.waitForFunction(() =>
        document.querySelector("#status")?.textContent?.startsWith("Room ")
      )
    )
  }
  const meets = () => (document.querySelector("#status")?.textContent ?? "").includes(",")
  for (const [name, page] of Object.entries(tabs)) {
    await dev.step(`tab ${name} meets the other`, () => page.waitForFunction(meets))
  }
  const html = readFileSync(join(game, "index.html"), "utf8")
  writeFileSync(join(game, "index.html"), html.replace("My game", "Changed"))
  await dev.step("the page reloads", () =>
    tabs.one.waitForFunction(() => document.title === "Changed")
  )
  await dev.step("the tabs meet again", () => tabs.one.waitForFunction(meets))
}

describe("a game of svc init", () => {
  it.skipIf(!installed)(
    `runs a game of svc init by svc dev: two tabs meet, and a change reloads the page${needsChromium}`,
    async () => {
      const { game, port, servicePort, svc } = await makeInitGame()
      const dev = await startDev(svc, game, port)
      const browser = await launch()
      try {
        await playInTwoTabs(browser, dev, game)
        for (const path of ["dashboard", "sdk/client.js"])
          assert.isTrue(await isUp(`http://127.0.0.1:${servicePort}/${path}`), path)
      } finally {
        await browser.close()
        await dev.stop()
      }
      assert.isFalse(await isUp(`http://127.0.0.1:${servicePort}/healthz`))
    },
    480_000
  )
})
