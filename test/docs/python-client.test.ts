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

/** Loses the first answer to a refresh, and then refreshes once more with the new token. */
const lossyRefresh = `
import asyncio, sys
from player_backend import Client

async def main(base_url, key):
    client = Client(base_url, key, print)
    await client.sign_in("Ada")
    before, request, sent = client.session["player"]["id"], client.request, 0

    async def lossy(*words, **options):
        nonlocal sent
        answer, sent = await request(*words, **options), sent + 1
        if sent == 1:
            raise ConnectionResetError
        return answer

    client.request = lossy
    await client.refresh()
    client.request = request
    await client.refresh()
    print(before, client.session["player"]["id"], sent)

asyncio.run(main(*sys.argv[1:]))
`

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
      }),
    { tags: "long" }
  )

  it.effect.skipIf(python === undefined)(
    `keeps the player of the client in Python when the answer to a refresh is lost${needs}`,
    () =>
      Effect.gen(function* () {
        const { publishableKey, url } = yield* TestApp
        const run = promisify(execFile)
        const options = { timeout: 60_000, env: { PYTHONPATH: join(root, "docs/clients/python") } }
        const { stdout } = yield* Effect.promise(() =>
          run(python ?? "", ["-B", "-c", lossyRefresh, url, publishableKey], options)
        )
        const [before, after, requests] = stdout.trim().split(" ")
        assert.strictEqual(after, before)
        assert.strictEqual(requests, "2")
      })
  )
})
