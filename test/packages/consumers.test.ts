/**
 * The archives under `publint` and `attw`, and the client in TypeScript 5.4 to 7, under each resolution of
 * modules, and in Jest. These programs come from the npm registry.
 */
import { writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"
import { assert, beforeAll, describe, it } from "@effect/vitest"
import {
  consumerAt,
  hasConsumers,
  makeConsumer,
  needsRegistry,
  runConsumer
} from "../support/packages/consumers.ts"
import { buildPackages } from "../support/packages/game.ts"

/** Runs a program of Node in a folder. */
const node = (folder: string, ...words: ReadonlyArray<string>): Promise<string> =>
  runConsumer(folder, process.execPath, ...words)

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

const misuse = `
import { createClient } from "@player-backend/client"
export const client = createClient({ baseUrl: "http://localhost:1", key: 7 })
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

const archives = buildPackages()

describe.skipIf(!hasConsumers)(
  `the archives under tools that check packages${needsRegistry}`,
  () => {
    let folder = ""

    beforeAll(() => {
      folder = makeConsumer({})
    })

    it("packs archives of which publint says nothing", async () => {
      for (const archive of archives) {
        const publint = consumerAt("publint/src/cli.js")
        const output = await node(folder, publint, "run", archive, "--strict")
        assert.include(output, "All good!", archive)
      }
    })

    it("types every entry of the client for every way to resolve it, as attw does", async () => {
      const attw = consumerAt("@arethetypeswrong/cli/dist/index.js")
      const client = archives.find((archive) => archive.includes("-client-")) ?? ""
      const dual = ["--entrypoints", ".", "react", "package.json"]
      assert.include(await node(folder, attw, client, ...dual), "No problems found")
      // Effect has no CommonJS.
      const only = ["--entrypoints", "effect", "--profile", "esm-only"]
      assert.include(await node(folder, attw, client, ...only), "🟢 (ESM)")
    })
  }
)

const root = createRequire(import.meta.url)

const compilers: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    ["5.4", "5.5", "5.6", "5.7", "5.8", "6.0"].map((version) => [
      version,
      consumerAt(`typescript-${version}/bin/tsc`)
    ])
  ),
  "5.9": consumerAt("typescript/bin/tsc"),
  "7.0": join(root.resolve("typescript/package.json"), "../bin/tsc")
}

/** The options of a resolution, and the files that it compiles. */
const resolutions = {
  node16: ["node16", "node16", "program.ts", "program.mts", "program.cts"],
  nodenext: ["nodenext", "nodenext", "program.ts", "program.mts", "program.cts"],
  bundler: ["esnext", "bundler", "program.ts"]
} as const

const strict = ["--strict", "--noEmit", "--target", "es2022"]

/** Checks all declarations but TypeScript's own. */
const withPages = [...strict, "--lib", "es2022,dom", "--skipDefaultLibCheck", "--types", "react"]

describe.skipIf(!hasConsumers)(`the types of the client in a game${needsRegistry}`, () => {
  let game = ""

  beforeAll(() => {
    game = makeConsumer({
      "package.json": `{ "type": "module" }`,
      "program.ts": program,
      "program.mts": program,
      "program.cts": program,
      "misuse.cts": misuse
    })
  })

  for (const [version, compiler] of Object.entries(compilers)) {
    for (const [resolution, [module, moduleResolution, ...files]] of Object.entries(resolutions)) {
      it(`compiles a game with the client package: TypeScript ${version}, ${resolution}`, async () => {
        const modules = ["--module", module, "--moduleResolution", moduleResolution]
        await node(game, compiler, ...withPages, ...modules, ...files)
      })
    }
  }

  it("compiles a game with the client package under the resolution of old programs", async () => {
    const modules = ["--module", "commonjs", "--moduleResolution", "node10"]
    await node(game, compilers["5.9"] ?? "", ...withPages, ...modules, "program.ts")
  })

  it("compiles a program of a server, without the types of pages", async () => {
    const words = [...strict, "--lib", "es2022", "--skipLibCheck", "--types", "node,react"]
    await node(game, compilers["7.0"] ?? "", ...words, "--module", "nodenext", "program.ts")
  })

  it("refuses a key that is no text, in CommonJS", async () => {
    const words = [...withPages, "--module", "nodenext", "misuse.cts"]
    const output = await node(game, compilers["7.0"] ?? "", ...words).catch(String)
    assert.include(output, "TS2322")
  })
})

describe.skipIf(!hasConsumers)(`the client in Jest${needsRegistry}`, () => {
  it("loads the client by require in Jest", async () => {
    const folder = makeConsumer({ "package.json": `{ "name": "jest-game" }` })
    writeFileSync(join(folder, "client.test.js"), jestTest)
    const jest = consumerAt("jest/bin/jest.js")
    const output = await node(folder, jest, "--rootDir", folder, "--watchman=false")
    assert.include(output, "1 passed, 1 total")
  })
})
