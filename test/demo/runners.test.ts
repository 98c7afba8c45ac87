/** The routes of the button that kills a runner: who may use them, and when they exist. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { KillRunnerOf } from "#server/demo/two-runners"
import { request } from "#testing/players"
import { addressOfNode, nodeWith, SharedDatabase } from "../support/http-stack.ts"

const development = {
  SVC_BASE_URL: "http://localhost:8080",
  SVC_DEMO_GAMES: "on"
}
const games = "http://demo-games--dev.localhost:8080"
const roomId = "rm_01KAGVM3T09Q4ZX7RBN2YEF8WC"

/** Rooms whose runner was to be killed. */
const killed: Array<string> = []
const two = Layer.succeed(KillRunnerOf, (room) => void killed.push(room))

const nodeOf = (env: Readonly<Record<string, string>>) =>
  nodeWith(env).pipe(Layer.provideMerge(SharedDatabase.layer))

const kill = (headers: Readonly<Record<string, string>> = {}, body: unknown = { roomId }) =>
  Effect.gen(function* () {
    const url = `${yield* addressOfNode}/demo/kill-runner`
    return (yield* request(url, { method: "POST", body, headers })).status
  })

const runners = (headers: Readonly<Record<string, string>> = {}) =>
  Effect.flatMap(addressOfNode, (url) => request(`${url}/demo/runners`, { headers }))

layer(nodeOf(development).pipe(Layer.provide(two)))("two runners", (it) => {
  it.effect("kills the runner of a room for the demo games and for programs of this machine", () =>
    Effect.gen(function* () {
      killed.length = 0
      assert.strictEqual(yield* kill(), 202)
      assert.strictEqual(yield* kill({ origin: games }), 202)
      assert.deepStrictEqual(killed, [roomId, roomId])
      assert.deepStrictEqual((yield* runners({ origin: games })).body, { runners: 2 })
    })
  )

  it.effect(
    "refuses to kill a runner for other origins and machines, and for a text that is no room id",
    () =>
      Effect.gen(function* () {
        killed.length = 0
        const foreign: ReadonlyArray<Readonly<Record<string, string>>> = [
          { origin: "https://example.com" },
          { origin: "null" },
          { origin: "http://other--dev.localhost:8080" },
          { origin: "http://demo-games--dev.localhost:9090" },
          { "x-forwarded-for": "192.0.2.1" },
          { origin: games, "x-forwarded-for": "192.0.2.1" }
        ]
        for (const headers of foreign) {
          assert.strictEqual(yield* kill(headers), 404, JSON.stringify(headers))
          assert.strictEqual((yield* runners(headers)).status, 404, JSON.stringify(headers))
        }
        for (const body of [{}, { roomId: "room" }, { roomId: 1 }, []]) {
          assert.strictEqual(yield* kill({}, body), 400, JSON.stringify(body))
        }
        assert.deepStrictEqual(killed, [])
      })
  )
})

layer(nodeOf(development))("one runner", (it) => {
  it.effect("offers no route that kills the only runner", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* kill(), 404)
      assert.deepStrictEqual((yield* runners()).body, { runners: 1 })
    })
  )
})

const production = { SVC_DEMO_GAMES: "on", NODE_ENV: "production" }

layer(nodeOf(production).pipe(Layer.provide(two)))("production", (it) => {
  it.effect("offers no route to list or kill runners in production", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* kill(), 404)
      assert.strictEqual((yield* runners()).status, 404)
    })
  )
})
