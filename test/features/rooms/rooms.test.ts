/** Rooms through the public interface: raw HTTP and raw WebSockets. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestApp } from "#testing/app"
import { at, configure, newPlayer, request } from "#testing/players"
import { AppLive } from "../../support/service.ts"
import { openRoom } from "../../support/opened-room.ts"

layer(AppLive, { timeout: "120 seconds", excludeTestServices: true })("rooms", (it) => {
  it.effect("sends the creator room_joined before the reply, and makes it the host", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const ada = yield* newPlayer(app, "Ada")
      const reply = yield* ada.socket.request({
        t: "create",
        mode: "default",
        metadata: { map: 1 }
      })
      const joined = yield* ada.socket.next("room_joined")
      const order = ada.socket.received.map((frame) => frame.t)
      assert.isBelow(order.indexOf("room_joined"), order.indexOf("reply"))
      assert.strictEqual(at(reply, "ok"), true)
      assert.strictEqual(at(reply, "data", "roomId"), at(joined, "room", "id"))
      assert.strictEqual(at(joined, "room", "hostId"), ada.id)
      assert.strictEqual(at(joined, "playerId"), ada.id)
      assert.strictEqual(at(joined, "resumed"), false)
      assert.deepStrictEqual(at(joined, "room", "metadata"), { map: 1 })
      assert.match(String(at(joined, "room", "code")), /^[6789BCDFGHJKLMNPQRTW]{6}$/)
    })
  )

  it.effect("runs frames for a room that were sent before the reply to create or join", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const ada = yield* newPlayer(app, "Ada")
      const bob = yield* newPlayer(app, "Bob")
      const [created, first, state] = yield* Effect.all(
        [
          ada.socket.request({ t: "create", mode: "default" }),
          ada.socket.request({ t: "send", type: "move", data: 1 }),
          ada.socket.request({ t: "setState", patch: { turn: 1 } })
        ],
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual([at(first, "ok"), at(state, "ok")], [true, true])
      const roomId = at(created, "data", "roomId")
      const [, second] = yield* Effect.all(
        [
          bob.socket.request({ t: "join", roomId }),
          bob.socket.request({ t: "send", type: "move", data: 2 })
        ],
        { concurrency: "unbounded" }
      )
      assert.isTrue(at(second, "ok"))
      assert.strictEqual((yield* ada.socket.next("message"))["data"], 2)
      const [refused, lost] = yield* Effect.all(
        [
          (yield* newPlayer(app)).socket.request({ t: "join", roomId: "rm_none" }),
          (yield* newPlayer(app)).socket.request({ t: "send", type: "move" })
        ],
        { concurrency: "unbounded" }
      )
      assert.strictEqual(at(refused, "error", "code"), "room_not_found")
      assert.strictEqual(at(lost, "error", "code"), "not_in_room")
      const eve = yield* newPlayer(app)
      const [, failed] = yield* Effect.all(
        [
          eve.socket.request({ t: "join", roomId: "rm_none" }),
          eve.socket.request({ t: "send", type: "move" })
        ],
        { concurrency: "unbounded" }
      )
      assert.strictEqual(at(failed, "error", "code"), "not_in_room")
    })
  )

  it.effect(
    "lets a second player join by a code as people type it, and delivers messages both ways",
    () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        const ada = yield* newPlayer(app, "Ada")
        const bob = yield* newPlayer(app, "Bob")
        const created = yield* ada.socket.request({ t: "create", mode: "default" })
        const [a, ...rest] = String(at(created, "data", "code")).toLowerCase()
        const code = `${a}-\u200b ${rest.join("")}`
        const joined = yield* bob.socket.request({ t: "join", code })
        assert.strictEqual(at(joined, "ok"), true)
        const news = yield* ada.socket.next("player_joined")
        assert.strictEqual(at(news, "player", "id"), bob.id)
        assert.strictEqual(at(news, "player", "displayName"), "Bob")

        yield* ada.socket.send({ t: "send", type: "move", data: { x: 1 } })
        const message = yield* bob.socket.next("message")
        assert.strictEqual(message["from"], ada.id)
        assert.strictEqual(message["type"], "move")
        assert.deepStrictEqual(message["data"], { x: 1 })
        assert.isNumber(message["at"])

        const whispered = yield* bob.socket.request({
          t: "send",
          type: "whisper",
          to: [ada.id, bob.id, "nobody"]
        })
        assert.strictEqual(at(whispered, "data", "delivered"), 2)
        yield* ada.socket.next("message", (frame) => frame["type"] === "whisper")
        yield* bob.socket.next("message", (frame) => frame["type"] === "whisper")
      })
  )

  it.effect("sends state patches to everybody with growing versions; null deletes a key", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const ada = yield* newPlayer(app)
      const bob = yield* newPlayer(app)
      const { roomId } = yield* openRoom([ada, bob])
      yield* ada.socket.request({ t: "setState", patch: { round: 1, map: "sea" } })
      yield* bob.socket.request({ t: "setState", patch: { map: null } })
      yield* bob.socket.request({ t: "setMyState", patch: { ready: true } })
      for (const { socket } of [ada, bob]) {
        const first = yield* socket.next("state")
        assert.deepStrictEqual([first["version"], first["from"]], [1, ada.id])
        assert.deepStrictEqual(first["patch"], { round: 1, map: "sea" })
        const second = yield* socket.next("state")
        assert.deepStrictEqual([second["version"], second["patch"]], [2, { map: null }])
        const mine = yield* socket.next("player_state")
        assert.deepStrictEqual([mine["playerId"], mine["patch"]], [bob.id, { ready: true }])
      }
      const cleo = yield* newPlayer(app)
      yield* cleo.socket.request({ t: "join", roomId })
      const joined = yield* cleo.socket.next("room_joined")
      assert.deepStrictEqual(at(joined, "room", "state"), { round: 1 })
      assert.deepStrictEqual(at(joined, "room", "players", 1, "state"), { ready: true })
    })
  )

  it.effect("a leave frees the seat, passes the host role on, and allows another room", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const ada = yield* newPlayer(app)
      const bob = yield* newPlayer(app)
      const { roomId } = yield* openRoom([ada, bob])
      const elsewhere = yield* ada.socket.request({ t: "create", mode: "default" })
      assert.strictEqual(at(elsewhere, "error", "code"), "already_in_room")
      assert.strictEqual(at(elsewhere, "error", "details", "roomId"), roomId)
      const left = yield* ada.socket.request({ t: "leave" })
      assert.deepStrictEqual(left["data"], {})
      const news = yield* bob.socket.next("player_left")
      assert.deepStrictEqual([news["playerId"], news["reason"]], [ada.id, "left"])
      const host = yield* bob.socket.next("host_changed")
      assert.deepStrictEqual([host["hostId"], host["reason"]], [bob.id, "left"])
      const again = yield* ada.socket.request({ t: "create", mode: "default" })
      assert.strictEqual(at(again, "ok"), true)
    })
  )

  it.effect("a locked room admits no new player and is not listed; only the host locks it", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const ada = yield* newPlayer(app)
      const bob = yield* newPlayer(app)
      const { roomId } = yield* openRoom([ada, bob])
      const refused = yield* bob.socket.request({ t: "lock", locked: true })
      assert.strictEqual(at(refused, "error", "code"), "host_only")
      yield* ada.socket.request({ t: "lock", locked: true })
      yield* bob.socket.next("locked", (frame) => frame["locked"] === true)
      const cleo = yield* newPlayer(app)
      const shut = yield* cleo.socket.request({ t: "join", roomId })
      assert.strictEqual(at(shut, "error", "code"), "room_locked")
      yield* app.eventually(
        Effect.map(listed(app), (rooms) => !rooms.includes(String(roomId))),
        "the locked room leaves the list"
      )
    })
  )

  it.effect("refuses a join of a full room, an unknown code and an id of another environment", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const ada = yield* newPlayer(app)
      const bob = yield* newPlayer(app)
      const { roomId } = yield* openRoom([ada], { maxPlayers: 1 })
      const full = yield* bob.socket.request({ t: "join", roomId })
      assert.strictEqual(at(full, "error", "code"), "room_full")
      const code = yield* bob.socket.request({ t: "join", code: "ZZZZZZ" })
      assert.strictEqual(at(code, "error", "code"), "room_not_found")
      const id = yield* bob.socket.request({ t: "join", roomId: "rm_0000000000000000000000000" })
      assert.strictEqual(at(id, "error", "code"), "room_not_found")
      yield* configure(app.production, { version: 1, features: { multiplayer: true } })
      const stranger = yield* newPlayer(app.production)
      const foreign = yield* stranger.socket.request({
        t: "join",
        roomId
      })
      assert.strictEqual(at(foreign, "error", "code"), "room_not_found")
    })
  )

  it.effect("refuses a chosen code that another room has", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const ada = yield* newPlayer(app)
      const bob = yield* newPlayer(app)
      const first = yield* ada.socket.request({ t: "create", mode: "default", code: "party1" })
      assert.strictEqual(at(first, "data", "code"), "PARTY1")
      const second = yield* bob.socket.request({ t: "create", mode: "default", code: "PARTY1" })
      assert.strictEqual(at(second, "error", "code"), "code_taken")
    })
  )

  it.effect("keeps the seat of a disconnected player, who resumes with the same state", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const ada = yield* newPlayer(app)
      const bob = yield* newPlayer(app)
      const { roomId } = yield* openRoom([ada, bob])
      yield* bob.socket.request({ t: "setMyState", patch: { hp: 3 } })
      yield* bob.socket.terminate
      const gone = yield* ada.socket.next("player_disconnected")
      assert.strictEqual(gone["playerId"], bob.id)
      const back = yield* app.online(bob)
      const held = yield* back.socket.next("welcome")
      assert.strictEqual(at(held, "rooms", 0, "roomId"), roomId)
      const reply = yield* back.socket.request({ t: "resume", roomId })
      assert.strictEqual(at(reply, "ok"), true)
      const joined = yield* back.socket.next("room_joined")
      assert.strictEqual(joined["resumed"], true)
      assert.deepStrictEqual(at(joined, "room", "players", 1, "state"), { hp: 3 })
      yield* ada.socket.next("player_reconnected")
      const nobody = yield* newPlayer(app)
      const expired = yield* nobody.socket.request({ t: "resume", roomId })
      assert.strictEqual(at(expired, "error", "code"), "resume_expired")
    })
  )

  it.effect("refuses to resume for a player who waits for a match", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const ada = yield* newPlayer(app)
      const bob = yield* newPlayer(app)
      const { roomId } = yield* openRoom([ada])
      yield* bob.socket.send({ t: "quickMatch", mode: "default" })
      const refused = yield* bob.socket.request({
        t: "resume",
        roomId
      })
      assert.strictEqual(at(refused, "error", "code"), "resume_expired")
    })
  )

  it.effect("lists public rooms newest first, and never private ones", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const ada = yield* newPlayer(app)
      const bob = yield* newPlayer(app)
      const open = yield* ada.socket.request({ t: "create", mode: "default", metadata: { a: 1 } })
      const { roomId } = yield* openRoom([bob], { private: true })
      const rooms = yield* app.eventually(
        Effect.map(listed(app), (ids) =>
          ids.includes(String(at(open, "data", "roomId"))) ? ids : undefined
        ),
        "the open room is listed"
      )
      assert.notInclude(rooms, roomId)
      const unknown = yield* request(`${app.url}/v1/rooms?mode=nope`, {
        headers: { "x-svc-key": app.publishableKey }
      })
      assert.strictEqual(unknown.status, 400)
      assert.strictEqual(at(unknown.body, "error", "code"), "mode_not_found")
    })
  )
})

const listed = (app: TestApp["Service"]): Effect.Effect<ReadonlyArray<string>> =>
  Effect.map(
    request(`${app.url}/v1/rooms?mode=default`, { headers: { "x-svc-key": app.publishableKey } }),
    ({ body }) => {
      const rooms = at(body, "rooms")
      return Array.isArray(rooms) ? rooms.map((room) => String(at(room, "id"))) : []
    }
  )
