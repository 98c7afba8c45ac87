/**
 * Tabs that share one storage, with and without Web Locks: sign-in, refresh and sign-out reach every
 * tab, and a socket belongs to one player.
 */
import { afterEach, assert, describe, it, vi } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { type Client, type ClientOptions, isError, memoryStorage } from "#client/client"
import { makeClient } from "#testing/client"
import { FakeAuth } from "../support/client/fake-auth.ts"
import { scriptedService, seated } from "../support/client/scripted-service.ts"
import { call, rejection } from "../support/client/waits.ts"

const guest = "POST /v1/auth/guest"
const refresh = "POST /v1/auth/refresh"

/** Two tabs of one origin. */
const twoTabs = Effect.fnUntraced(function* (options: Partial<ClientOptions> = {}) {
  const auth = new FakeAuth()
  const tab = makeClient({
    baseUrl: "http://service.test",
    key: "pk_test",
    fetch: auth.fetch,
    storage: memoryStorage(),
    ...options
  })
  return { auth, one: yield* tab, two: yield* tab }
})

/** Waits until a tab has a player of this name, or no player. */
const shows = ({ sessions }: Client, name: string | undefined) =>
  Effect.callback<void>((resume) => {
    if (sessions.player?.displayName === name) return resume(Effect.void)
    const stop = sessions.onChange((player) => {
      if (player?.displayName === name) resume(Effect.void)
    })
    return Effect.sync(stop)
  })

const asTimePasses = <A, E>(effect: Effect.Effect<A, E>) =>
  Effect.raceFirst(
    effect,
    Effect.forever(Effect.andThen(TestClock.adjust("250 millis"), Effect.yieldNow))
  )

afterEach(() => vi.unstubAllGlobals())

describe("tabs", () => {
  it.effect("creates one guest when tabs open at once", () =>
    Effect.gen(function* () {
      const { auth, one, two } = yield* twoTabs()
      const players = yield* Effect.promise(() =>
        Promise.all([one.sessions.ensure(), two.players.me()])
      )
      assert.strictEqual(players[0].id, players[1].id)
      assert.strictEqual(auth.count(guest), 1)
    })
  )

  it.effect("switches all tabs to the player who signs in in one of them", () =>
    Effect.gen(function* () {
      const { auth, one, two } = yield* twoTabs()
      yield* Effect.promise(() => one.sessions.guest({ displayName: "Ada" }))
      yield* shows(two, "Ada")
      yield* Effect.promise(() => two.sessions.guest({ displayName: "Bob" }))
      yield* shows(one, "Bob")
      assert.strictEqual((yield* Effect.promise(() => one.players.me())).displayName, "Bob")
      assert.strictEqual(auth.count(refresh), 0)
    })
  )

  it.effect("signs all tabs out together, and in again", () =>
    Effect.gen(function* () {
      const { auth, one, two } = yield* twoTabs()
      yield* Effect.promise(() => one.sessions.guest({ displayName: "Ada" }))
      yield* shows(two, "Ada")
      yield* Effect.promise(() => one.sessions.logout())
      yield* shows(two, undefined)
      assert.isTrue(isError(yield* rejection(() => two.players.me()), "signed_out"))
      yield* Effect.promise(() => one.sessions.guest({ displayName: "Bob" }))
      yield* shows(two, "Bob")
      assert.strictEqual(auth.count(guest), 2)
    })
  )

  it.effect("lets one tab write at a time: the second reads what the first has stored", () =>
    Effect.gen(function* () {
      const { auth, one, two } = yield* twoTabs()
      yield* Effect.promise(() => one.sessions.guest({ displayName: "Ada" }))
      yield* shows(two, "Ada")
      yield* TestClock.adjust("14 minutes")
      const held = auth.hold(refresh, () => Response.json(auth.issue()))
      const first = yield* call(() => one.sessions.accessToken())
      yield* Effect.promise(() => held.asked)
      const second = yield* call(() => two.sessions.accessToken())
      held.release()
      assert.strictEqual(yield* Fiber.join(first), yield* Fiber.join(second))
      assert.strictEqual(auth.count(refresh), 1)
    })
  )

  it.effect("adopts the winner's tokens in the tab that loses a race without Web Locks", () =>
    Effect.gen(function* () {
      vi.stubGlobal("navigator", {})
      const { auth, one, two } = yield* twoTabs()
      yield* Effect.promise(() => one.sessions.guest({ displayName: "Ada" }))
      yield* shows(two, "Ada")
      yield* TestClock.adjust("14 minutes")
      const tokens = yield* asTimePasses(
        Effect.promise(() => Promise.all([one.sessions.accessToken(), two.sessions.accessToken()]))
      )
      assert.strictEqual(tokens[0], tokens[1])
      assert.strictEqual(auth.count(refresh), 2)
      assert.strictEqual(one.sessions.player?.id, two.sessions.player?.id)
    })
  )
})

describe("the socket", () => {
  it.effect("reopens the socket for the next player", () =>
    Effect.gen(function* () {
      const service = yield* scriptedService
      const { client, room } = yield* seated(service)
      yield* Effect.promise(() => client.sessions.guest({ displayName: "Bob" }))
      const next = yield* service.socket
      assert.deepStrictEqual(yield* next.next, { t: "auth", key: "pk_test", token: "access-2" })
      assert.deepStrictEqual(room.closed, { code: 1000, reason: "signed_out" })
    }).pipe(Effect.scoped)
  )

  it.effect("replaces a socket that was still opening for the previous player", () =>
    Effect.gen(function* () {
      const service = yield* scriptedService
      const client = yield* service.client()
      yield* call(() => client.ping())
      const first = yield* service.socket
      yield* first.next
      yield* Effect.promise(() => client.sessions.guest({ displayName: "Bob" }))
      yield* first.welcome()
      const next = yield* service.socket
      assert.deepStrictEqual(yield* next.next, { t: "auth", key: "pk_test", token: "access-2" })
    }).pipe(Effect.scoped)
  )

  it.effect("sends the renewed token of the socket's player", () =>
    Effect.gen(function* () {
      const service = yield* scriptedService
      const { client, room, socket } = yield* seated(service)
      service.auth.expireAccess()
      yield* Effect.promise(() => client.players.me())
      assert.deepStrictEqual(yield* socket.next, { t: "auth", token: "access-2" })
      assert.isUndefined(room.closed)
    }).pipe(Effect.scoped)
  )
})
