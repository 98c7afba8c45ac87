/** `npm run start:two`: two runners behind one port, for development only. */
import { spawn } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, layer } from "@effect/vitest"
import { Effect, Schedule } from "effect"
import { TestDatabase } from "#testing/app"
import { at, configure, newPlayer } from "#testing/players"
import { freePort } from "#testing/runners"
import { DatabaseLive } from "../support/service.ts"
import { freeUdpPort } from "../support/udp-port.ts"
import { dataFolder } from "../support/data-folder.ts"

const two = fileURLToPath(new URL("../../src/server/demo/two.ts", import.meta.url))
const bin = fileURLToPath(new URL("../../node_modules/.bin", import.meta.url))

const start = (env: Readonly<Record<string, string>>) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      let output = ""
      const child = spawn("node", [two], { env: { PATH: bin, ...env } })
      const ended = new Promise<number | null>((resolve) => child.once("exit", resolve))
      child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()))
      child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()))
      return { child, ended, output: () => output }
    }),
    ({ child, ended }) =>
      Effect.promise(() => {
        child.kill("SIGTERM")
        return ended
      })
  )

layer(DatabaseLive, { excludeTestServices: true })("two runners on one laptop", (it) => {
  it.effect(
    "answers from two runners behind one port, and names their TURN server",
    () =>
      Effect.gen(function* () {
        const { url: databaseUrl } = yield* TestDatabase
        const port = yield* freePort
        const dataDir = yield* dataFolder("two-")
        const turnPort = yield* freeUdpPort
        const { output } = yield* start({
          SVC_TURN_PORT: `${turnPort}`,
          SVC_BASE_URL: `http://localhost:${port}`,
          HOST: "127.0.0.1",
          PORT: `${port}`,
          DATABASE_URL: databaseUrl,
          SVC_DATA_DIR: dataDir,
          SVC_DEMO_GAMES: "off"
        })
        const nodes = new Set<unknown>()
        yield* Effect.tryPromise(async () => {
          const answer = await fetch(`http://127.0.0.1:${port}/readyz`, {
            headers: { connection: "close" }
          })
          nodes.add(at(await answer.json(), "node"))
          if (nodes.size < 2) throw new Error("One runner only")
        }).pipe(
          Effect.retry({ times: 600, schedule: Schedule.spaced(100) }),
          Effect.mapError(() => new Error(output()))
        )
        assert.strictEqual(nodes.size, 2)
        // The start message ends with a runner; the other prints its line only.
        yield* Effect.sync(() => output().split("  runner  ").length).pipe(
          Effect.filterOrFail(
            (parts) => parts === 3,
            () => new Error(output())
          ),
          Effect.retry({ times: 600, schedule: Schedule.spaced(100) })
        )
        assert.strictEqual(output().split("Player backend listening").length, 2, output())
        const url = `http://127.0.0.1:${port}`
        const keys: unknown = JSON.parse(readFileSync(join(dataDir, "dev-keys.json"), "utf8"))
        const target = {
          url,
          publishableKey: String(at(keys, "development", "publishableKey")),
          secretKey: String(at(keys, "development", "secretKey"))
        }
        const mode = { key: "mesh", minPlayers: 2, transport: "p2p" }
        yield* configure(target, {
          features: { multiplayer: true },
          multiplayer: { modes: [mode] }
        })
        const { socket } = yield* newPlayer(target)
        yield* socket.request({ t: "create", mode: "mesh" })
        const { data } = yield* socket.request({ t: "iceServers" })
        assert.match(
          String(at(data, "iceServers", 0, "urls", 0)),
          new RegExp(`^turn:.*:${turnPort}$`)
        )
      }),
    { tags: "long" }
  )

  it.effect("refuses to start the two runners of a laptop in production", () =>
    Effect.gen(function* () {
      const { ended, output } = yield* start({ NODE_ENV: "production" })
      assert.strictEqual(yield* Effect.promise(() => ended), 1)
      assert.include(output(), "for development only")
    })
  )
})
