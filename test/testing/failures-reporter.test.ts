/**
 * The output of a test run: a failure with all that its test logged, and nothing of the tests that pass.
 *
 * @module-tag long
 */
import { execFile } from "node:child_process"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"

const vitest = fileURLToPath(new URL("../../node_modules/vitest/vitest.mjs", import.meta.url))
const reporter = new URL("../support/failures-reporter.ts", import.meta.url).href

const config = `export default { test: {
  globals: true, silent: "passed-only", reporters: [new (await import("${reporter}")).FailuresReporter()],
  tags: [{ name: "long" }]
} }`

const logging = `const lines = (name) => { for (let i = 1; i <= 500; i++) console.log(name + " logs " + i) }
beforeAll(() => console.log("the set-up logs"))
test("passes", () => lines("passing"))
test("fails", async () => { lines("failing"); await Promise.resolve(); console.error("last words"); expect(1).toBe(2) })
test.skip("plays (skipped: needs a browser)", () => {})`

const passing = `beforeAll(() => console.log("another set-up logs"))
test("passes", () => console.log("nobody reads this"))`

/** Runs two files of tests without a terminal. */
const output = Effect.gen(function* () {
  const folder = yield* Effect.acquireRelease(
    Effect.promise(() => mkdtemp(join(tmpdir(), "reporter-"))),
    (path) => Effect.promise(() => rm(path, { recursive: true }))
  )
  const files = { "vitest.config.mjs": config, "a.test.js": logging, "b.test.js": passing }
  yield* Effect.forEach(Object.entries(files), ([name, text]) =>
    Effect.promise(() => writeFile(join(folder, name), text))
  )
  return yield* Effect.callback<string>((resume) => {
    const env = { NO_COLOR: "1" }
    const args = [vitest, "run", "--root", folder, "--configLoader", "native"]
    execFile(process.execPath, args, { env }, (_, stdout, stderr) =>
      resume(Effect.succeed(stdout + stderr))
    )
  })
})

describe("the output of a test run", () => {
  it.live("shows all that a failing test logged, and nothing of those that pass", () =>
    Effect.gen(function* () {
      const text = yield* output
      const logged = Array.from({ length: 500 }, (_, index) => `failing logs ${index + 1}\n`)
      assert.include(text, logged.join(""))
      assert.include(text, "last words")
      assert.include(text, "the set-up logs")
      assert.include(text, "expected 1 to be 2")
      assert.include(text, "2 of 2 files, 1 failed")
      assert.match(text, /Tests +1 failed \| 2 passed \| 1 skipped/)
      assert.include(text, "1 skipped: needs a browser")
      assert.notInclude(text, "passing logs")
      assert.notInclude(text, "another set-up logs")
      assert.notInclude(text, "nobody reads this")
      assert.notInclude(text, "b.test.js")
    })
  )
})
