/** `svc init` and `svc dev` as processes: the files of each starter, and what they refuse. */
import { readdirSync } from "node:fs"
import { join } from "node:path"
import { NodeServices } from "@effect/platform-node"
import { assert, layer } from "@effect/vitest"
import { Effect, Result } from "effect"
import { parseSync } from "oxc-parser"
import { decodeConfig } from "#rpc/config-document/document"
import { at } from "#testing/players"
import { makeFolder } from "../support/cli/svc.ts"

const listed = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .toSorted()

layer(NodeServices.layer)("svc init", (it) => {
  for (const starter of ["vanilla", "react", "phaser"]) {
    it.effect(`creates a game with the starter ${starter}`, () =>
      Effect.gen(function* () {
        const folder = yield* makeFolder()
        const { code, stderr, stdout } = yield* folder.svc(`init My-Game --starter ${starter}`)
        assert.strictEqual(code, 0, stderr)
        assert.include(stdout, "npm run dev")
        const game = join(folder.path, "My-Game")
        const main = starter === "react" ? "src/main.jsx" : "src/main.js"
        assert.deepStrictEqual(listed(game), [
          ".gitignore",
          "index.html",
          "package.json",
          main,
          "src/room.js",
          "svc.config.json",
          "vite.config.js"
        ])
        const manifest: unknown = JSON.parse(yield* folder.read("My-Game/package.json"))
        assert.strictEqual(at(manifest, "name"), "my-game")
        assert.match(String(at(manifest, "dependencies", "@player-backend/client")), /^\^\d/)
        const config = decodeConfig(JSON.parse(yield* folder.read("My-Game/svc.config.json")))
        assert.isTrue(Result.isSuccess(config))
        for (const file of [main, "src/room.js", "vite.config.js"]) {
          assert.deepStrictEqual(parseSync(file, yield* folder.read(`My-Game/${file}`)).errors, [])
        }
      })
    )
  }

  it.effect("takes packages from a folder at svc init, prints JSON, and overwrites nothing", () =>
    Effect.gen(function* () {
      const folder = yield* makeFolder()
      const { stdout } = yield* folder.svc("init game --packages archives --json")
      assert.strictEqual(at(JSON.parse(stdout), "starter"), "vanilla")
      const manifest: unknown = JSON.parse(yield* folder.read("game/package.json"))
      assert.match(
        String(at(manifest, "devDependencies", "@player-backend/server")),
        /^file:.+archives\/player-backend-server-\d+\.\d+\.\d+\.tgz$/
      )
      const again = yield* folder.svc("init game")
      assert.deepStrictEqual([again.code, again.stdout], [2, ""])
      assert.include(again.stderr, "game is not empty")
      const nameless = yield* folder.svc("init")
      assert.strictEqual(nameless.code, 2)
      assert.include(nameless.stderr, "svc init my-game")
    })
  )

  it.effect("says at svc dev after svc init that Vite is missing", () =>
    Effect.gen(function* () {
      const folder = yield* makeFolder()
      yield* folder.svc("init game")
      const { code, stderr } = yield* folder.svc("dev --no-open", { cwd: "game" })
      assert.strictEqual(code, 2)
      assert.include(stderr, "Vite is not installed")
      assert.include(stderr, "npm install")
    })
  )
})
