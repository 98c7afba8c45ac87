/** The typed client against the real service, through its public interface `./client` only. */
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { WebSocket } from "ws"
import {
  type Client,
  type ClientOptions,
  createClient,
  isError,
  memoryStorage,
  type RoomId
} from "#client/client"
import { TestApp } from "#testing/app"
import { listen, rejection, until } from "../support/client/waits.ts"
import { AppLive } from "../support/service.ts"

const newClient = (options: Partial<ClientOptions> = {}) =>
  Effect.acquireRelease(
    Effect.map(TestApp, ({ publishableKey, url }) =>
      createClient({ baseUrl: url, key: publishableKey, storage: memoryStorage(), ...options })
    ),
    (client) => Effect.sync(() => client.close())
  )

const ask = <A>(call: () => Promise<A>) => Effect.promise(call)

const newPlayer = Effect.fnUntraced(function* (
  displayName: string,
  options?: Partial<ClientOptions>
) {
  const client = yield* newClient(options)
  yield* ask(() => client.sessions.guest({ displayName }))
  return client
})

const createRoom = (client: Client) => ask(() => client.rooms.create({ mode: "default" }))

/** A WebSocket class whose connections a test can cut. */
const cuttable = () => {
  const sockets: Array<WebSocket> = []
  class CuttableSocket extends WebSocket {
    constructor(url: string) {
      super(url)
      sockets.push(this)
    }
  }
  const cut = Effect.sync(() => {
    for (const socket of sockets) socket.terminate()
  })
  return { WebSocket: CuttableSocket, cut }
}

layer(AppLive, { timeout: "120 seconds", excludeTestServices: true })("the client", (it) => {
  it.effect("signs a guest in, renames it, and resumes it on the next visit", () =>
    Effect.gen(function* () {
      const storage = memoryStorage()
      const client = yield* newPlayer("Ada", { storage })
      const renamed = yield* ask(() => client.players.update({ displayName: "Countess" }))
      assert.strictEqual(renamed.displayName, "Countess")
      const later = yield* newClient({ storage })
      assert.deepStrictEqual(yield* ask(() => later.sessions.resume()), renamed)
      assert.deepStrictEqual(yield* ask(() => later.players.me()), renamed)
      yield* ask(() => later.sessions.logout())
      const last = yield* newClient({ storage, autoGuest: false })
      assert.isNull(yield* ask(() => last.sessions.resume()))
      assert.isTrue(isError(yield* rejection(() => last.players.me()), "signed_out"))
      assert.isFalse(isError(new Error("another")))
    })
  )

  it.effect("shows all members the same room after changes by any of them", () =>
    Effect.gen(function* () {
      const ada = yield* createRoom(yield* newPlayer("Ada"))
      const bobs = yield* newPlayer("Bob")
      const bob = yield* ask(() => bobs.rooms.join(ada.code.toLowerCase()))
      assert.isTrue(ada.isHost)
      assert.isFalse(bob.isHost)
      assert.strictEqual(bob.me?.displayName, "Bob")
      ada.setState({ round: 1, map: "sea" })
      bob.setState({ map: null })
      bob.setMyState({ ready: true })
      yield* ask(() => ada.lock())
      for (const room of [ada, bob]) {
        yield* until(room, ({ snapshot }) => snapshot.locked && snapshot.version === 2)
        yield* until(room, ({ players }) => players[1]?.state["ready"] === true)
      }
      assert.deepStrictEqual(ada.state, { round: 1 })
      assert.deepStrictEqual(ada.snapshot, bob.snapshot)
      yield* ask(() => ada.leave())
      yield* until(bob, ({ isHost, players }) => isHost && players.length === 1)
    })
  )

  it.effect("delivers messages in order, and only to their recipients", () =>
    Effect.gen(function* () {
      const ada = yield* createRoom(yield* newPlayer("Ada"))
      const bobs = yield* newPlayer("Bob")
      const bob = yield* ask(() => bobs.rooms.join(ada.code))
      const heard: Array<unknown> = []
      bob.on("message", ({ data, from, type }) => heard.push([from === ada.me?.id, type, data]))
      for (let step = 0; step < 50; step++) ada.send("step", step)
      const to = [bob.me?.id ?? "", "nobody"]
      const sent = yield* ask(() => ada.confirmed.send("whisper", "psst", { to }))
      assert.deepStrictEqual(sent, { delivered: 1 })
      bob.setMyState({ done: true })
      yield* until(bob, ({ me }) => me?.state["done"] === true)
      const steps = Array.from({ length: 50 }, (_, step) => [true, "step", step])
      assert.deepStrictEqual(heard, [...steps, [true, "whisper", "psst"]])
    })
  )

  it.effect("rejects with the errors of the definitions, over HTTP and socket alike", () =>
    Effect.gen(function* () {
      const client = yield* newPlayer("Ada")
      const room = yield* createRoom(client)
      const unknown = yield* rejection(() => client.rooms.list({ mode: "nope" }))
      assert(isError(unknown))
      assert.strictEqual(unknown.code, "mode_not_found")
      const seated = yield* rejection(() => client.rooms.create({ mode: "default" }))
      assert(isError(seated, "already_in_room"))
      assert.strictEqual(seated.code, "already_in_room")
      assert.strictEqual(seated.details.roomId, room.id)
      const bobs = yield* newPlayer("Bob")
      // As code of an older release has it, which no compiler checks.
      const old: RoomId = JSON.parse(JSON.stringify({ code: room.code }))
      const oldForm = yield* rejection(() => bobs.rooms.join(old))
      assert(isError(oldForm, "invalid_frame"))
      assert.include(oldForm.details.issues[0]?.message, "join(code) and join({ roomId })")
      const bob = yield* ask(() => bobs.rooms.join({ roomId: room.id }))
      assert.isTrue(isError(yield* rejection(() => bob.lock()), "host_only"))
      const big = { big: "a".repeat(63 * 1024) }
      yield* ask(() => room.confirmed.setState(big))
      const tooBig = yield* rejection(() => room.confirmed.setState({ more: big.big }))
      assert(isError(tooBig, "state_too_large"))
      assert.strictEqual(tooBig.details.unit, "bytes")
    })
  )

  it.effect("keeps the room across a reconnect", () =>
    Effect.gen(function* () {
      const line = cuttable()
      const ada = yield* createRoom(yield* newPlayer("Ada", { WebSocket: line.WebSocket }))
      const bobs = yield* newPlayer("Bob")
      const bob = yield* ask(() => bobs.rooms.join(ada.code))
      const back = yield* listen(ada, "reconnected")
      const gone = yield* listen(bob, "player_disconnected")
      yield* line.cut
      yield* Fiber.join(gone)
      bob.setState({ meanwhile: true })
      yield* until(bob, ({ state }) => state["meanwhile"] === true)
      yield* Fiber.join(back)
      assert.deepStrictEqual(ada.state, { meanwhile: true })
      assert.isTrue(ada.me?.connected)
      const heard = yield* listen(bob, "message")
      ada.send("again")
      assert.strictEqual((yield* Fiber.join(heard)).type, "again")
    })
  )

  it.effect("moves the connection to the player's newest tab", () =>
    Effect.gen(function* () {
      const storage = memoryStorage()
      const first = yield* createRoom(yield* newPlayer("Ada", { storage }))
      const closed = yield* listen(first, "closed")
      const tab = yield* newClient({ storage })
      const second = yield* ask(() => tab.rooms.resume())
      assert.strictEqual(second?.id, first.id)
      assert.deepStrictEqual(yield* Fiber.join(closed), { code: 4004, reason: "replaced" })
      assert.isTrue(isError(yield* rejection(() => first.lock()), "not_in_room"))
    })
  )

  it.effect("matches two players, and cancels the ticket of a third", () =>
    Effect.gen(function* () {
      const ada = yield* newPlayer("Ada")
      const bob = yield* newPlayer("Bob")
      const rooms = yield* ask(() =>
        Promise.all([ada.rooms.quickMatch("default"), bob.rooms.quickMatch("default")])
      )
      assert.strictEqual(rooms[0].id, rooms[1].id)
      yield* ask(() => rooms[0].leave())
      yield* ask(() => rooms[1].leave())
      const abort = new AbortController()
      const waiting = yield* Effect.forkChild(
        rejection(() => ada.rooms.quickMatch("default", { signal: abort.signal })),
        { startImmediately: true }
      )
      yield* ask(() => ada.ping())
      abort.abort()
      assert.isTrue(isError(yield* Fiber.join(waiting), "match_cancelled"))
      const room = yield* createRoom(ada)
      assert.strictEqual(ada.rooms.current, room)
    })
  )
})
