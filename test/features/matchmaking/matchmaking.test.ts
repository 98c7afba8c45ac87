/** Matchmaking through the public interface. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestApp } from "#testing/app"
import { at, configure, newPlayer } from "#testing/players"
import { AppLive } from "../../support/service.ts"

const modes = {
  version: 1,
  features: { multiplayer: true },
  multiplayer: {
    modes: [
      { key: "duel", minPlayers: 2, maxPlayers: 2 },
      { key: "party", minPlayers: 2, maxPlayers: 4 },
      { key: "patient", minPlayers: 3, maxPlayers: 3, fillTimeoutSeconds: 0 },
      { key: "hasty", minPlayers: 4, maxPlayers: 4, fillTimeoutSeconds: 1 }
    ]
  }
}

layer(AppLive, { timeout: "120 seconds", excludeTestServices: true })("matchmaking", (it) => {
  it.effect("matches two players in one room; each gets room_joined before the reply", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      yield* configure(app, modes)
      const ada = yield* newPlayer(app)
      const bob = yield* newPlayer(app)
      const [first, second] = yield* Effect.all(
        [
          ada.socket.request({ t: "quickMatch", mode: "duel" }),
          bob.socket.request({ t: "quickMatch", mode: "duel" })
        ],
        { concurrency: 2 }
      )
      assert.strictEqual(at(first, "ok"), true)
      assert.strictEqual(at(first, "data", "roomId"), at(second, "data", "roomId"))
      for (const { socket } of [ada, bob]) {
        const order = socket.received.map((frame) => frame.t)
        assert.isBelow(order.indexOf("room_joined"), order.indexOf("reply"))
        const joined = yield* socket.next("room_joined")
        assert.lengthOf(Object(at(joined, "room", "players")), 2)
      }
      yield* ada.socket.send({ t: "send", type: "hi" })
      yield* bob.socket.next("message")
    })
  )

  it.effect("fills a room with a free seat before it opens another", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      yield* configure(app, modes)
      const players = yield* Effect.all([newPlayer(app), newPlayer(app), newPlayer(app)])
      const [ada, bob, cleo] = players
      const [first] = yield* Effect.all(
        [
          ada.socket.request({ t: "quickMatch", mode: "party" }),
          bob.socket.request({ t: "quickMatch", mode: "party" })
        ],
        { concurrency: 2 }
      )
      const third = yield* cleo.socket.request({ t: "quickMatch", mode: "party" })
      assert.strictEqual(at(third, "data", "roomId"), at(first, "data", "roomId"))
      const news = yield* ada.socket.next("player_joined")
      assert.strictEqual(at(news, "player", "id"), cleo.id)
    })
  )

  it.effect("refuses a second ticket; a cancel ends the wait, and a second cancel fails", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      yield* configure(app, modes)
      const ada = yield* newPlayer(app)
      yield* ada.socket.send({ t: "quickMatch", rid: "wait", mode: "patient" })
      const twice = yield* ada.socket.request({ t: "quickMatch", mode: "patient" })
      assert.strictEqual(at(twice, "error", "code"), "already_matching")
      const cancelled = yield* ada.socket.request({ t: "cancelMatch" })
      assert.deepStrictEqual(cancelled["data"], { cancelled: true })
      const ended = yield* ada.socket.next("reply", (frame) => frame["rid"] === "wait")
      assert.strictEqual(at(ended, "error", "code"), "match_cancelled")
      const again = yield* ada.socket.request({ t: "cancelMatch" })
      assert.strictEqual(at(again, "error", "code"), "not_matching")
      const unknown = yield* ada.socket.request({ t: "quickMatch", mode: "nope" })
      assert.strictEqual(at(unknown, "error", "code"), "mode_not_found")
    })
  )

  it.effect("starts a match with the waiting players after the fill timeout", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      yield* configure(app, modes)
      const ada = yield* newPlayer(app)
      const alone = yield* ada.socket.request({ t: "quickMatch", mode: "hasty" })
      assert.strictEqual(at(alone, "ok"), true)
      const joined = yield* ada.socket.next("room_joined")
      assert.lengthOf(Object(at(joined, "room", "players")), 1)
    })
  )

  it.effect("cancels the ticket of a socket that disconnects", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      yield* configure(app, modes)
      const [ada, bob, cleo] = yield* Effect.all([newPlayer(app), newPlayer(app), newPlayer(app)])
      yield* ada.socket.send({ t: "quickMatch", rid: "a", mode: "duel" })
      yield* ada.socket.request({ t: "ping" })
      yield* ada.socket.terminate
      const back = yield* app.online(ada)
      yield* back.socket.next("welcome")
      const [first, second] = yield* Effect.all(
        [
          bob.socket.request({ t: "quickMatch", mode: "duel" }),
          cleo.socket.request({ t: "quickMatch", mode: "duel" })
        ],
        { concurrency: 2 }
      )
      assert.strictEqual(at(first, "data", "roomId"), at(second, "data", "roomId"))
      const joined = yield* bob.socket.next("room_joined")
      const ids = [at(joined, "room", "players", 0, "id"), at(joined, "room", "players", 1, "id")]
      assert.sameMembers(ids, [bob.id, cleo.id])
    })
  )

  it.effect("matches waiting players when a config push lowers minPlayers", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      yield* configure(app, modes)
      const [ada, bob] = yield* Effect.all([newPlayer(app), newPlayer(app)])
      for (const { socket } of [ada, bob]) {
        yield* socket.send({ t: "quickMatch", rid: "wait", mode: "patient" })
      }
      yield* ada.socket.request({ t: "ping" })
      const [duel, party, patient, hasty] = modes.multiplayer.modes
      const lowered = [duel, party, { ...patient, minPlayers: 2 }, hasty]
      yield* configure(app, { ...modes, multiplayer: { modes: lowered } })
      const [first, second] = yield* Effect.all([
        ada.socket.next("reply", (frame) => frame["rid"] === "wait"),
        bob.socket.next("reply", (frame) => frame["rid"] === "wait")
      ])
      assert.strictEqual(at(first, "ok"), true)
      assert.strictEqual(at(first, "data", "roomId"), at(second, "data", "roomId"))
    })
  )

  it.effect("fails the tickets of a mode that a config push removes", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      yield* configure(app, modes)
      const ada = yield* newPlayer(app)
      yield* ada.socket.send({ t: "quickMatch", rid: "wait", mode: "patient" })
      yield* ada.socket.request({ t: "ping" })
      yield* configure(app, { version: 1, features: { multiplayer: true } })
      const ended = yield* ada.socket.next("reply", (frame) => frame["rid"] === "wait")
      assert.strictEqual(at(ended, "error", "code"), "mode_not_found")
    })
  )
})
