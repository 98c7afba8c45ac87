/** The list of benchmarks. */
import { execFile } from "node:child_process"
import { existsSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"

const bench = fileURLToPath(new URL("bench.ts", import.meta.url))

const run = (...args: ReadonlyArray<string>) =>
  Effect.callback<{ readonly failed: boolean; readonly stdout: string; readonly stderr: string }>(
    (resume) => {
      execFile(process.execPath, [bench, ...args], (error, stdout, stderr) =>
        resume(Effect.succeed({ failed: error !== null, stdout, stderr }))
      )
    }
  )

describe("npm run bench", () => {
  it.live("lists benchmarks that exist, and refuses another name with the list", () =>
    Effect.gen(function* () {
      const { stdout } = yield* run()
      const names = Array.from(stdout.matchAll(/^ {2}([a-z-]+) {2,}\S/gm), ([, name]) => name)
      assert.include(names, "fan-out")
      const missing = names.filter((name) => !existsSync(new URL(`${name}.ts`, import.meta.url)))
      assert.deepStrictEqual(missing, ["two-nodes"])
      const wrong = yield* run("fanout", "--full")
      assert.isTrue(wrong.failed)
      assert.include(wrong.stderr, 'There is no benchmark "fanout"')
      assert.include(wrong.stderr, stdout)
    })
  )
})
