/** Throttles: token buckets that all nodes share and spend from local allowances. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { SqlClient } from "effect/sql"
import { type Throttle } from "#rpc/auth"
import { callerThrottles } from "#server/http/callers"
import { siteFactor, Throttles } from "#server/platform/throttles"
import { at, request } from "#testing/players"
import {
  buildAnother,
  addressOfNode,
  coreOfNode,
  makeTenants,
  nodeWith,
  SharedDatabase
} from "../support/http-stack.ts"

const on = { SVC_THROTTLES: "on" }
const Node = nodeWith(on).pipe(Layer.provideMerge(SharedDatabase.layer))

/** How many of so many requests at once pass, and how long the others are to wait. */
const attempt = Effect.fnUntraced(function* (throttle: Throttle, key: string, times: number) {
  const throttles = yield* Throttles
  const outcomes = yield* Effect.forEach(
    Array.from({ length: times }),
    () => Effect.result(throttles.take(throttle, key)),
    { concurrency: 16 }
  )
  const waits = outcomes.flatMap((it) =>
    it._tag === "Failure" ? [it.failure.details.retryAfterSeconds] : []
  )
  return { passed: times - waits.length, wait: Math.max(0, ...waits) }
})

layer(Node)("throttles", (it) => {
  it.effect("lets the burst of a throttle pass, and then its refill", () =>
    Effect.gen(function* () {
      const throttle = { burst: 30, seconds: 60 }
      assert.deepStrictEqual(yield* attempt(throttle, "burst", 40), { passed: 30, wait: 2 })
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual(yield* attempt(throttle, "burst", 5), { passed: 1, wait: 2 })
      yield* TestClock.adjust("1 hour")
      assert.strictEqual((yield* attempt(throttle, "burst", 40)).passed, 30)
      assert.strictEqual((yield* attempt(throttle, "another", 1)).passed, 1)
    })
  )

  it.effect("limits the /48 around an IPv6 network, and refunds both", () =>
    Effect.gen(function* () {
      const throttles = yield* Throttles
      const throttle = { burst: 2, seconds: 60 }
      const key = (network: number) =>
        `word:env_01M777:2001:db8:9:${network.toString(16)}::/64:account`
      const one = yield* attempt(throttle, key(0), 40)
      assert.strictEqual(one.passed, 2)
      for (let network = 1; network < siteFactor; network += 1) {
        assert.strictEqual((yield* attempt(throttle, key(network), 2)).passed, 2, `${network}`)
      }
      assert.strictEqual((yield* attempt(throttle, key(99), 2)).passed, 0)
      const refunded = (network: number) => key(network).replace("word", "other")
      for (let network = 0; network < 50; network += 1) {
        yield* throttles.take(throttle, refunded(network))
        yield* throttles.refund(refunded(network))
      }
    })
  )

  it.effect("shares a throttle: two nodes together pass no more than one", () =>
    Effect.gen(function* () {
      const other = yield* buildAnother(coreOfNode(on))
      const throttle = { burst: 300, seconds: 60 }
      const both = yield* Effect.all(
        [
          attempt(throttle, "shared", 300),
          Effect.provideContext(attempt(throttle, "shared", 300), other)
        ],
        { concurrency: 2 }
      )
      const passed = both.reduce((sum, each) => sum + each.passed, 0)
      assert.strictEqual(passed, 300)
    })
  )

  it.effect("spends the allowance of a throttle without a statement", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const throttle = { burst: 6000, seconds: 60 }
      yield* attempt(throttle, "leased", 300)
      const [row] = yield* sql`select granted, full_at from throttles where key = 'leased'`
      // One statement took all three hundred; the next request is the first to ask again.
      assert.strictEqual(at(row, "granted"), 300)
      yield* sql`delete from throttles where key = 'leased'`
      yield* attempt(throttle, "leased", 1)
      assert.lengthOf(yield* sql`select 1 from throttles where key = 'leased'`, 1)
    })
  )

  it.effect("remembers the refusal of a throttle, so that retries cost no statement", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const throttle = { burst: 2, seconds: 60 }
      assert.deepStrictEqual(yield* attempt(throttle, "insist", 3), { passed: 2, wait: 30 })
      yield* sql`delete from throttles where key = 'insist'`
      assert.strictEqual((yield* attempt(throttle, "insist", 50)).passed, 0)
      assert.lengthOf(yield* sql`select 1 from throttles where key = 'insist'`, 0)
      yield* TestClock.adjust("30 seconds")
      assert.isAtLeast((yield* attempt(throttle, "insist", 1)).passed, 1)
    })
  )

  it.effect("deletes the buckets of throttles that are full again", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* attempt({ burst: 10, seconds: 10 }, "swept", 1)
      const left = sql`select 1 from throttles where key = 'swept'`
      yield* Effect.repeat(Effect.andThen(TestClock.adjust("2 minutes"), left), {
        until: (rows) => rows.length === 0
      })
    })
  )

  it.effect("limits guests to 30 a minute for each address, with Retry-After", () =>
    Effect.gen(function* () {
      const url = yield* addressOfNode
      const { development, production } = yield* makeTenants
      const guest = (key: string) =>
        request(`${url}/v1/auth/guest`, { headers: { "x-svc-key": key }, body: {} })
      const answers = yield* Effect.forEach(Array.from({ length: 31 }), () =>
        guest(development.publishableKey)
      )
      const refused = answers.filter(({ status }) => status !== 200)
      assert.lengthOf(refused, 1)
      const [answer] = refused
      if (answer === undefined) return assert.fail("nothing was refused")
      assert.strictEqual(answer.status, 429)
      assert.strictEqual(at(answer.body, "error", "code"), "rate_limited")
      assert.deepStrictEqual(at(answer.body, "error", "details"), { retryAfterSeconds: 2 })
      assert.strictEqual(answer.headers.get("retry-after"), "2")
      // Tenants do not take from each other.
      assert.strictEqual((yield* guest(production.publishableKey)).status, 200)
    })
  )

  it.effect("limits requests by player, refreshes by session, servers by key", () =>
    Effect.gen(function* () {
      const url = yield* addressOfNode
      const { development } = yield* makeTenants
      const key = { "x-svc-key": development.publishableKey }
      const { body } = yield* request(`${url}/v1/auth/guest`, { headers: key, body: {} })
      const authorization = `Bearer ${String(at(body, "accessToken"))}`
      const playerId = String(at(body, "player", "id"))
      const me = request(`${url}/v1/players/me`, { headers: { ...key, authorization } })
      assert.strictEqual((yield* me).status, 200)
      yield* attempt(callerThrottles.playerApi, `player:${playerId}`, 300)
      const refused = yield* me
      assert.strictEqual(refused.status, 429)
      assert.strictEqual(refused.headers.get("retry-after"), "1")

      const refresh = (refreshToken: unknown) =>
        request(`${url}/v1/auth/refresh`, { headers: key, body: { refreshToken } })
      const tries = yield* Effect.forEach(
        Array.from({ length: 31 }),
        () => refresh(at(body, "refreshToken")),
        { concurrency: 8 }
      )
      const codes = tries.map((answer) => at(answer.body, "error", "code") ?? "ok")
      assert.lengthOf(
        codes.filter((code) => code === "rate_limited"),
        1
      )
      assert.lengthOf(
        codes.filter((code) => code === "ok"),
        1
      )

      const config = request(`${url}/v1/config`, {
        headers: { "x-svc-key": development.secretKey }
      })
      assert.strictEqual((yield* config).status, 200)
    })
  )
})
