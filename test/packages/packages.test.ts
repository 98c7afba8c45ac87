/** The packages of `npm run packages`, each in a game of its own outside of this repository. */
import { execFileSync } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { rolldown } from "rolldown"
import { at } from "#testing/players"
import { buildPackages, makeGame, manifestOf, runIn } from "../support/packages/game.ts"

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

describe("the client package", () => {
  for (const resolution of ["nodenext", "bundler"]) {
    it(`compiles under ${resolution}, with all declarations checked and without effect`, () => {
      runIn(game, "tsc", "--project", `tsconfig.${resolution}.json`)
    })
  }

  it("runs in Node without any other package", () => {
    writeFileSync(
      join(game, "run.mjs"),
      `import { createClient, isError } from "@player-backend/client"
       const client = createClient({ baseUrl: "http://127.0.0.1:1", key: "pk_1" })
       await client.players.me().catch((error) => console.log(isError(error, "network_error")))`
    )
    const output = execFileSync(process.execPath, ["run.mjs"], { cwd: game, encoding: "utf8" })
    assert.strictEqual(output.trim(), "true")
  })

  it("bundles for a browser, from TypeScript that imports it", async () => {
    const bundle = await rolldown({ input: join(game, "game.ts"), platform: "browser" })
    const { output } = await bundle.generate()
    await bundle.close()
    assert.include(output[0].code, "/v1/auth/guest")
  })

  it("names its commit and has no side effects", () => {
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

  it("prints its version", () => {
    const cli = install()
    const svc = join(cli, "node_modules/@player-backend/cli/src/cli/main.js")
    const output = execFileSync(process.execPath, [svc, "--version"], { encoding: "utf8" })
    assert.match(output, /\d+\.\d+\.\d+/)
  })

  it("has a Vite plugin with types", () => {
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
