/** The client in Python of the documentation, as its program runs it against the service. */
import { execFile, spawnSync } from "node:child_process"
import { join } from "node:path"
import { promisify } from "node:util"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestApp } from "#testing/app"
import { root } from "../support/docs/samples.ts"
import { AppLive } from "../support/service.ts"

const candidates = ["python3", "/usr/bin/python3"]
const hasWebsockets = (python: string): boolean =>
  spawnSync(python, ["-c", "import websockets"]).status === 0
const python = candidates.find(hasWebsockets)
const needs = python === undefined ? " (skipped: needs apt-get install python3-websockets)" : ""

layer(AppLive, { timeout: "60 seconds", excludeTestServices: true })("a client in Python", (it) => {
  it.effect.skipIf(python === undefined)(
    `plays with the client in Python, which returns to its seat after a lost connection${needs}`,
    () =>
      Effect.gen(function* () {
        const { publishableKey, url } = yield* TestApp
        const program = join(root, "docs/clients/python/player_backend.py")
        const run = promisify(execFile)
        const { stdout } = yield* Effect.promise(() =>
          run(python ?? "", [program, url, publishableKey], { timeout: 60_000 })
        )
        assert.deepStrictEqual(JSON.parse(stdout), { type: "move", data: { x: 1 } })
      })
  )
})
