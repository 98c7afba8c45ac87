/** Saves that wait on the device: over a reload, over failures, and for their player only. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import {
  type Client,
  isError,
  type Player,
  type SaveEvents,
  type SessionStorage
} from "#client/client"
import { makeClient } from "#testing/client"
import { FakeAuth, refusal } from "../support/client/fake-auth.ts"
import { rejection } from "../support/client/waits.ts"

/** A service with saves, which a test makes unreachable. */
class Service {
  readonly #auth = new FakeAuth()
  readonly #texts = new Map<string, string>()
  /** The pages before a reload are gone: they follow no change. */
  readonly #storage: SessionStorage = {
    getItem: (name) => this.#texts.get(name) ?? null,
    setItem: (name, text) => {
      if (this.isDiskFull) throw new DOMException("", "QuotaExceededError")
      this.#texts.set(name, text)
    },
    removeItem: (name) => void this.#texts.delete(name)
  }
  readonly written: Array<string> = []
  isOffline = false
  isDiskFull = false
  isBehindProxy = false
  refused: string | undefined

  readonly fetch: typeof globalThis.fetch = async (input, init) => {
    if (this.isOffline) throw new TypeError("fetch failed")
    const { pathname } = new URL(String(input))
    if (!pathname.startsWith("/v1/saves/")) return this.#auth.fetch(input, init)
    if (this.isBehindProxy) return new Response("<h1>Bad gateway</h1>", { status: 502 })
    if (this.refused !== undefined) return refusal(413, this.refused, {})
    const key = pathname.slice("/v1/saves/".length)
    this.written.push(`${key} ${String(init?.body)}`)
    return Response.json({ key, version: 1, size: 1, updatedAt: "2026-11-20T21:00:00.000Z" })
  }

  /** Signs this player in again. The session endpoints here have no other sign-in than that of guests. */
  readonly comeBack = Effect.fnUntraced(function* (
    this: Service,
    { sessions }: Client,
    { displayName, id }: Player
  ) {
    const session = this.#auth.issue()
    const player = { ...session.player, id, displayName }
    this.#auth.instead("POST /v1/auth/guest", () => Response.json({ ...session, player }))
    yield* ask(() => sessions.logout())
    yield* ask(() => sessions.guest())
  })

  /** Whether the device holds a save. */
  get isWaiting(): boolean {
    return this.#texts.has("player-backend:pk_test:saves")
  }

  /** Cuts the text of the queue, as a crash may. */
  damage(): void {
    this.#texts.set("player-backend:pk_test:saves", '[{"key"')
  }

  /** A page load on the device. */
  readonly load = Effect.suspend(() =>
    makeClient({
      baseUrl: "http://service.test",
      key: "pk_test",
      fetch: this.fetch,
      storage: this.#storage
    })
  )
}

/** Lets time pass until this holds. */
const passUntil = Effect.fnUntraced(function* (holds: () => boolean) {
  while (!holds()) yield* Effect.andThen(TestClock.adjust("250 millis"), Effect.yieldNow)
})

const ask = <A>(run: () => Promise<A>) => Effect.promise(run)

/** The next event of queued saves, as time passes. */
const next = <Name extends keyof SaveEvents>({ saves }: Client, name: Name) =>
  Effect.raceFirst(
    Effect.callback<SaveEvents[Name]>((resume) => {
      const stop = saves.on(name, (event) => resume(Effect.succeed(event)))
      return Effect.sync(stop)
    }),
    Effect.forever(Effect.andThen(TestClock.adjust("250 millis"), Effect.yieldNow))
  )

describe("queued saves", () => {
  it.effect(
    "keeps queued saves over a reload offline, and sends only the last write of a key",
    () =>
      Effect.gen(function* () {
        const service = new Service()
        const first = yield* service.load
        yield* ask(() => first.sessions.ensure())
        service.isOffline = true
        yield* ask(() => first.saves.enqueue("slot-1", 1))
        // The access token expires meanwhile.
        yield* TestClock.adjust("20 minutes")
        const second = yield* service.load
        yield* ask(() => second.saves.enqueue("slot-2", 2))
        yield* ask(() => second.saves.enqueue("slot-1", 3))
        assert.deepStrictEqual(yield* ask(() => second.saves.queued()), [
          { key: "slot-2", data: 2 },
          { key: "slot-1", data: 3 }
        ])
        assert.deepStrictEqual(service.written, [])
        service.isOffline = false
        const third = yield* service.load
        yield* ask(() => third.sessions.ensure())
        // The page before the reload may still send, too.
        yield* passUntil(() => service.written.length === 2)
        assert.deepStrictEqual(service.written, ['slot-2 {"data":2}', 'slot-1 {"data":3}'])
        yield* passUntil(() => !service.isWaiting)
        assert.deepStrictEqual(yield* ask(() => third.saves.queued()), [])
      })
  )

  it.effect("sends queued saves again until the service takes them", () =>
    Effect.gen(function* () {
      const service = new Service()
      const client = yield* service.load
      yield* ask(() => client.sessions.ensure())
      service.refused = "rate_limited"
      yield* ask(() => client.saves.enqueue("slot-1", 1))
      yield* TestClock.adjust("5 seconds")
      service.refused = undefined
      service.isBehindProxy = true
      yield* TestClock.adjust("5 minutes")
      assert.deepStrictEqual(service.written, [])
      service.isBehindProxy = false
      assert.strictEqual((yield* next(client, "saved")).key, "slot-1")
      assert.deepStrictEqual(service.written, ['slot-1 {"data":1}'])
      assert.deepStrictEqual(yield* ask(() => client.saves.queued()), [])
    })
  )

  it.effect("removes a queued save that the service refuses, with an event", () =>
    Effect.gen(function* () {
      const service = new Service()
      const client = yield* service.load
      service.refused = "save_too_large"
      yield* ask(() => client.saves.enqueue("slot-1", 1))
      const { data, error, key } = yield* next(client, "refused")
      assert.deepStrictEqual([key, data, error.code], ["slot-1", 1, "save_too_large"])
      assert.deepStrictEqual(yield* ask(() => client.saves.queued()), [])
    })
  )

  it.effect("refuses to queue a save on a full device, and takes a damaged queue for empty", () =>
    Effect.gen(function* () {
      const service = new Service()
      const client = yield* service.load
      yield* ask(() => client.sessions.ensure())
      service.isDiskFull = true
      const full = yield* rejection(() => client.saves.enqueue("slot-1", 1))
      assert.isTrue(isError(full, "overloaded"))
      service.isDiskFull = false
      service.damage()
      assert.deepStrictEqual(yield* ask(() => client.saves.queued()), [])
      yield* ask(() => client.saves.enqueue("slot-1", 2))
      assert.strictEqual((yield* next(client, "saved")).key, "slot-1")
    })
  )

  it.effect(
    "holds back the queued saves of a player who has left, and sends them when they return",
    () =>
      Effect.gen(function* () {
        const service = new Service()
        const client = yield* service.load
        const ada = yield* ask(() => client.sessions.ensure())
        service.isOffline = true
        yield* ask(() => client.saves.enqueue("slot-1", 1))
        yield* ask(() => client.saves.enqueue("slot-2", 2))
        service.isOffline = false
        yield* ask(() => client.sessions.logout())
        yield* ask(() => client.sessions.guest())
        yield* ask(() => client.saves.enqueue("slot-1", 3))
        assert.strictEqual((yield* next(client, "saved")).key, "slot-1")
        yield* TestClock.adjust("5 minutes")
        assert.deepStrictEqual(service.written, ['slot-1 {"data":3}'])
        yield* service.comeBack(client, ada)
        yield* passUntil(() => !service.isWaiting)
        assert.deepStrictEqual(service.written.slice(1), ['slot-1 {"data":1}', 'slot-2 {"data":2}'])
        assert.deepStrictEqual(yield* ask(() => client.saves.queued()), [])
      })
  )

  it.effect(
    "queues at most 32 saves, and drops the oldest of a player who has left for another",
    () =>
      Effect.gen(function* () {
        const service = new Service()
        const client = yield* service.load
        const ada = yield* ask(() => client.sessions.ensure())
        service.isOffline = true
        yield* Effect.forEach(Array.from({ length: 32 }).keys(), (slot) =>
          ask(() => client.saves.enqueue(`slot-${slot}`, 1))
        )
        const full = yield* rejection(() => client.saves.enqueue("slot-32", 1))
        assert.isTrue(isError(full, "overloaded"))
        yield* ask(() => client.saves.enqueue("slot-7", 2))
        service.isOffline = false
        yield* ask(() => client.sessions.logout())
        yield* ask(() => client.sessions.guest())
        assert.deepStrictEqual(yield* ask(() => client.saves.queued()), [])
        yield* TestClock.adjust("5 minutes")
        assert.deepStrictEqual(service.written, [])
        yield* ask(() => client.saves.enqueue("slot-1", 3))
        assert.strictEqual((yield* next(client, "saved")).key, "slot-1")
        assert.deepStrictEqual(service.written, ['slot-1 {"data":3}'])
        yield* service.comeBack(client, ada)
        yield* passUntil(() => !service.isWaiting)
        const others = Array.from({ length: 31 }, (_, i) => i + 1).filter((slot) => slot !== 7)
        assert.deepStrictEqual(service.written.slice(1), [
          ...others.map((slot) => `slot-${slot} {"data":1}`),
          'slot-7 {"data":2}'
        ])
      })
  )
})
