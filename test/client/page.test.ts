/** The client and its page: listeners, waking up, lost frames, and pages or servers without a storage. */
import { afterEach, assert, describe, it, vi } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { type ClientOptions, isError, memoryStorage, type SessionStorage } from "#client/client"
import { makeClient } from "#testing/client"
import { FakeAuth } from "../support/client/fake-auth.ts"
import { scriptedService, seated } from "../support/client/scripted-service.ts"
import { call, listen, rejection, status } from "../support/client/waits.ts"

/** A page for clients of this process, which counts the listeners of its window. */
const openPage = (more: object = {}) => {
  const window = new EventTarget()
  const page = { hidden: false }
  const listeners = new Set<unknown>()
  vi.stubGlobal("document", page)
  vi.stubGlobal("addEventListener", (name: string, listener: () => void) => {
    listeners.add(listener)
    window.addEventListener(name, listener)
  })
  vi.stubGlobal("removeEventListener", (name: string, listener: () => void) => {
    listeners.delete(listener)
    window.removeEventListener(name, listener)
  })
  for (const [name, value] of Object.entries(more)) vi.stubGlobal(name, value)
  return {
    listeners: () => listeners.size,
    emit: (name: string, { hidden = false, ...fields } = {}) => {
      page.hidden = hidden
      window.dispatchEvent(Object.assign(new Event(name), fields))
    }
  }
}

const newClient = (auth: FakeAuth, options: Partial<ClientOptions> = {}) =>
  makeClient({ baseUrl: "http://service.test", key: "pk_test", fetch: auth.fetch, ...options })

const ask = <A>(run: () => Promise<A>) => Effect.promise(run)

afterEach(() => vi.unstubAllGlobals())

describe("a client in a page", () => {
  it.effect("removes its listeners at close, and adds them again with the next call", () =>
    Effect.gen(function* () {
      const page = openPage()
      const auth = new FakeAuth()
      const storage = memoryStorage()
      const client = yield* newClient(auth, { storage })
      const tab = yield* newClient(auth, { storage })
      yield* ask(() => client.sessions.guest({ displayName: "Ada" }))
      const before = page.listeners()
      assert.isAbove(before, 0)
      client.close()
      tab.close()
      assert.strictEqual(page.listeners(), 0)
      yield* ask(() => tab.sessions.guest({ displayName: "Bob" }))
      assert.strictEqual(client.sessions.player?.displayName, "Ada", "nobody listens")
      assert.strictEqual((yield* ask(() => client.sessions.ensure())).displayName, "Bob")
      assert.strictEqual(page.listeners(), before)
    })
  )

  it.effect("reconnects at once when the page becomes visible or online", () =>
    Effect.gen(function* () {
      const page = openPage()
      for (const event of ["visibilitychange", "online"]) {
        const service = yield* scriptedService
        const { client, socket } = yield* seated(service)
        yield* socket.close()
        yield* status(client, "connecting")
        // The client reports the status before it waits.
        yield* Effect.yieldNow
        page.emit("visibilitychange", { hidden: true })
        assert.strictEqual(service.sockets(), 1)
        // The clock of the client stands still: without the event it would wait for ever.
        page.emit(event)
        const next = yield* service.socket
        assert.strictEqual((yield* next.next)["t"], "auth")
        client.close()
        assert.strictEqual(page.listeners(), 0)
      }
    }).pipe(Effect.scoped)
  )

  it.effect(
    "checks an open socket when the page wakes, and replaces a dead one in three seconds",
    () =>
      Effect.gen(function* () {
        const page = openPage()
        const service = yield* scriptedService
        const { client, socket } = yield* seated(service)
        page.emit("online")
        assert.strictEqual((yield* socket.next)["t"], "ping")
        yield* TestClock.adjust("3 seconds")
        yield* status(client, "connecting")
      }).pipe(Effect.scoped)
  )
})

describe("frames that a broken connection took", () => {
  it.effect("give a warning with their number, and none after a frame has arrived", () =>
    Effect.gen(function* () {
      const service = yield* scriptedService
      const { room, socket } = yield* seated(service)
      room.send("move", 1)
      room.send("move", 2)
      yield* socket.next
      yield* socket.next
      const warned = yield* listen(room, "warn")
      yield* socket.close()
      const warning = yield* Fiber.join(warned)
      assert.strictEqual(warning.code, "disconnected")
      assert.include(warning.message, "2 frames")
    }).pipe(Effect.scoped)
  )

  it.effect("give a warning at once while the socket closes", () =>
    Effect.gen(function* () {
      const service = yield* scriptedService
      const { WebSocket } = yield* Effect.promise(() => import("ws"))
      const opened: Array<InstanceType<typeof WebSocket>> = []
      class Watched extends WebSocket {
        constructor(url: string) {
          super(url)
          opened.push(this)
        }
      }
      const { room } = yield* seated(service, {}, { WebSocket: Watched })
      opened[0]?.close()
      const warned = yield* listen(room, "warn")
      room.send("move", 1)
      assert.strictEqual((yield* Fiber.join(warned)).code, "disconnected")
    }).pipe(Effect.scoped)
  )
})

describe("a client without a storage", () => {
  it.effect("refuses calls that need a player outside of a page, and says what to pass", () =>
    Effect.gen(function* () {
      const auth = new FakeAuth()
      const client = yield* newClient(auth)
      for (const run of [
        () => client.sessions.ensure(),
        () => client.sessions.guest(),
        () => client.players.me(),
        () => client.rooms.quickMatch("default")
      ]) {
        const error = yield* rejection(run)
        assert.instanceOf(error, TypeError)
        assert.match(String(error), /pass the option storage/)
      }
      assert.deepStrictEqual(auth.requests, [])
      yield* rejection(() => client.definitions())
      assert.deepStrictEqual(auth.requests, ["GET /v1/gamedata/definitions"])
      const own = yield* newClient(auth, { storage: memoryStorage() })
      assert.isTrue((yield* ask(() => own.sessions.ensure())).isGuest)
    })
  )

  it.effect("plays in a page whose localStorage is null or refuses to store, and says so", () =>
    Effect.gen(function* () {
      const full: SessionStorage = {
        getItem: () => null,
        setItem: () => {
          throw new Error("QuotaExceededError")
        },
        removeItem: () => undefined
      }
      const texts = new Map<string, string>()
      const working: SessionStorage = {
        getItem: (name) => texts.get(name) ?? null,
        setItem: (name, value) => void texts.set(name, value),
        removeItem: (name) => void texts.delete(name)
      }
      for (const [localStorage, isPersistent] of [
        [null, false],
        [full, false],
        [working, true]
      ] as const) {
        openPage({ localStorage })
        const client = yield* newClient(new FakeAuth())
        const { id } = yield* ask(() => client.sessions.ensure())
        assert.strictEqual(client.sessions.isPersistent, isPersistent)
        assert.strictEqual((yield* ask(() => client.sessions.ensure())).id, id)
        vi.unstubAllGlobals()
      }
    })
  )

  it.effect("ends the connection attempt of a client on a server with the same error", () =>
    Effect.gen(function* () {
      const client = yield* newClient(new FakeAuth())
      const pinging = yield* call(() => client.ping())
      const error = yield* Effect.flip(Fiber.join(pinging))
      assert.instanceOf(error, TypeError)
      assert.isFalse(isError(error, "network_error"))
      assert.strictEqual(client.status, "offline")
    })
  )
})
