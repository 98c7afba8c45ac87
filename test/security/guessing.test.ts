/**
 * Guesses (API4, API6, ASVS 6): of a password from one address, from thousands, of codes; 99 of a hundred
 * are refused unheard, and whoever is signed in notices nothing. A client with many IPv6 addresses has
 * one bucket. Time stands still: a bucket gives what it holds.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { throttles, transfer } from "#rpc/limits"
import { TestApp } from "#testing/app"
import { type Answer, at, configure, newPlayer, request } from "#testing/players"
import { inAppBrowser } from "../support/devices.ts"
import { callsOf, password, withEmail } from "../support/email/email-harness.ts"
import {
  addressOfNode,
  configure as put,
  makeTenants,
  nodeWith,
  SharedDatabase
} from "../support/http/stack.ts"
import { codeOf, refresh } from "../support/moderation-calls.ts"
import { Exposed, live } from "../support/security/security-harness.ts"
import { figure } from "../support/security/sizes.ts"
import { weakHash } from "../support/security/weak-hash.ts"

const Node = nodeWith({
  SVC_THROTTLES: "on",
  SVC_SIGNUPS: "open",
  SVC_TRUSTED_PROXIES: "127.0.0.0/8"
}).pipe(Layer.provideMerge(SharedDatabase.layer))

const makeWorld = Effect.gen(function* () {
  const url = yield* addressOfNode
  const { development } = yield* makeTenants
  yield* put(development, { ...withEmail, ...inAppBrowser })
  const sql = yield* SqlClient.SqlClient
  const calls = callsOf(url, development)
  /** A player with a password that costs little to check, so that many guesses do. */
  const signUp = (email: string) =>
    Effect.tap(
      calls.signUp(email),
      () =>
        sql`update identities set password_hash = ${weakHash(password)} where subject = ${email}`
    )
  return { ...calls, signUp, target: { url, ...development } }
})

/** A client's address, one of sixteen million. */
const addressOf = (index: number) => `9.${index >> 16}.${(index >> 8) & 255}.${index & 255}`

const from = (address: string) => ({ "x-forwarded-for": address })

/** Those of which codes for people are made. */
const letters = 20

/** How many answers there are of each kind. */
const count = (answers: ReadonlyArray<Answer>): Readonly<Record<string, number>> => {
  const counts: Record<string, number> = {}
  for (const answer of answers) {
    const kind = `${answer.status} ${String(codeOf(answer))}`
    counts[kind] = (counts[kind] ?? 0) + 1
  }
  return counts
}

const guessing = <E, R>(
  times: number,
  guess: (index: number) => Effect.Effect<Answer, E, R>
): Effect.Effect<Readonly<Record<string, number>>, E, R> =>
  Effect.map(
    Effect.forEach(
      Array.from({ length: times }, (_, index) => index),
      guess,
      { concurrency: 4 }
    ),
    count
  )

/** Ten spellings of addresses of one customer. */
const spellings = [
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

layer(Node, { timeout: "120 seconds" })("guesses (API4, API6)", (it) => {
  it.effect(
    "of a password from one address: ten are heard, and the owner stays signed in",
    () =>
      Effect.gen(function* () {
        const { post, me, signUp, target } = yield* makeWorld
        const owner = yield* signUp("ada@example.com")
        const times = yield* figure(10_000)
        const counts = yield* guessing(times, (index) =>
          post(
            "email/login",
            { email: "ada@example.com", password: `guess ${index}` },
            undefined,
            from("9.9.9.9")
          )
        )
        const { burst } = throttles.loginPerAccount
        assert.deepStrictEqual(counts, {
          "401 invalid_credentials": burst,
          "429 rate_limited": times - burst
        })
        assert.isAtMost(burst, times / 100)
        assert.strictEqual((yield* me(owner)).status, 200)
        assert.strictEqual((yield* refresh(target, owner.refreshToken)).status, 200)
        const elsewhere = yield* post(
          "email/login",
          { email: "ada@example.com", password },
          undefined,
          from("8.8.8.8")
        )
        assert.strictEqual(elsewhere.status, 200)
      }),
    600_000
  )

  it.effect(
    "of one password from thousands of addresses: a hundred are heard",
    () =>
      Effect.gen(function* () {
        const { post, me, signUp, target } = yield* makeWorld
        const owner = yield* signUp("bea@example.com")
        const times = yield* figure(10_000)
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
        const { burst } = throttles.loginPerAccountAnywhere
        assert.deepStrictEqual(counts, {
          "401 invalid_credentials": burst,
          "429 rate_limited": times - burst
        })
        assert.isAtMost(burst, 10_000 / 100)
        assert.strictEqual((yield* me(owner)).status, 200)
        assert.strictEqual((yield* refresh(target, owner.refreshToken)).status, 200)
      }),
    600_000
  )

  it.effect(
    "of a developer's password from thousands of addresses: a hundred are heard",
    () =>
      Effect.gen(function* () {
        const url = yield* addressOfNode
        const email = "dev@example.com"
        const sql = yield* SqlClient.SqlClient
        yield* request(`${url}/v1/developers/signup`, { body: { email, password } })
        yield* sql`update developers set password_hash = ${weakHash(password)}`
        const { burst } = throttles.loginPerAccountAnywhere
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

  it.effect("of one password for many accounts: sixty are heard from an address", () =>
    Effect.gen(function* () {
      const { post, signUp } = yield* makeWorld
      const { burst } = throttles.loginPerAddress
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
    "of codes for another browser: ten a minute of billions, while one lives ten minutes",
    () =>
      Effect.gen(function* () {
        const { post } = yield* makeWorld
        assert.isAtLeast(letters ** transfer.codeCharacters, 25e9)
        const { burst } = throttles.redeemPerAddress
        const times = yield* figure(10_000)
        const counts = yield* guessing(times, (index) =>
          post("transfer/redeem", { code: `${index}`.padStart(8, "6") }, undefined, from("9.9.9.1"))
        )
        assert.deepStrictEqual(counts, {
          "400 invalid_code": burst,
          "429 rate_limited": times - burst
        })
        assert.isAtMost(burst, times / 100)
      }),
    600_000
  )

  it.effect("from ten spellings of one IPv6 network are from one", () =>
    Effect.gen(function* () {
      const { target } = yield* makeWorld
      const { burst } = throttles.guestPerAddress
      assert.lengthOf(new Set(spellings), 10)
      const knock = (address: string) =>
        request(`${target.url}/v1/auth/guest`, {
          headers: { "x-svc-key": target.publishableKey, ...from(address) },
          body: {}
        })
      const counts = yield* guessing(burst + 20, (index) =>
        knock(spellings[index % spellings.length] ?? "")
      )
      assert.deepStrictEqual(counts, { "200 ok": burst, "429 rate_limited": 20 })
      // The neighbour's network, and an IPv4 address in either form, are others.
      assert.strictEqual((yield* knock("2001:db8:1:3::1")).status, 200)
      const forms = ["203.0.113.7", "::ffff:203.0.113.7", "::FFFF:cb00:7107"]
      const folded = yield* guessing(burst + 3, (index) => knock(forms[index % 3] ?? ""))
      assert.deepStrictEqual(folded, { "200 ok": burst, "429 rate_limited": 3 })
    })
  )

  it.effect("that name another client in a header of their own are counted as who sends them", () =>
    Effect.gen(function* () {
      const other = yield* Layer.build(
        Layer.fresh(nodeWith({ SVC_THROTTLES: "on", SVC_TRUSTED_PROXIES: "" }))
      )
      const url = yield* Effect.provideContext(addressOfNode, other)
      const { development } = yield* makeTenants
      const { burst } = throttles.guestPerAddress
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

layer(Exposed({ SVC_THROTTLES: "on" }), live)("codes of rooms (API6)", (it) => {
  it.effect("are not found by one player after the other from one address", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      yield* configure(app, { version: 1, features: { multiplayer: true } })
      const host = yield* newPlayer(app)
      const made = yield* host.socket.ask({ t: "create", mode: "default" })
      const code = at(made, "data", "code")
      const { burst } = throttles.wrongRoomCodesPerAddress
      const perPlayer = throttles.roomCodesPerPlayer.burst - 5
      const told: Array<unknown> = []
      for (let sent = 0; sent < burst + 20; sent += perPlayer) {
        const { socket } = yield* newPlayer(app)
        // The right one costs nothing.
        assert.isTrue((yield* socket.ask({ t: "join", code }))["ok"])
        yield* socket.ask({ t: "leave" })
        for (let i = 0; i < perPlayer; i++) {
          const answer = yield* socket.ask({ t: "join", code: `WRONG${i}` })
          told.push(at(answer, "error", "code"))
        }
        if (told.includes("rate_limited")) break
      }
      const heard = told.filter((one) => one === "room_not_found")
      assert.include(told, "rate_limited")
      // A token comes back every quarter of a minute while this goes on.
      assert.isAtLeast(heard.length, burst)
      assert.isAtMost(heard.length, burst + 5)
    })
  )
})
