/** Numbers that JSON does not carry to the other side unchanged: in frames, in calls and in bodies. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestApp } from "#testing/app"
import { at, configure, guest, newPlayer, request } from "#testing/players"
import { connectNative } from "../support/native-socket.ts"
import { AppLive } from "../support/service.ts"

const document = {
  version: 1,
  features: { multiplayer: true, realtimeChannels: true, saves: true },
  multiplayer: { modes: [{ key: "mesh", minPlayers: 2, maxPlayers: 4, transport: "p2p" }] }
}

/** Frames with a number in each place where a player may write one, and its path. */
const frames = (number: string): ReadonlyArray<readonly [frame: string, path: string]> => [
  [`"t":"create","mode":"mesh","metadata":{"score":${number}}`, "metadata.score"],
  [`"t":"send","type":"move","data":{"at":[1,${number}]}`, "data.at.1"],
  [`"t":"setState","patch":{"n":${number}}`, "patch.n"],
  [`"t":"setMyState","patch":{"a":{"b":${number}}}`, "patch.a.b"],
  [`"t":"signal","to":"pl_1","kind":"offer","data":${number}`, "data"],
  [`"t":"channelSend","channel":"lobby","type":"chat","data":[${number}]`, "data.0"],
  [`"t":"voiceSignal","channel":"lobby","to":"pl_1","kind":"offer","data":${number}`, "data"]
]

const numbers = ["1e400", "-1e400", "9007199254740993", "123456789012345678901"]

layer(AppLive, { timeout: "120 seconds", excludeTestServices: true })(
  "numbers that JSON changes",
  (it) => {
    it.effect("refuses a number that changes in every frame, with its path", () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        yield* configure(app, document)
        const { socket } = yield* newPlayer(app)
        for (const number of numbers) {
          for (const [frame, path] of frames(number)) {
            yield* socket.sendText(`{"rid":"n",${frame}}`)
            const reply = yield* socket.next("reply")
            assert.strictEqual(at(reply, "rid"), "n")
            assert.strictEqual(at(reply, "error", "code"), "invalid_frame", frame)
            assert.strictEqual(at(reply, "error", "details", "issues", 0, "path"), path)
          }
        }
        const last = { t: "create", mode: "mesh", metadata: { n: 9_007_199_254_740_991, x: 1e300 } }
        assert.strictEqual(at(yield* socket.request(last), "ok"), true)
      })
    )

    it.effect("refuses a number that changes in a call of the native RPC, with its path", () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        yield* configure(app, document)
        const ada = yield* guest(app)
        const native = yield* connectNative(app.url)
        yield* native.open({
          "x-svc-key": app.publishableKey,
          authorization: `Bearer ${ada.accessToken}`
        })
        assert.strictEqual(yield* native.call("create", { mode: "mesh" }), "ok")
        const call = `"_tag":"Request","id":"77","tag":"send","headers":[]`
        yield* native.socket.sendText(`{${call},"payload":{"type":"a","data":{"n":1e400}}}`)
        const exit = yield* native.about("Exit", "77")
        assert.strictEqual(at(exit, "exit", "cause", 0, "error", "_tag"), "invalid_frame")
        const path = at(exit, "exit", "cause", 0, "error", "details", "issues", 0, "path")
        assert.strictEqual(path, "payload.data.n")
      })
    )

    it.effect(
      "refuses a number that changes in a body with its path, and keeps it exactly in a save",
      () =>
        Effect.gen(function* () {
          const app = yield* TestApp
          yield* configure(app, document)
          const player = yield* newPlayer(app)
          const config = yield* request(`${app.url}/v1/config`, {
            method: "PUT",
            headers: { "x-svc-key": app.secretKey },
            body: `{"version":1,"features":{"multiplayer":true},"x":[0,9007199254740993]}`
          })
          assert.strictEqual(config.status, 400)
          assert.strictEqual(at(config.body, "error", "code"), "invalid_request")
          assert.strictEqual(at(config.body, "error", "details", "issues", 0, "path"), "x.1")
          const headers = {
            "x-svc-key": app.publishableKey,
            authorization: `Bearer ${player.accessToken}`
          }
          const save = { method: "PUT", headers, body: `{"data":{"n":9007199254740993}}` }
          assert.strictEqual((yield* request(`${app.url}/v1/saves/big`, save)).status, 200)
          const read = yield* Effect.promise(async () =>
            (await fetch(`${app.url}/v1/saves/big`, { headers })).text()
          )
          assert.include(read, `{"n":9007199254740993}`)
        })
    )
  }
)
