/** The examples of the test kit, as they stand in its guide and in the README of its package. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Schedule } from "effect"
import { TestClock } from "effect/testing"
import { TestApp, TestDatabase } from "#testing/app"
import { runBots } from "#testing/bots"
import { at, goOnline, guest, newPlayer, request } from "#testing/players"
import { startCluster } from "#testing/runners"
import { AppLive, DatabaseLive } from "../support/service.ts"

layer(AppLive, { excludeTestServices: true, timeout: "60 seconds" })("my game", (it) => {
  it.effect("counts the moves of three bots", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const host = yield* newPlayer(app, "Host")
      const created = yield* host.socket.request({ t: "create", mode: "default" })
      const roomId = at(created, "data", "roomId")
      yield* runBots(app, 3, (bot) =>
        Effect.gen(function* () {
          yield* bot.ask({ t: "join", roomId })
          yield* bot.ask({ t: "send", type: "move", data: { x: bot.index } })
        })
      )
      const moves = [1, 2, 3].map(() => host.socket.next("message"))
      const xs = (yield* Effect.all(moves)).map((message) => at(message, "data", "x"))
      assert.sameMembers(xs, [0, 1, 2])
    })
  )
})

layer(AppLive, { timeout: "60 seconds" })("my game on virtual time", (it) => {
  it.effect("signs a player out after fifteen minutes", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const ada = yield* guest(app, "Ada")
      yield* TestClock.adjust("15 minutes")
      const me = yield* request(`${app.url}/v1/players/me`, {
        headers: { "x-svc-key": app.publishableKey, authorization: `Bearer ${ada.accessToken}` }
      })
      assert.strictEqual(at(me.body, "error", "code"), "token_expired")
    })
  )
})

describe("my game on two runners", { tags: "long" }, () => {
  it.live("keeps the seat of a player whose runner is killed", () =>
    Effect.gen(function* () {
      const database = yield* TestDatabase
      const { runners, target } = yield* startCluster({ databaseUrl: database.url, size: 2 })
      const [first, second] = runners
      if (first === undefined || second === undefined) return yield* Effect.die("No cluster")
      const ada = yield* newPlayer({ ...target, url: first.url }, "Ada")
      const created = yield* ada.socket.request({ t: "create", mode: "default" })
      const roomId = at(created, "data", "roomId")
      const bob = yield* newPlayer({ ...target, url: second.url }, "Bob")
      yield* bob.socket.request({ t: "join", roomId })
      yield* first.kill
      const back = yield* goOnline({ ...target, url: second.url }, ada)
      // The room may be moving to the second runner meanwhile.
      yield* back.socket.request({ t: "resume", roomId }).pipe(
        Effect.filterOrFail((reply) => reply["ok"] === true),
        Effect.retry({ times: 100, schedule: Schedule.spaced("200 millis") })
      )
      assert.strictEqual(at(yield* back.socket.next("room_joined"), "room", "id"), roomId)
    }).pipe(Effect.provide(DatabaseLive), Effect.scoped)
  )
})

describe.each(["docs/guides/testing.md", "docs/packages/testing.md"])("%s", (page) => {
  it("shows the examples of a documentation page as they run in this file", () => {
    const read = (path: string) => readFileSync(join(import.meta.dirname, "../..", path), "utf8")
    const squeezed = (text: string) => text.replaceAll(/\s+/g, " ").trim()
    const source = squeezed(read("test/testing/examples.test.ts"))
    const blocks = Array.from(read(page).matchAll(/^```ts\n([^]*?)^```$/gm), ([, block = ""]) =>
      squeezed(block)
    ).filter((block) => block.startsWith("it."))
    assert.lengthOf(blocks, 3)
    for (const block of blocks) assert.include(source, block)
  })
})
