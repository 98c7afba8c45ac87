/** The client's session: storage, renewal, sharing between tabs, and its end. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { type ClientOptions, isError, memoryStorage, type SessionStorage } from "#client/client"
import { makeClient } from "#testing/client"
import { FakeAuth, refusal } from "../support/client/fake-auth.ts"
import { rejection } from "../support/client/waits.ts"

const guest = "POST /v1/auth/guest"
const refresh = "POST /v1/auth/refresh"
const me = "GET /v1/players/me"
const rename = "PATCH /v1/players/me"

const newTab = (auth: FakeAuth, options: Partial<ClientOptions> = {}) =>
  makeClient({
    baseUrl: "http://service.test",
    key: "pk_test",
    fetch: auth.fetch,
    storage: memoryStorage(),
    ...options
  })

const inStorage = (storage: SessionStorage) =>
  Effect.promise(async () => String(await storage.getItem("player-backend:pk_test")))

/** Advances the clock until an effect completes. */
const asTimePasses = <A, E>(effect: Effect.Effect<A, E>) =>
  Effect.raceFirst(
    effect,
    Effect.forever(Effect.andThen(TestClock.adjust("250 millis"), Effect.yieldNow))
  )

describe("the session", () => {
  it.effect("creates a guest on the first call, and keeps it on later visits", () =>
    Effect.gen(function* () {
      const auth = new FakeAuth()
      const storage = memoryStorage()
      const first = yield* newTab(auth, { storage })
      const player = yield* Effect.promise(() => first.players.me())
      const second = yield* newTab(auth, { storage })
      const resumed = yield* Effect.promise(() => second.sessions.ensure())
      assert.strictEqual(resumed.id, player.id)
      assert.strictEqual(second.sessions.player?.id, player.id)
      assert.deepStrictEqual(auth.requests, [guest, me])
    })
  )

  it.effect("renames the player of the last visit who has chosen another name, once", () =>
    Effect.gen(function* () {
      const auth = new FakeAuth()
      const storage = memoryStorage()
      const first = yield* newTab(auth, { storage })
      const player = yield* Effect.promise(() => first.sessions.ensure({ displayName: "Ada " }))
      assert.strictEqual(player.displayName, "Ada")
      const second = yield* newTab(auth, { storage })
      const heard: Array<string | undefined> = []
      second.sessions.onChange((changed) => heard.push(changed?.displayName))
      const ensure = () => second.sessions.ensure({ displayName: " Zoe" })
      const renamed = yield* Effect.promise(ensure)
      assert.deepStrictEqual(yield* Effect.promise(ensure), { ...player, displayName: "Zoe" })
      assert.strictEqual(renamed.id, player.id)
      assert.deepStrictEqual(heard, ["Ada", "Zoe"])
      assert.deepStrictEqual(auth.requests, [guest, rename])
      const third = yield* newTab(auth, { storage })
      yield* Effect.promise(() => third.sessions.ensure())
      assert.strictEqual(third.sessions.player?.displayName, "Zoe")
    })
  )

  it.effect("rejects with the error of the rename, and stays signed in", () =>
    Effect.gen(function* () {
      const auth = new FakeAuth()
      const client = yield* newTab(auth)
      yield* Effect.promise(() => client.sessions.ensure({ displayName: "Ada" }))
      auth.instead(rename, () => refusal(400, "invalid_request"))
      const refused = yield* rejection(() => client.sessions.ensure({ displayName: "" }))
      assert.isTrue(isError(refused, "invalid_request"))
      assert.strictEqual(client.sessions.player?.displayName, "Ada")
    })
  )

  it.effect("creates one guest for concurrent calls", () =>
    Effect.gen(function* () {
      const auth = new FakeAuth()
      const client = yield* newTab(auth)
      yield* Effect.promise(() => Promise.all([client.players.me(), client.players.me()]))
      assert.strictEqual(auth.count(guest), 1)
    })
  )

  it.effect("starts a session only on request if autoGuest is off", () =>
    Effect.gen(function* () {
      const auth = new FakeAuth()
      const client = yield* newTab(auth, { autoGuest: false })
      assert.isTrue(isError(yield* rejection(() => client.players.me()), "signed_out"))
      assert.isNull(yield* Effect.promise(() => client.sessions.resume()))
      assert.deepStrictEqual(auth.requests, [])
      const { displayName } = yield* Effect.promise(() =>
        client.sessions.guest({ displayName: "Ada" })
      )
      assert.strictEqual(displayName, "Ada")
    })
  )

  it.effect("renews the session shortly before the access token expires, once for all calls", () =>
    Effect.gen(function* () {
      const auth = new FakeAuth()
      const client = yield* newTab(auth)
      yield* Effect.promise(() => client.sessions.ensure())
      yield* TestClock.adjust("13 minutes")
      yield* Effect.promise(() => client.players.me())
      assert.strictEqual(auth.count(refresh), 0)
      yield* TestClock.adjust("1 minute")
      yield* Effect.promise(() => Promise.all([client.players.me(), client.sessions.accessToken()]))
      assert.strictEqual(auth.count(refresh), 1)
    })
  )

  it.effect("renews the session on token_expired, and retries the call once", () =>
    Effect.gen(function* () {
      const auth = new FakeAuth()
      const client = yield* newTab(auth)
      yield* Effect.promise(() => client.sessions.ensure())
      auth.expireAccess()
      yield* Effect.promise(() => client.players.me())
      assert.deepStrictEqual(auth.requests, [guest, me, refresh, me])
      auth.expireAccess()
      auth.instead(me, () => refusal(401, "token_expired"))
      auth.instead(me, () => refusal(401, "token_expired"))
      assert.isTrue(isError(yield* rejection(() => client.players.me()), "token_expired"))
      assert.strictEqual(auth.count(me), 4)
    })
  )
})

describe("two tabs", () => {
  it.effect("renews the shared session of two tabs once", () =>
    Effect.gen(function* () {
      const auth = new FakeAuth()
      const storage = memoryStorage()
      const one = yield* newTab(auth, { storage })
      const two = yield* newTab(auth, { storage })
      yield* Effect.promise(() => one.sessions.ensure())
      yield* Effect.promise(() => two.sessions.ensure())
      yield* TestClock.adjust("14 minutes")
      const tokens = yield* Effect.promise(() =>
        Promise.all([one.sessions.accessToken(), two.sessions.accessToken()])
      )
      assert.strictEqual(auth.count(refresh), 1)
      assert.strictEqual(tokens[0], tokens[1])
    })
  )

  it.effect("adopts the tokens that another tab has stored first", () =>
    Effect.gen(function* () {
      const auth = new FakeAuth()
      const storage = memoryStorage()
      const client = yield* newTab(auth, { storage })
      yield* Effect.promise(() => client.sessions.ensure())
      const stored = JSON.parse(yield* inStorage(storage))
      const others = { ...stored, ...auth.issue(), expiresAt: 60 * 60_000 }
      const race = auth.hold(refresh, () => refusal(409, "refresh_race"))
      yield* TestClock.adjust("14 minutes")
      const token = yield* Effect.forkChild(Effect.promise(() => client.sessions.accessToken()))
      yield* Effect.promise(() => race.asked)
      race.release()
      yield* Effect.promise(async () =>
        storage.setItem("player-backend:pk_test", JSON.stringify(others))
      )
      assert.strictEqual(yield* asTimePasses(Fiber.join(token)), others.accessToken)
      assert.strictEqual(auth.count(refresh), 1)
    })
  )

  it.effect(
    "keeps a tab signed in that lost a refresh race and finds no tokens, but fails its call",
    () =>
      Effect.gen(function* () {
        const auth = new FakeAuth()
        const client = yield* newTab(auth)
        yield* Effect.promise(() => client.sessions.ensure())
        auth.instead(refresh, () => refusal(409, "refresh_race"))
        auth.expireAccess()
        const asked = yield* Effect.forkChild(rejection(() => client.players.me()))
        assert.isTrue(isError(yield* asTimePasses(Fiber.join(asked)), "refresh_race"))
        assert.isNotNull(client.sessions.player)
      })
  )

  it.effect("signs two tabs out together", () =>
    Effect.gen(function* () {
      const auth = new FakeAuth()
      const storage = memoryStorage()
      const one = yield* newTab(auth, { storage })
      const two = yield* newTab(auth, { storage })
      yield* Effect.promise(() => one.sessions.ensure())
      yield* Effect.promise(() => two.sessions.ensure())
      yield* Effect.promise(() => one.sessions.logout())
      yield* TestClock.adjust("14 minutes")
      assert.isTrue(isError(yield* rejection(() => two.players.me()), "signed_out"))
      assert.isNull(two.sessions.player)
    })
  )
})

describe("the end of a session", () => {
  it.effect("signs the player out when the session ends, and creates no guest implicitly", () =>
    Effect.gen(function* () {
      const auth = new FakeAuth()
      const client = yield* newTab(auth)
      yield* Effect.promise(() => client.sessions.ensure())
      const heard: Array<string | undefined> = []
      client.sessions.onChange((player) => heard.push(player?.displayName))
      const details = { sanctionId: "snc_1", expiresAt: null, note: "Rest." }
      for (const code of ["session_revoked", "player_banned"]) {
        auth.instead(refresh, () => refusal(401, code, details))
        auth.expireAccess()
        const error = yield* rejection(() => client.players.me())
        assert.strictEqual(Reflect.get(Object(error), "_tag"), code)
        if (isError(error, "player_banned")) assert.deepStrictEqual(error.details, details)
        const again = code === "player_banned" ? code : "signed_out"
        assert.isTrue(isError(yield* rejection(() => client.players.me()), again))
        assert.isNull(client.sessions.player)
        yield* Effect.promise(() => client.sessions.ensure({ displayName: "Bob" }))
      }
      assert.deepStrictEqual(heard, [undefined, "Bob", undefined, "Bob"])
    })
  )

  it.effect("detects an ended session on the next visit, and creates a new guest", () =>
    Effect.gen(function* () {
      const auth = new FakeAuth()
      const storage = memoryStorage()
      const first = yield* newTab(auth, { storage })
      yield* Effect.promise(() => first.sessions.ensure())
      yield* TestClock.adjust("14 minutes")
      auth.instead(refresh, () => refusal(401, "invalid_refresh_token"))
      const client = yield* newTab(auth, { storage })
      assert.isNull(yield* Effect.promise(() => client.sessions.resume()))
      const player = yield* Effect.promise(() => client.sessions.ensure({ displayName: "Bob" }))
      assert.strictEqual(player.displayName, "Bob")
      assert.strictEqual(auth.count(refresh), 1)
    })
  )

  it.effect("keeps the session when the service is unreachable", () =>
    Effect.gen(function* () {
      const auth = new FakeAuth()
      const client = yield* newTab(auth)
      yield* Effect.promise(() => client.sessions.ensure())
      // The client repeats a refresh whose answer may be lost, once.
      for (let times = 0; times < 2; times++) {
        auth.instead(refresh, () => Promise.reject(new TypeError("offline")))
      }
      auth.expireAccess()
      assert.isTrue(isError(yield* rejection(() => client.players.me()), "network_error"))
      yield* Effect.promise(() => client.players.me())
      assert.strictEqual(auth.count(guest), 1)
    })
  )
})

describe("errors over HTTP", () => {
  it.effect(
    "rejects a call with the service's error code, also one that this version does not know",
    () =>
      Effect.gen(function* () {
        const auth = new FakeAuth()
        const client = yield* newTab(auth)
        auth.instead(guest, () => refusal(429, "rate_limited", { retryAfterSeconds: 7 }))
        const limited = yield* rejection(() => client.sessions.guest())
        assert(isError(limited, "rate_limited"))
        assert.strictEqual(limited.details.retryAfterSeconds, 7)
        auth.instead(guest, () => refusal(418, "teapot"))
        const unknown = yield* rejection(() => client.sessions.guest())
        assert(isError(unknown))
        assert.strictEqual(String(unknown.code), "teapot")
        auth.instead(
          guest,
          () => new Response("{}", { headers: { "content-type": "application/json" } })
        )
        const unreadable = yield* rejection(() => client.sessions.guest())
        assert.isTrue(isError(unreadable, "unreadable_response"))
      })
  )

  it.effect("rejects a call with a timeout when the service does not respond", () =>
    Effect.gen(function* () {
      const auth = new FakeAuth()
      const client = yield* newTab(auth)
      auth.instead(guest, () => new Promise(() => undefined))
      const asked = yield* Effect.forkChild(rejection(() => client.sessions.guest()))
      yield* TestClock.adjust("10 seconds")
      assert.isTrue(isError(yield* Fiber.join(asked), "timed_out"))
    })
  )
})

describe("the storage", () => {
  it.effect("keeps the session in memory when the storage fails", () =>
    Effect.gen(function* () {
      const auth = new FakeAuth()
      const broken = (): never => {
        throw new Error("quota")
      }
      const storage = { getItem: broken, setItem: broken, removeItem: broken }
      const client = yield* newTab(auth, { storage })
      yield* Effect.promise(() => client.sessions.ensure())
      yield* TestClock.adjust("14 minutes")
      yield* Effect.promise(() => client.players.me())
      assert.deepStrictEqual(auth.requests, [guest, refresh, me])
    })
  )

  it.effect("treats a storage with malformed content as empty", () =>
    Effect.gen(function* () {
      const auth = new FakeAuth()
      const storage = memoryStorage()
      yield* Effect.promise(async () => storage.setItem("player-backend:pk_test", '{"old":1}'))
      const client = yield* newTab(auth, { storage })
      yield* Effect.promise(() => client.sessions.ensure())
      assert.deepStrictEqual(auth.requests, [guest])
    })
  )
})

describe("a client", () => {
  it.effect("throws at once for invalid options of a client", () =>
    Effect.sync(() => {
      const make = (options: ClientOptions) => () => Effect.runSync(makeClient(options))
      assert.throws(make({ baseUrl: "localhost:8080", key: "pk_1" }), TypeError, "baseUrl")
      assert.throws(make({ baseUrl: "http://service.test", key: "sk_1" }), TypeError, "publishable")
    })
  )
})
