/**
 * Guessing of passwords and codes (API4, API6, ASVS 6), from one address and from thousands. At least 99 %
 * of the guesses are refused unchecked, and signed-in players are not affected. One IPv6 network shares
 * one bucket. The test clock stands still, so a bucket never refills.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { signInThrottles } from "#rpc/email"
import { sessionThrottles } from "#rpc/sessions"
import { roomCodeThrottles } from "#server/features/rooms/frames"
import { redeemPerAddress } from "#server/features/transfer/handlers"
import { transferCodeCharacters } from "#server/features/transfer/transfer-codes"
import { siteFactor } from "#server/platform/throttles"
import { TestApp } from "#testing/app"
import { at, configure, newPlayer, request, type TestResponse } from "#testing/players"
import { inAppBrowser } from "../support/devices.ts"
import { callsOf, password, emailConfig } from "../support/email/email-harness.ts"
import {
  addressOfNode,
  configure as put,
  makeTenants,
  nodeWith,
  SharedDatabase
} from "../support/http-stack.ts"
import { codeOf, refresh } from "../support/moderation-calls.ts"
import { SecurityAppLive, live } from "../support/security/security-harness.ts"
import { sampleSize } from "../support/security/sizes.ts"
import { weakHash } from "../support/security/weak-hash.ts"

const Node = nodeWith({
  SVC_THROTTLES: "on",
  SVC_SIGNUPS: "open",
  SVC_TRUSTED_PROXIES: "127.0.0.0/8"
}).pipe(Layer.provideMerge(SharedDatabase.layer))

const makeFixture = Effect.gen(function* () {
  const url = yield* addressOfNode
  const { development } = yield* makeTenants
  yield* put(development, { ...emailConfig, ...inAppBrowser })
  const sql = yield* SqlClient.SqlClient
  const calls = callsOf(url, development)
  /** A player with a weak hash, so that thousands of guesses are cheap to check. */
  const signUp = (email: string) =>
    Effect.tap(
      calls.signUp(email),
      () =>
        sql`update identities set password_hash = ${weakHash(password)} where subject = ${email}`
    )
  return { ...calls, signUp, target: { url, ...development } }
})

/** One of sixteen million client addresses. */
const addressOf = (index: number) => `9.${index >> 16}.${(index >> 8) & 255}.${index & 255}`

const from = (address: string) => ({ "x-forwarded-for": address })

/** Size of the alphabet of readable codes. */
const alphabetSize = 20

/** Counts responses by status and code. */
const count = (answers: ReadonlyArray<TestResponse>): Readonly<Record<string, number>> => {
  const counts: Record<string, number> = {}
  for (const answer of answers) {
    const kind = `${answer.status} ${String(codeOf(answer))}`
    counts[kind] = (counts[kind] ?? 0) + 1
  }
  return counts
}

const guessing = <E, R>(
  times: number,
  guess: (index: number) => Effect.Effect<TestResponse, E, R>
): Effect.Effect<Readonly<Record<string, number>>, E, R> =>
  Effect.map(
    Effect.forEach(
      Array.from({ length: times }, (_, index) => index),
      guess,
      { concurrency: 4 }
    ),
    count
  )

/** Ten spellings of addresses in one /64 network. */
const ipv6Spellings = [
  "2001:db8:1:2::1",
  "2001:DB8:1:2::1",
  "2001:0db8:0001:0002:0000:0000:0000:0001",
  "2001:db8:1:2:0:0:0:1",
  "2001:db8:1:2:ffff:ffff:ffff:ffff",
  "2001:db8:1:2::192.0.2.1",
  "[2001:db8:1:2::7]",
  "[2001:db8:1:2::7]:443",
  "2001:db8:1:2::1%eth0",
  " 2001:db8:1:2:abcd::1 "
]

layer(Node, { timeout: "120 seconds" })("guessing (API4, API6)", (it) => {
  it.effect(
    "a password from one address gets ten tries, and the owner stays signed in",
    () =>
      Effect.gen(function* () {
        const { post, me, signUp, target } = yield* makeFixture
        const owner = yield* signUp("ada@example.com")
        const times = sampleSize(10_000)
        const counts = yield* guessing(times, (index) =>
          post(
            "email/login",
            { email: "ada@example.com", password: `guess ${index}` },
            undefined,
            from("9.9.9.9")
          )
        )
        const { burst } = signInThrottles.loginPerAccount
        assert.deepStrictEqual(counts, {
          "401 invalid_credentials": burst,
          "429 rate_limited": times - burst
        })
        assert.isAtMost(burst, times / 100)
        assert.strictEqual((yield* me(owner)).status, 200)
        assert.strictEqual((yield* refresh(target, owner.refreshToken)).status, 200)
        const fromOwner = yield* post(
          "email/login",
          { email: "ada@example.com", password },
          undefined,
          from("8.8.8.8")
        )
        assert.strictEqual(fromOwner.status, 200)
      }),
    { timeout: 600_000, tags: "sized" }
  )

  it.effect(
    "one account from thousands of addresses gets a hundred tries",
    () =>
      Effect.gen(function* () {
        const { post, me, signUp, target } = yield* makeFixture
        const owner = yield* signUp("bea@example.com")
        const times = sampleSize(10_000, 300)
        const counts = yield* guessing(times, (index) =>
          post(
            "email/login",
            {
              email: index % 2 === 0 ? "bea@example.com" : " BEA@Example.com",
              password: `guess ${index}`
            },
            undefined,
            from(addressOf(index))
          )
        )
        const { burst } = signInThrottles.loginPerAccountAnywhere
        assert.deepStrictEqual(counts, {
          "401 invalid_credentials": burst,
          "429 rate_limited": times - burst
        })
        assert.isAtMost(burst, 10_000 / 100)
        assert.strictEqual((yield* me(owner)).status, 200)
        assert.strictEqual((yield* refresh(target, owner.refreshToken)).status, 200)
      }),
    { timeout: 600_000, tags: "sized" }
  )

  it.effect(
    "a developer account from thousands of addresses gets a hundred tries",
    () =>
      Effect.gen(function* () {
        const url = yield* addressOfNode
        const email = "dev@example.com"
        const sql = yield* SqlClient.SqlClient
        yield* request(`${url}/v1/developers/signup`, { body: { email, password } })
        yield* sql`update developers set password_hash = ${weakHash(password)}`
        const { burst } = signInThrottles.loginPerAccountAnywhere
        const counts = yield* guessing(burst + 50, (index) =>
          request(`${url}/v1/developers/login`, {
            body: { email, password: `guess ${index}` },
            headers: from(addressOf(index))
          })
        )
        assert.deepStrictEqual(counts, { "401 invalid_credentials": burst, "429 rate_limited": 50 })
      }),
    600_000
  )

  it.effect("many accounts from one address get sixty tries", () =>
    Effect.gen(function* () {
      const { post, signUp } = yield* makeFixture
      const { burst } = signInThrottles.loginPerAddress
      const victims = Array.from({ length: 7 }, (_, index) => `victim-${index}@example.com`)
      yield* Effect.forEach(victims, signUp, { concurrency: 2 })
      const counts = yield* guessing(burst + 100, (index) =>
        post(
          "email/login",
          { email: victims[index % victims.length], password: "password 1" },
          undefined,
          from("9.8.7.6")
        )
      )
      assert.deepStrictEqual(counts, { "401 invalid_credentials": burst, "429 rate_limited": 100 })
    })
  )

  it.effect(
    "a transfer code gets ten tries per minute out of billions of codes",
    () =>
      Effect.gen(function* () {
        const { post } = yield* makeFixture
        assert.isAtLeast(alphabetSize ** transferCodeCharacters, 25e9)
        const { limit } = redeemPerAddress
        const times = sampleSize(10_000)
        const counts = yield* guessing(times, (index) =>
          post("transfer/redeem", { code: `${index}`.padStart(8, "6") }, undefined, from("9.9.9.1"))
        )
        assert.deepStrictEqual(counts, {
          "400 invalid_code": limit,
          "429 rate_limited": times - limit
        })
        assert.isAtMost(limit, times / 100)
      }),
    { timeout: 600_000, tags: "sized" }
  )

  it.effect("ten spellings of one IPv6 network share one bucket", () =>
    Effect.gen(function* () {
      const { target } = yield* makeFixture
      const { burst } = sessionThrottles.guestPerAddress
      assert.lengthOf(new Set(ipv6Spellings), 10)
      const signUpFrom = (address: string) =>
        request(`${target.url}/v1/auth/guest`, {
          headers: { "x-svc-key": target.publishableKey, ...from(address) },
          body: {}
        })
      const counts = yield* guessing(burst + 20, (index) =>
        signUpFrom(ipv6Spellings[index % ipv6Spellings.length] ?? "")
      )
      assert.deepStrictEqual(counts, { "200 ok": burst, "429 rate_limited": 20 })
      // A neighbouring network has its own bucket, and both forms of an IPv4 address share one.
      assert.strictEqual((yield* signUpFrom("2001:db8:1:3::1")).status, 200)
      const forms = ["203.0.113.7", "::ffff:203.0.113.7", "::FFFF:cb00:7107"]
      const folded = yield* guessing(burst + 3, (index) => signUpFrom(forms[index % 3] ?? ""))
      assert.deepStrictEqual(folded, { "200 ok": burst, "429 rate_limited": 3 })
    })
  )

  it.effect(
    "thousands of networks of one IPv6 /48 share 16 times the limit of one",
    () =>
      Effect.gen(function* () {
        const { post, signUp } = yield* makeFixture
        const network = (index: number) => `2001:db8:7:${index.toString(16)}::1`
        const times = sampleSize(10_000, 400)
        const { limit } = redeemPerAddress
        const counts = yield* guessing(times, (index) =>
          post(
            "transfer/redeem",
            { code: `${index}`.padStart(8, "6") },
            undefined,
            from(network(index))
          )
        )
        const max = limit * siteFactor
        assert.deepStrictEqual(counts, {
          "400 invalid_code": max,
          "429 rate_limited": times - max
        })
        // Another site is not affected.
        const body = { code: "66666666" }
        const other = yield* post("transfer/redeem", body, undefined, from("2001:db8:8::1"))
        assert.strictEqual(other.status, 400)
        yield* signUp("cyd@example.com")
        const email = (address: string) =>
          post(
            "email/login",
            { email: "cyd@example.com", password: "no" },
            undefined,
            from(address)
          )
        const { burst } = signInThrottles.loginPerAccount
        const logins = yield* guessing(burst * siteFactor + 50, (index) => email(network(index)))
        assert.isAtMost(logins["401 invalid_credentials"] ?? 0, burst * siteFactor)
      }),
    { timeout: 600_000, tags: "sized" }
  )

  it.effect("a forged client address in a header does not change the bucket", () =>
    Effect.gen(function* () {
      const other = yield* Layer.build(
        Layer.fresh(nodeWith({ SVC_THROTTLES: "on", SVC_TRUSTED_PROXIES: "" }))
      )
      const url = yield* Effect.provideContext(addressOfNode, other)
      const { development } = yield* makeTenants
      const { burst } = sessionThrottles.guestPerAddress
      const counts = yield* guessing(burst + 5, (index) =>
        request(`${url}/v1/auth/guest`, {
          headers: {
            "x-svc-key": development.publishableKey,
            ...from(addressOf(index)),
            forwarded: `for=${addressOf(index)}`,
            "x-real-ip": addressOf(index)
          },
          body: {}
        })
      )
      assert.deepStrictEqual(counts, { "200 ok": burst, "429 rate_limited": 5 })
    })
  )
})

layer(SecurityAppLive({ SVC_THROTTLES: "on" }), live)("room codes (API6)", (it) => {
  it.effect("wrong room codes from one address share one bucket across players", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      yield* configure(app, { version: 1, features: { multiplayer: true } })
      const host = yield* newPlayer(app)
      const made = yield* host.socket.request({ t: "create", mode: "default" })
      const code = at(made, "data", "code")
      const { burst } = roomCodeThrottles.wrongRoomCodesPerAddress
      const perPlayer = roomCodeThrottles.roomCodesPerPlayer.burst - 5
      const codes: Array<unknown> = []
      for (let sent = 0; sent < burst + 20; sent += perPlayer) {
        const { socket } = yield* newPlayer(app)
        // A correct code takes no token.
        assert.isTrue((yield* socket.request({ t: "join", code }))["ok"])
        yield* socket.request({ t: "leave" })
        for (let i = 0; i < perPlayer; i++) {
          const answer = yield* socket.request({ t: "join", code: `WRONG${i}` })
          codes.push(at(answer, "error", "code"))
        }
        if (codes.includes("rate_limited")) break
      }
      const checked = codes.filter((entry) => entry === "room_not_found")
      assert.include(codes, "rate_limited")
      // The bucket refills one token every 15 seconds, and this part runs on real time.
      assert.isAtLeast(checked.length, burst)
      assert.isAtMost(checked.length, burst + 5)
    })
  )
})
