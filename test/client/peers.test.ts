/** The mesh of a peer-to-peer room over WebRTC in memory. `peers-browser.test.ts` has that of Chromium. */
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Fiber, Layer, type Scope } from "effect"
import { TestClock } from "effect/testing"
import {
  type Client,
  createClient,
  isError,
  memoryStorage,
  type Room,
  type SessionStorage
} from "#client/client"
import { PeerLink } from "#client/peer-link"
import { TestApp } from "#testing/app"
import { effectTimers } from "#testing/client"
import { at, configure } from "#testing/players"
import { rejection } from "../support/client/waits.ts"
import { FakePeers } from "../support/client/fake-peers.ts"
import { DatabaseLive } from "../support/service.ts"

const AppLive = TestApp.layerWith({
  SVC_TURN_URLS: "turn:turn.example.com:3478",
  SVC_TURN_SECRET: "shared-with-the-turn-server"
}).pipe(Layer.provide(DatabaseLive))

const modes = [
  { key: "mesh", minPlayers: 2, transport: "p2p" },
  { key: "plain", minPlayers: 2 }
]

const ask = <A>(run: () => Promise<A>) => Effect.promise(run)

interface Page {
  readonly client: Client
  /** Types of the messages that it sent through the service. */
  readonly relayed: ReadonlyArray<string>
  readonly storage: SessionStorage
}

/** A player's page, which closes with the scope. */
const open = Effect.fnUntraced(function* (
  storage = memoryStorage()
): Effect.fn.Return<Page, never, Scope.Scope | TestApp> {
  const { publishableKey: key, url: baseUrl } = yield* TestApp
  const relayed: Array<string> = []
  const debug = (direction: unknown, text: unknown) => {
    if (direction !== "sent" || typeof text !== "string" || !text.startsWith("{")) return
    const frame: unknown = JSON.parse(text)
    if (at(frame, "t") === "send") relayed.push(String(at(frame, "type")))
  }
  const client = yield* Effect.acquireRelease(
    Effect.sync(() => createClient({ baseUrl, key, storage, debug })),
    (opened) => Effect.sync(() => close(opened))
  )
  return { client, relayed, storage }
})

const close = (client: Client) => {
  client.rooms.current?.peers.close()
  client.close()
}

const roomOf = ({ client }: Page): Room => client.rooms.current ?? assert.fail("no room")

const idOf = (page: Page) => roomOf(page).me?.id ?? assert.fail("no seat")

const connect = ({ RTCPeerConnection }: FakePeers, page: Page) =>
  ask(() => roomOf(page).peers.connect({ RTCPeerConnection }))

/** Waits until messages to a member take a route. */
const routed = (page: Page, to: Page, wanted: "direct" | "server") =>
  Effect.callback<void>((resume) => {
    const room = roomOf(page)
    const id = idOf(to)
    if (room.peers.route(id) === wanted) return resume(Effect.void)
    const stop = room.on("peer", ({ playerId, route }) => {
      if (playerId !== id || route !== wanted) return
      stop()
      resume(Effect.void)
    })
    return Effect.sync(stop)
  })

const direct = (pages: ReadonlyArray<Page>) =>
  Effect.forEach(pages, (one) =>
    Effect.forEach(pages, (other) => (one === other ? Effect.void : routed(one, other, "direct")))
  )

/** The next message of a type. */
const message = (page: Page, type: string) =>
  Effect.forkChild(
    Effect.callback<object>((resume) => {
      const stop = roomOf(page).on("message", (event) => {
        const { from, data } = event
        if (event.type === type) resume(Effect.succeed({ from, data }))
      })
      return Effect.sync(stop)
    }),
    { startImmediately: true }
  )

/** Pages of players in a room of a mode. */
const together = Effect.fnUntraced(function* (mode: string, count: number) {
  const app = yield* TestApp
  yield* configure(app, { features: { multiplayer: true }, multiplayer: { modes } })
  const pages = yield* Effect.forEach(Array.from({ length: count }), () => open())
  const [host, ...others] = pages
  const { id } = yield* ask(() => host?.client.rooms.create({ mode }) ?? assert.fail("no host"))
  for (const { client } of others) yield* ask(() => client.rooms.join({ roomId: id }))
  return pages
})

layer(AppLive, { timeout: "120 seconds", excludeTestServices: true })("room.peers", (it) => {
  it.effect(
    "connects three players in pairs, and sends by the service to those not yet connected",
    () =>
      Effect.gen(function* () {
        const network = new FakePeers()
        const [ada, bob, cleo] = yield* together("mesh", 3)
        if (ada === undefined || bob === undefined || cleo === undefined) return assert.fail()
        yield* connect(network, bob)
        yield* connect(network, ada)
        yield* direct([ada, bob])
        const first = [yield* message(bob, "first"), yield* message(cleo, "first")] as const
        roomOf(ada).peers.send("first", { x: 1 })
        const expected = { from: idOf(ada), data: { x: 1 } }
        assert.deepStrictEqual(yield* Fiber.join(first[0]), expected)
        assert.deepStrictEqual(yield* Fiber.join(first[1]), expected)
        assert.deepStrictEqual(ada.relayed, ["first"])
        yield* connect(network, cleo)
        yield* direct([ada, bob, cleo])
        const second = [yield* message(bob, "second"), yield* message(cleo, "second")] as const
        roomOf(ada).peers.send("second", null, { reliable: false })
        for (const fiber of second) {
          assert.deepStrictEqual(yield* Fiber.join(fiber), { from: idOf(ada), data: null })
        }
        const third = yield* message(ada, "third")
        roomOf(cleo).peers.send("third", undefined, { to: [idOf(ada)] })
        assert.deepStrictEqual(yield* Fiber.join(third), { from: idOf(cleo), data: undefined })
        assert.deepStrictEqual([ada.relayed, cleo.relayed], [["first"], []])
      })
  )

  it.effect("connects two peers again after a reload on either side, and not after a close", () =>
    Effect.gen(function* () {
      const network = new FakePeers()
      const [ada, bob] = yield* together("mesh", 2)
      if (ada === undefined || bob === undefined) return assert.fail()
      let pages = [ada, bob]
      for (const page of pages) yield* connect(network, page)
      yield* direct(pages)
      for (const leaving of [0, 1]) {
        const { client, storage } = pages[leaving] ?? assert.fail()
        const stays = pages[1 - leaving] ?? assert.fail()
        close(client)
        const back = yield* open(storage)
        yield* ask(() => back.client.rooms.resume())
        pages = leaving === 0 ? [back, stays] : [stays, back]
        yield* connect(network, back)
        yield* direct(pages)
      }
      const [first, second] = [pages[0] ?? assert.fail(), pages[1] ?? assert.fail()]
      roomOf(first).peers.close()
      yield* routed(second, first, "server")
      const last = yield* message(first, "last")
      roomOf(second).peers.send("last", 1)
      assert.deepStrictEqual(yield* Fiber.join(last), { from: idOf(second), data: 1 })
      assert.deepStrictEqual(second.relayed, ["last"])
    })
  )

  it.effect(
    "connects two peers again when the path breaks, and meanwhile sends by the service",
    () =>
      Effect.gen(function* () {
        const network = new FakePeers()
        const [ada, bob] = yield* together("mesh", 2)
        if (ada === undefined || bob === undefined) return assert.fail()
        for (const page of [ada, bob]) yield* connect(network, page)
        yield* direct([ada, bob])
        network.isBlocked = true
        network.cut()
        yield* routed(ada, bob, "server")
        const relayed = yield* message(bob, "relayed")
        roomOf(ada).peers.send("relayed", 1)
        yield* Fiber.join(relayed)
        assert.deepStrictEqual(ada.relayed, ["relayed"])
        network.isBlocked = false
        yield* direct([ada, bob])
        yield* ask(() => roomOf(bob).leave())
        assert.strictEqual(roomOf(ada).peers.route("pl_nobody"), "server")
      })
  )

  it.effect("refuses data beyond 16 KiB on open data channels too, as over the service", () =>
    Effect.gen(function* () {
      const network = new FakePeers()
      const [ada, bob] = yield* together("mesh", 2)
      if (ada === undefined || bob === undefined) return assert.fail()
      for (const page of [ada, bob]) yield* connect(network, page)
      yield* direct([ada, bob])
      const received: Array<string> = []
      roomOf(bob).on("message", ({ type }) => received.push(type))
      const warned = new Promise<string>((resolve) =>
        roomOf(ada).on("warn", ({ code }) => resolve(code))
      )
      // Two quotes are part of the JSON, and each é takes two bytes.
      roomOf(ada).peers.send("large", "é".repeat(8 * 1024))
      assert.strictEqual(yield* ask(() => warned), "payload_too_large")
      const last = yield* message(bob, "whole")
      roomOf(ada).peers.send("whole", "é".repeat(8 * 1024 - 1))
      yield* Fiber.join(last)
      assert.deepStrictEqual(received, ["whole"])
      assert.deepStrictEqual(ada.relayed, ["large"])
    })
  )

  it.effect("ignores what is no message or signal of the mesh", () =>
    Effect.gen(function* () {
      const network = new FakePeers()
      const [ada, bob] = yield* together("mesh", 2)
      if (ada === undefined || bob === undefined) return assert.fail()
      for (const page of [ada, bob]) yield* connect(network, page)
      yield* direct([ada, bob])
      const to = idOf(bob)
      yield* ask(() => roomOf(ada).signal({ to, kind: "candidate", data: { foo: 1 }, gen: 1 }))
      yield* ask(() => roomOf(ada).signal({ to, kind: "answer", data: { sdp: "?" }, gen: 1 }))
      const received: Array<string> = []
      roomOf(bob).on("message", ({ type }) => received.push(type))
      for (const text of ["{", "1", "{}", "[1]", "[]", `["${"x".repeat(65)}"]`])
        network.inject(text)
      const last = yield* message(bob, "last")
      roomOf(ada).peers.send("last")
      yield* Fiber.join(last)
      assert.deepStrictEqual(received, ["last"])
    })
  )

  it.effect(
    "rejects `peers.connect` in a room that is not peer to peer, and sends by the service there",
    () =>
      Effect.gen(function* () {
        const [ada, bob] = yield* together("plain", 2)
        if (ada === undefined || bob === undefined) return assert.fail()
        const { RTCPeerConnection } = new FakePeers()
        const refused = yield* rejection(() => roomOf(ada).peers.connect({ RTCPeerConnection }))
        assert.isTrue(isError(refused, "p2p_only"))
        const received = yield* message(bob, "hello")
        roomOf(ada).peers.send("hello", 1)
        assert.deepStrictEqual(yield* Fiber.join(received), { from: idOf(ada), data: 1 })
        assert.instanceOf(yield* rejection(() => roomOf(bob).peers.connect()), TypeError)
      })
  )
})

describe("a link of the mesh", () => {
  it.effect("gives up a link of the mesh after seven attempts, until the other member begins", () =>
    Effect.gen(function* () {
      const network = new FakePeers()
      network.isBlocked = true
      const sent: Array<string> = []
      const link = new PeerLink({
        isCaller: true,
        timers: yield* effectTimers,
        RTCPeerConnection: network.RTCPeerConnection,
        servers: async () => ({ iceServers: [], iceTransportPolicy: "all", expiresAt: "" }),
        signal: async ({ kind }) => sent.push(kind),
        received: () => undefined,
        routed: () => undefined,
        log: () => undefined
      })
      const offers = () => sent.filter((kind) => kind === "offer").length
      link.begin()
      for (let minutes = 0; minutes < 30 && offers() < 8; minutes += 0.25) {
        yield* TestClock.adjust("15 seconds")
        yield* Effect.promise(() => new Promise((resolve) => void setImmediate(resolve)))
      }
      assert.strictEqual(offers(), 7)
      link.receive({ t: "signal", from: "pl_1", kind: "restart" })
      yield* Effect.promise(() => new Promise((resolve) => void setImmediate(resolve)))
      assert.strictEqual(offers(), 8)
      link.close()
    })
  )
})
