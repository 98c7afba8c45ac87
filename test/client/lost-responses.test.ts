/** Answers that get lost between the service and the typed client, without a browser. */
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { createClient, isError, memoryStorage, type SessionStorage } from "#client/client"
import { TestApp } from "#testing/app"
import { makeClient } from "#testing/client"
import { configure } from "#testing/players"
import { startCuttingProxy } from "../support/client/cutting-proxy.ts"
import { FakeAuth } from "../support/client/fake-auth.ts"
import { call, rejection } from "../support/client/waits.ts"
import { AppLive } from "../support/service.ts"

const refreshPath = "/v1/auth/refresh"
const refresh = `POST ${refreshPath}`

const ask = <A>(run: () => Promise<A>) => Effect.promise(run)

/** Expires the stored access token, as time does. */
const expire = (storage: SessionStorage, key: string) =>
  ask(async () => {
    const name = `player-backend:${key}`
    const text = await storage.getItem(name)
    await storage.setItem(name, JSON.stringify({ ...JSON.parse(String(text)), expiresAt: 0 }))
  })

layer(AppLive, { timeout: "120 seconds", excludeTestServices: true })(
  "a client whose answers get lost",
  (it) => {
    it.effect(
      "keeps its guest over 24 refreshes, in the same page and over reloads and crashes",
      () =>
        Effect.gen(function* () {
          const { publishableKey: key, url } = yield* TestApp
          const proxy = yield* startCuttingProxy(url)
          const storage = memoryStorage()
          const newPage = () => createClient({ baseUrl: proxy.url, key, storage })
          const { id } = yield* ask(() => newPage().sessions.ensure())
          for (let round = 0; round < 24; round++) {
            yield* expire(storage, key)
            const page = newPage()
            // One lost answer: the client repeats by itself. Two: its call fails. Else the page crashes.
            const answers = (round % 3) + 1
            proxy.lose(refreshPath, answers)
            if (answers === 1) yield* ask(() => page.sessions.accessToken())
            else if (answers === 2) {
              const error = yield* rejection(() => page.sessions.accessToken())
              assert.isTrue(isError(error, "network_error"))
            } else {
              const lost = proxy.nextLost()
              const crashed = yield* call(() => page.sessions.accessToken())
              yield* ask(() => lost)
              yield* Fiber.interrupt(crashed)
            }
            proxy.lose(refreshPath, 0)
            const reloaded = newPage()
            yield* ask(() => reloaded.sessions.accessToken())
            assert.strictEqual((yield* ask(() => reloaded.players.me())).id, id, `round ${round}`)
            // The page that crashed is still in this process: its repeat must not meet the next round.
            if (answers === 3) yield* ask(() => page.sessions.accessToken())
          }
        })
    )

    it.effect("signs in by a transfer code whose answer was lost, also on the next page", () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        yield* configure(app, { share: { inAppBrowser: { enabled: true } } })
        const { publishableKey: key, url } = app
        const proxy = yield* startCuttingProxy(url)
        const first = createClient({ baseUrl: url, key, storage: memoryStorage() })
        const { id } = yield* ask(() => first.sessions.ensure())
        for (const answers of [1, 2]) {
          const { code } = yield* ask(() => first.transfer.create())
          const storage = memoryStorage()
          const page = createClient({ baseUrl: proxy.url, key, storage })
          proxy.lose("/v1/auth/transfer/redeem", answers)
          if (answers === 2) yield* rejection(() => page.transfer.redeem(code))
          const next = answers === 1 ? page : createClient({ baseUrl: proxy.url, key, storage })
          assert.strictEqual((yield* ask(() => next.transfer.redeem(code))).id, id)
          const stored = storage.getItem(`player-backend:${key}:redeem`)
          assert.isNull(stored, "an answered request leaves nothing behind")
        }
      })
    )
  }
)

/** A client on virtual time, signed in, whose access token has expired. */
const expired = Effect.gen(function* () {
  const auth = new FakeAuth()
  const storage = memoryStorage()
  const options = { baseUrl: "http://service.test", key: "pk_test", fetch: auth.fetch, storage }
  const client = yield* makeClient(options)
  yield* ask(() => client.sessions.ensure())
  yield* TestClock.adjust("14 minutes")
  const stored = () => JSON.parse(String(storage.getItem("player-backend:pk_test")))
  return { auth, client, options, stored }
})

describe("the typed client", () => {
  it.effect("stores the key of a refresh before it sends, and forgets it with the answer", () =>
    Effect.gen(function* () {
      const { auth, client, stored } = yield* expired
      let keyAtRequest: unknown
      auth.instead(refresh, () => {
        keyAtRequest = stored().repeatKey
        return Response.json(auth.issue())
      })
      yield* ask(() => client.sessions.accessToken())
      assert.match(String(keyAtRequest), /^[0-9-]{22,128}$/)
      assert.strictEqual(auth.headers.at(-1)?.get("idempotency-key"), keyAtRequest)
      assert.isUndefined(stored().repeatKey)
    })
  )

  it.effect(
    "sends the same key in a repeat, in this page and in the next, and another one later",
    () =>
      Effect.gen(function* () {
        const { auth, client, options } = yield* expired
        const cut = () => Promise.reject(new TypeError("the network is cut"))
        auth.instead(refresh, cut)
        auth.instead(refresh, cut)
        const error = yield* rejection(() => client.sessions.accessToken())
        assert.isTrue(isError(error, "network_error"))
        const next = yield* makeClient(options)
        yield* ask(() => next.sessions.accessToken())
        yield* TestClock.adjust("14 minutes")
        yield* ask(() => next.sessions.accessToken())
        const keys = auth.requests.flatMap((route, index) =>
          route === refresh ? [auth.headers[index]?.get("idempotency-key")] : []
        )
        const [first, second, third, fourth] = keys
        assert.lengthOf(keys, 4)
        assert.deepStrictEqual([second, third], [first, first])
        assert.notStrictEqual(fourth, first)
      })
  )

  it.effect(
    "repeats with the key of the other tab where tabs have no locks and that tab is gone",
    () =>
      Effect.gen(function* () {
        const { auth, client, stored, options } = yield* expired
        const winner = "another-tabs-key-of-128-bits"
        auth.instead(refresh, () => {
          // The other tab has replaced this tab's key, refreshed and crashed.
          options.storage.setItem(
            "player-backend:pk_test",
            JSON.stringify({ ...stored(), repeatKey: winner })
          )
          return Response.json({ error: { code: "refresh_race", message: "" } }, { status: 409 })
        })
        yield* ask(() => client.sessions.accessToken())
        assert.strictEqual(auth.headers.at(-1)?.get("idempotency-key"), winner)
      })
  )

  it.effect("repeats nothing without Web Crypto, since it makes up no key", () =>
    Effect.gen(function* () {
      const { auth, client } = yield* expired
      const { crypto } = globalThis
      Object.defineProperty(globalThis, "crypto", { value: undefined, configurable: true })
      auth.instead(refresh, () => Promise.reject(new TypeError("the network is cut")))
      const error = yield* rejection(() => client.sessions.accessToken())
      Object.defineProperty(globalThis, "crypto", { value: crypto, configurable: true })
      assert.isTrue(isError(error, "network_error"))
      assert.strictEqual(auth.count(refresh), 1)
      assert.isNull(auth.headers.at(-1)?.get("idempotency-key"))
    })
  )
})
