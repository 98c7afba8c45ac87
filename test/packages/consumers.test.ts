/**
 * The archives in programs that load them in other ways than Node: TypeScript in three versions, Jest in
 * CommonJS, webpack and Vite; and what `publint` and `attw` say. Those tools are a package of their own,
 * which the first run installs.
 */
import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { at } from "#testing/players"
import { buildPackages, makeGame, runIn } from "../support/packages/game.ts"

const tools = join(import.meta.dirname, "tools")

/** A file of one of the tools. */
const toolAt = (path: string): string => join(tools, "node_modules", path)

/** Runs Node in a folder; the error shows the output. */
const node = (folder: string, ...words: ReadonlyArray<string>): string => {
  try {
    return execFileSync(process.execPath, words, { cwd: folder, encoding: "utf8", stdio: "pipe" })
  } catch (error) {
    throw new Error(`${words.join(" ")}:\n${at(error, "stdout")}${at(error, "stderr")}`, {
      cause: error
    })
  }
}

/** A component and a call of each entry that `require` can load. */
const program = `
import { createClient, isError, memoryStorage, type Room } from "@player-backend/client"
import { useEnteredRoom, useRoom } from "@player-backend/client/react"

const client = createClient({ baseUrl: "http://localhost:1", key: "pk_1", storage: memoryStorage() })

export const Game = ({ code }: { code: string }): string => {
  const { error, room } = useEnteredRoom<{ round: number }>(
    (signal) => client.rooms.join(code, { signal }),
    [code]
  )
  const shown: Room<{ round: number }> | null = room
  const view = useRoom(shown)
  if (isError(error, "room_full")) return error.message
  return String(view?.state.round ?? 1)
}
`

const jestTest = `
const { createClient, isError, memoryStorage } = require("@player-backend/client")
const { useEnteredRoom } = require("@player-backend/client/react")

test("a call without a service", async () => {
  const client = createClient({ baseUrl: "http://localhost:1", key: "pk_1", storage: memoryStorage() })
  const error = await client.rooms.list().catch((rejection) => rejection)
  expect(isError(error, "network_error")).toBe(true)
  expect(typeof useEnteredRoom).toBe("function")
})
`

const page = `
import { createClient } from "@player-backend/client"
import { usePlayer } from "@player-backend/client/react"
document.title = [typeof createClient, typeof usePlayer].join()
`

let archives: ReadonlyArray<string> = []
let game = ""

beforeAll(() => {
  if (!existsSync(join(tools, "node_modules"))) {
    const words = ["ci", "--prefer-offline", "--no-audit", "--no-fund"]
    execFileSync("npm", words, { cwd: tools, stdio: "pipe" })
  }
  archives = buildPackages()
  game = makeGame(
    archives.filter((archive) => archive.includes("-client-")),
    ["react", "@types/react", "csstype"]
  )
  for (const extension of ["ts", "cts", "mts"]) {
    writeFileSync(join(game, `program.${extension}`), program)
  }
  writeFileSync(join(game, "page.js"), page)
  writeFileSync(join(game, "index.html"), `<script type="module" src="./page.js"></script>`)
}, 480_000)

describe("the archives under tools that check packages", () => {
  it("packs archives of which publint says nothing", () => {
    for (const archive of archives) {
      const output = node(tools, toolAt("publint/src/cli.js"), "run", archive, "--strict")
      assert.include(output, "All good!", archive)
    }
  })

  it("types every entry of the client for every way to resolve it, as attw does", () => {
    const attw = toolAt("@arethetypeswrong/cli/dist/index.js")
    const client = archives.find((archive) => archive.includes("-client-")) ?? ""
    const dual = ["--entrypoints", ".", "react", "package.json"]
    assert.include(node(tools, attw, client, ...dual), "No problems found")
    // Effect has no CommonJS.
    const only = ["--entrypoints", "effect", "--profile", "esm-only"]
    assert.include(node(tools, attw, client, ...only), "🟢 (ESM)")
  })
})

const root = createRequire(import.meta.url)

const compilers = {
  "TypeScript 5.4": toolAt("typescript-5.4/bin/tsc"),
  "TypeScript 5.9": toolAt("typescript-5.9/bin/tsc"),
  "TypeScript 7": join(root.resolve("typescript/package.json"), "../bin/tsc")
}

/** The options of a resolution, and the files that it compiles. */
const resolutions = {
  node16: ["node16", "node16", "program.ts", "program.mts", "program.cts"],
  nodenext: ["nodenext", "nodenext", "program.ts", "program.mts", "program.cts"],
  bundler: ["esnext", "bundler", "program.ts"]
} as const

describe("the types of the client in a game", () => {
  for (const [name, compiler] of Object.entries(compilers)) {
    for (const [resolution, [module, moduleResolution, ...files]] of Object.entries(resolutions)) {
      it(`compiles a game with the client package: ${name}, ${resolution}`, () => {
        const options = ["--strict", "--noEmit", "--target", "es2022", "--lib", "es2022,dom"]
        const modules = ["--module", module, "--moduleResolution", moduleResolution]
        node(game, compiler, ...options, ...modules, "--types", "react", ...files)
      })
    }
  }

  it("compiles a game with the client package under the resolution of old programs", () => {
    const options = ["--strict", "--noEmit", "--target", "es2022", "--lib", "es2022,dom"]
    const modules = ["--module", "commonjs", "--moduleResolution", "node10"]
    const words = [...options, ...modules, "--types", "react", "program.ts"]
    node(game, compilers["TypeScript 5.9"], ...words)
  })
})

describe("the client in programs that bundle or load it", () => {
  it("loads the client by require in Jest", () => {
    const folder = join(game, "jest")
    mkdirSync(folder)
    writeFileSync(join(folder, "package.json"), `{ "name": "jest-game" }`)
    writeFileSync(join(folder, "client.test.js"), jestTest)
    node(folder, toolAt("jest/bin/jest.js"), "--rootDir", folder, "--watchman=false")
  })

  it("bundles the client and its React hooks with webpack, without a warning", () => {
    const script = `
      const webpack = require(${JSON.stringify(toolAt("webpack"))})
      const config = { mode: "production", context: ${JSON.stringify(game)}, entry: "./page.js",
        output: { path: ${JSON.stringify(join(game, "out/webpack"))} } }
      webpack(config, (error, stats) => {
        if (error) throw error
        const { errors, warnings } = stats.toJson()
        console.log(JSON.stringify([...errors, ...warnings].map(({ message }) => message)))
      })`
    writeFileSync(join(game, "webpack.cjs"), script)
    assert.deepStrictEqual(JSON.parse(node(game, "webpack.cjs")), [])
  })

  it("bundles the client and its React hooks with Vite", () => {
    runIn(game, "vite", "build", "--outDir", "out/vite", "--logLevel", "warn")
    const bundled = readdirSync(join(game, "out/vite/assets"))
    assert.isTrue(bundled.some((file) => file.endsWith(".js")))
  })
})
