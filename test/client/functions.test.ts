/** Calls of functions by the typed client: address, token, responses, errors and their ends. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { type ClientOptions, isError, memoryStorage } from "#client/client"
import { systemTimers } from "#client/timers"
import { makeClient } from "#testing/client"
import { FakeAuth, refusal } from "../support/client/fake-auth.ts"
import { call, rejection } from "../support/client/waits.ts"

type Seen = { readonly url: string; readonly init: RequestInit }

/** A client before a service whose functions answer as the test says. */
const clientOf = Effect.fnUntraced(function* (
  answer: (seen: Seen) => Response | Promise<Response>,
  options: Partial<ClientOptions> = {}
) {
  const auth = new FakeAuth()
  const seen: Array<Seen> = []
  const client = yield* makeClient({
    baseUrl: "http://service.test/",
    key: "pk_test",
    storage: memoryStorage(),
    fetch: async (input, init = {}) => {
      const url = String(input)
      if (!url.includes("/fn/")) return auth.fetch(input, init)
      seen.push({ url, init })
      return answer({ url, init })
    },
    ...options
  })
  return { auth, client, seen }
})

const json = (body: unknown, status = 200) =>
  new Response(JSON.stringify(body), { status, headers: { "content-type": "application/json" } })

const ask = <A>(run: () => Promise<A>) => Effect.promise(run)

const headersOf = (seen: Seen | undefined) => new Headers(seen?.init.headers)

describe("client.functions", () => {
  it.effect("posts a body as JSON and gets without one, with the player's token", () =>
    Effect.gen(function* () {
      const { auth, client, seen } = yield* clientOf(() => json({ place: 3 }))
      const { place } = yield* ask(() =>
        client.functions.call<{ place: number }>("scores", { score: 120 })
      )
      assert.strictEqual(place, 3)
      yield* ask(() => client.functions.call("/scores?limit=10"))
      yield* ask(() =>
        client.functions.call("a/b", undefined, { method: "DELETE", headers: { "x-own": "1" } })
      )
      assert.strictEqual(auth.count("POST /v1/auth/guest"), 1)
      assert.deepStrictEqual(
        seen.map(({ init, url }) => [init.method, url, init.body]),
        [
          ["POST", "http://service.test/fn/pk_test/scores", '{"score":120}'],
          ["GET", "http://service.test/fn/pk_test/scores?limit=10", null],
          ["DELETE", "http://service.test/fn/pk_test/a/b", null]
        ]
      )
      assert.strictEqual(headersOf(seen[0]).get("content-type"), "application/json")
      assert.isNull(headersOf(seen[1]).get("content-type"))
      assert.strictEqual(headersOf(seen[2]).get("x-own"), "1")
      for (const one of seen) {
        assert.match(headersOf(one).get("authorization") ?? "", /^Bearer ./)
      }
    })
  )

  it.effect("replaces a header of its own by the caller's, in any case", () =>
    Effect.gen(function* () {
      const { client, seen } = yield* clientOf(() => json({}))
      const headers = { Authorization: "Basic YTpi", "CONTENT-TYPE": "application/vnd.game+json" }
      yield* ask(() => client.functions.call("x", {}, { headers }))
      assert.strictEqual(headersOf(seen[0]).get("authorization"), "Basic YTpi")
      assert.strictEqual(headersOf(seen[0]).get("content-type"), "application/vnd.game+json")
    })
  )

  it.effect("sends no token and makes no guest for an anonymous call", () =>
    Effect.gen(function* () {
      const { auth, client, seen } = yield* clientOf(() => json([]))
      yield* ask(() => client.functions.call("top", undefined, { anonymous: true }))
      assert.deepStrictEqual(auth.requests, [])
      assert.isNull(headersOf(seen[0]).get("authorization"))
      const strict = yield* clientOf(() => json([]), { autoGuest: false })
      const refused = yield* rejection(() => strict.client.functions.call("top"))
      assert.isTrue(isError(refused, "signed_out"))
      assert.lengthOf(strict.seen, 0)
    })
  )

  it.effect("refreshes an expired token and repeats the call once", () =>
    Effect.gen(function* () {
      let calls = 0
      const { auth, client, seen } = yield* clientOf(() =>
        (calls += 1) === 1 ? refusal(401, "token_expired") : json("ok")
      )
      assert.strictEqual(yield* ask(() => client.functions.call("x", {})), "ok")
      assert.strictEqual(auth.count("POST /v1/auth/refresh"), 1)
      assert.notStrictEqual(
        headersOf(seen[0]).get("authorization"),
        headersOf(seen[1]).get("authorization")
      )
    })
  )

  it.effect("returns the text of a response that is no JSON", () =>
    Effect.gen(function* () {
      const lines = '{"a":1}\n{"a":2}\n'
      const { client: streamed } = yield* clientOf(
        () => new Response(lines, { headers: { "content-type": "application/x-ndjson" } })
      )
      assert.strictEqual(yield* ask(() => streamed.functions.call("lines")), lines)
      const { client: typed } = yield* clientOf(
        () => new Response("[1]", { headers: { "content-type": "application/problem+json;a=b" } })
      )
      assert.deepStrictEqual(yield* ask(() => typed.functions.call("x")), [1])
      const { client } = yield* clientOf(({ url }) =>
        url.endsWith("empty") ? new Response(null, { status: 204 }) : new Response("a,b")
      )
      assert.strictEqual(yield* ask(() => client.functions.call("csv")), "a,b")
      assert.strictEqual(yield* ask(() => client.functions.call("empty")), "")
    })
  )

  it.effect("rejects with the code of an error, also one of the function's own", () =>
    Effect.gen(function* () {
      const { client } = yield* clientOf(({ url }) =>
        url.endsWith("busy")
          ? refusal(503, "functions_suspended")
          : json({ error: { code: "no_coins", message: "Earn some.", details: { coins: 2 } } }, 402)
      )
      const busy = yield* rejection(() => client.functions.call("busy"))
      assert.isTrue(isError(busy, "functions_suspended"))
      const own = yield* rejection(() => client.functions.call("buy", {}))
      assert.isTrue(isError(own))
      assert.deepInclude(own, { code: "no_coins", message: "Earn some.", details: { coins: 2 } })
    })
  )

  it.effect("rejects with the status and the body of another refusal", () =>
    Effect.gen(function* () {
      for (const [response, body] of [
        [json({ error: "Sign in first" }, 401), { error: "Sign in first" }],
        [new Response("Full", { status: 401 }), "Full"]
      ] as const) {
        const { client } = yield* clientOf(() => response)
        const refused = yield* rejection(() => client.functions.call("x"))
        if (!isError(refused, "function_refused")) return assert.fail(String(refused))
        assert.deepStrictEqual(refused.details, { status: 401, body })
      }
    })
  )

  it.effect("rejects what is no JSON and no response with a code of the client", () =>
    Effect.gen(function* () {
      const html = { headers: { "content-type": "application/json" } }
      const { client } = yield* clientOf(({ url }) => {
        if (url.endsWith("broken")) return new Response("<html>", html)
        throw new TypeError("Failed to fetch")
      })
      const broken = yield* rejection(() => client.functions.call("broken"))
      assert.isTrue(isError(broken, "unreadable_response"))
      const offline = yield* rejection(() => client.functions.call("x"))
      assert.isTrue(isError(offline, "network_error"))
    })
  )

  it.effect("gives up after thirty seconds or the time that the caller gives", () =>
    Effect.gen(function* () {
      const { client, seen } = yield* clientOf(() => new Promise(() => undefined))
      for (const [options, millis] of [
        [{}, 30_000],
        [{ millis: 500 }, 500]
      ] as const) {
        const calling = yield* call(() =>
          client.functions.call("slow", {}, { anonymous: true, ...options })
        )
        yield* TestClock.adjust(millis - 1)
        assert.isFalse(seen.at(-1)?.init.signal?.aborted)
        yield* TestClock.adjust(1)
        const error = yield* Effect.flip(Fiber.join(calling))
        assert.isTrue(isError(error, "timed_out"))
        assert.isTrue(seen.at(-1)?.init.signal?.aborted)
      }
    })
  )

  it.effect("waits for as long as a timer can, where the caller gives no end", () =>
    Effect.gen(function* () {
      const waits: Array<number> = []
      const after = (millis: number, run: () => void) => {
        waits.push(millis)
        return systemTimers.after(millis, run)
      }
      const { client } = yield* clientOf(() => json("ok"), { timers: { ...systemTimers, after } })
      const options = { anonymous: true, millis: Infinity }
      assert.strictEqual(yield* ask(() => client.functions.call("x", {}, options)), "ok")
      // A browser fires at once for what it cannot count.
      assert.isAtMost(Math.max(...waits), 2 ** 31 - 1)
    })
  )

  it.effect("refuses a path that would leave the functions", () =>
    Effect.gen(function* () {
      const { client, seen } = yield* clientOf(() => json({}))
      const leaving = ["..", "../../v1/players/me", "a\\..\\b", "%2e%2E/x", "x/.%2e/y", "/../x"]
      // A browser drops these characters from an address, wherever they are.
      const dropped = [".\t./x", ".\n./x", "x/.\r.", "..\u0001", "x\u0000"]
      for (const path of [...leaving, ...dropped, "no spaces", "{key}"]) {
        assert.throws(() => client.functions.url(path), TypeError)
        assert.instanceOf(yield* rejection(() => client.functions.call(path)), TypeError)
      }
      assert.lengthOf(seen, 0)
      const base = "http://service.test/fn/pk_test/"
      assert.strictEqual(client.functions.url(), base)
      for (const path of [".hidden/a.b?c=%20d", "v1...2", "x?range=1..5", "./x", "ü|~"]) {
        const url = client.functions.url(`/${path}`)
        assert.strictEqual(url, `${base}${path}`)
        assert.match(new URL(url).pathname, /^\/fn\/pk_test\//)
      }
    })
  )
})
