/** `svc types`: the declarations of a game compile beside the client, and refuse what the config lacks. */
import { execFileSync } from "node:child_process"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { NodeServices } from "@effect/platform-node"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { makeFolder } from "../support/cli/svc.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))

const config = {
  features: { stats: true, multiplayer: true },
  stats: [
    { key: "kills", title: "Kills */ of all" },
    { key: "best_lap", aggregation: "min", title: { en: "Best lap" } }
  ],
  multiplayer: {
    modes: [
      { key: "arena", maxPlayers: 8 },
      { key: "duel", maxPlayers: 2 }
    ]
  },
  auth: { providers: { google: { enabled: true } } }
}

const game = `
import { createClient } from "@player-backend/client"
import type { Feature, GameClient, Modes } from "./svc.types.d.ts"

const client: GameClient = createClient({ baseUrl: "http://localhost:8080", key: "pk_1" })
interface State { round: number }
interface Sent { move: { x: number } }

export const play = async () => {
  const room = await client.rooms.quickMatch<State, object, Sent>("arena")
  room.send("move", { x: 1 })
  room.onMessage("move", ({ data }) => data.x.toFixed())
  const seats: 2 = 2 satisfies Modes["duel"]["maxPlayers"]
  await client.rooms.create({ mode: "duel", private: true, maxPlayers: seats })
  await client.rooms.list({ mode: "arena", limit: 3 })
  const { kills = 0 } = await client.stats.get()
  const { rejected, stats } = await client.stats.report({ kills: kills + 1 }, { idempotencyKey: "1" })
  await client.oauth.signIn("google")
  await client.saves.put("slot", { level: 1 })
  const on: Feature = "multiplayer"
  return [stats.best_lap?.daily.toFixed(), rejected.length, room.state.round, on]
}
`

/** Lines that a compiler must refuse. */
const mistakes = [
  `await client.rooms.quickMatch("arenas")`,
  `await client.rooms.create({ mode: "default" })`,
  `await client.rooms.list({ mode: "default" })`,
  `await client.stats.report({ deaths: 1 })`,
  `await client.stats.get().then(({ deaths }) => deaths)`,
  `await client.oauth.signIn("discord")`,
  `export const off: Feature = "saves"`
]

const broken = `import type { Feature, GameClient } from "./svc.types.d.ts"
declare const client: GameClient
${mistakes.join("\n")}
`
const firstMistake = 3

const compilerOptions = {
  strict: true,
  exactOptionalPropertyTypes: true,
  noEmit: true,
  skipLibCheck: false,
  allowImportingTsExtensions: true,
  erasableSyntaxOnly: true,
  target: "es2024",
  module: "nodenext",
  lib: ["es2024", "dom"],
  types: [],
  paths: { "@player-backend/client": [join(root, "src/client/client.ts")] }
}

const compile = (folder: string): string => {
  try {
    const words = ["--pretty", "false", "--project", "tsconfig.json", "--checkers", "1"]
    return execFileSync(join(root, "node_modules/.bin/tsc"), words, {
      cwd: folder,
      encoding: "utf8"
    })
  } catch (error) {
    return String(Object(error).stdout)
  }
}

layer(NodeServices.layer)("svc types", (it) => {
  it.effect("writes types that the client fits, and that know modes, stats and providers", () =>
    Effect.gen(function* () {
      const folder = yield* makeFolder()
      yield* folder.write("svc.config.json", config)
      const written = yield* folder.svc("types")
      assert.deepStrictEqual([written.code, written.stderr], [0, ""])
      yield* folder.write("game.ts", game)
      yield* folder.write("package.json", { type: "module" })
      yield* folder.write("tsconfig.json", { compilerOptions, files: ["game.ts"] })
      assert.strictEqual(compile(folder.path), "")
      yield* folder.write("broken.ts", broken)
      yield* folder.write("tsconfig.json", { compilerOptions, files: ["broken.ts"] })
      const errors = compile(folder.path)
      for (const [index, mistake] of mistakes.entries()) {
        assert.include(errors, `broken.ts(${index + firstMistake},`, `accepts ${mistake}`)
      }
    })
  )

  it.effect(
    "generates types with the built-in mode and no stat from a config without modes and stats",
    () =>
      Effect.gen(function* () {
        const folder = yield* makeFolder()
        yield* folder.write("game.json", {})
        assert.strictEqual((yield* folder.svc("types game.json --out game.d.ts")).code, 0)
        const text = yield* folder.read("game.d.ts")
        assert.match(
          text,
          /interface Modes \{\n {2}\/\*\* 2 to 8 players\. \*\/\n {2}readonly "default"/
        )
        assert.include(text, "interface StatValues {\n}")
        assert.include(text, "type SignInProvider = never")
      })
  )

  it.effect(
    "checks generated types without writing, and refuses a wrong name and an invalid config",
    () =>
      Effect.gen(function* () {
        const folder = yield* makeFolder()
        yield* folder.write("svc.config.json", config)
        const absent = yield* folder.svc("types --check")
        assert.strictEqual(absent.code, 1)
        assert.include(absent.stderr, "svc types --out svc.types.d.ts")
        yield* folder.svc("types")
        assert.strictEqual((yield* folder.svc("types --check")).code, 0)
        yield* folder.write("svc.config.json", { ...config, stats: [] })
        assert.strictEqual((yield* folder.svc("types --check --json")).code, 1)
        assert.strictEqual((yield* folder.svc("types --out types.ts")).code, 2)
        yield* folder.write("svc.config.json", { ...config, stats: [{ key: "No Key" }] })
        const invalid = yield* folder.svc("types")
        assert.strictEqual(invalid.code, 1)
        assert.include(invalid.stderr, "stats[0].key")
      })
  )
})
