/** Passwords (ASVS 6, 11): normalization, length, storage, concurrency and changes. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { passwordHashes, Passwords } from "#server/platform/passwords"
import { at, request, type TestResponse } from "#testing/players"
import { callsOf, emailConfig } from "../support/email/email-harness.ts"
import {
  addressOfNode,
  configure,
  makeTenants,
  nodeWith,
  SharedDatabase
} from "../support/http-stack.ts"
import { SpanRecorderLive, workOf } from "../support/security/watched.ts"
import { weakHash } from "../support/security/weak-hash.ts"

const Node = nodeWith({ SVC_SIGNUPS: "open" }).pipe(
  Layer.provideMerge(SpanRecorderLive),
  Layer.provideMerge(SharedDatabase.layer)
)

/** Both kinds of accounts with a password: players and developers. */
const makeAccountKinds = Effect.gen(function* () {
  const url = yield* addressOfNode
  const { development } = yield* makeTenants
  yield* configure(development, emailConfig)
  const { post } = callsOf(url, development)
  const developers = (path: string, body: unknown, headers = {}) =>
    request(`${url}/v1/developers/${path}`, { body, headers })
  return [
    {
      who: "player",
      signUp: (email: string, password: string, headers: object = {}) =>
        post("email/signup", { email, password }, undefined, headers),
      logIn: (email: string, password: string, headers: object = {}) =>
        post("email/login", { email, password }, undefined, headers)
    },
    {
      who: "developer",
      signUp: (email: string, password: string, headers: object = {}) =>
        developers("signup", { email, password }, headers),
      logIn: (email: string, password: string, headers: object = {}) =>
        developers("login", { email, password }, headers)
    }
  ]
})

const smile = "\u{1F600}"

/** Pairs of passwords that must match each other (`same`) or must not. */
const pairs = [
  { one: "Zo\u00eb und Rene\u0301", other: "Zoe\u0308 und Ren\u00e9", same: true },
  { one: "pass\uff57ord \uff11\uff12", other: "password 12", same: true },
  { one: "\ufb01ne \u2460\u2461\u2462\u2463", other: "fine 1234", same: true },
  { one: "Password 1", other: "password 1", same: false },
  { one: "password 1 ", other: "password 1", same: false },
  { one: `${"a".repeat(72)}b`, other: `${"a".repeat(72)}c`, same: false },
  { one: `${"a".repeat(72)}b`, other: "a".repeat(72), same: false },
  { one: "password\u0000one", other: "password\u0000two", same: false },
  { one: "password\u0000one", other: "password", same: false },
  { one: smile.repeat(100) + "b", other: smile.repeat(100) + "c", same: false }
]

const refused = ["", "1234567", smile.repeat(7), "x".repeat(257), "x".repeat(15 * 1024)]

const currentHash = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=1\$[\w+/]{22}\$[\w+/]{43}$/

layer(Node, { timeout: "120 seconds", excludeTestServices: true })("passwords (ASVS 6)", (it) => {
  it.effect(
    "matches passwords in full and in any Unicode normalization form, not otherwise",
    () =>
      Effect.gen(function* () {
        for (const { logIn, signUp, who } of yield* makeAccountKinds) {
          yield* Effect.forEach(
            pairs.entries(),
            Effect.fnUntraced(function* ([index, { one, other, same }]) {
              const email = `pair-${index}@example.com`
              const what = `${who} ${index}`
              assert.strictEqual((yield* signUp(email, one)).status, 200, what)
              assert.strictEqual((yield* logIn(email, other)).status, same ? 200 : 401, what)
            }),
            { concurrency: 2 }
          )
        }
      }),
    60_000
  )

  it.effect("accepts passwords of 8 to 256 characters, and checks that before it hashes", () =>
    Effect.gen(function* () {
      for (const { logIn, signUp, who } of yield* makeAccountKinds) {
        for (const password of refused) {
          const email = "refused@example.com"
          const { answer, passwords } = yield* workOf((headers) => signUp(email, password, headers))
          const issue = at(answer.body, "error", "details", "issues", 0, "path")
          assert.deepStrictEqual([answer.status, issue], [400, "password"], who)
          assert.isUndefined(at(answer.body, "error", "details", "issues", 1), "listed once")
          assert.strictEqual(passwords, 0)
        }
        for (const password of [refused[3] ?? "", refused[4] ?? ""]) {
          const { answer, passwords } = yield* workOf((headers) =>
            logIn("refused@example.com", password, headers)
          )
          assert.deepStrictEqual([answer.status, passwords], [400, 0], who)
        }
        for (const [index, password] of [smile.repeat(8), smile.repeat(128)].entries()) {
          const email = `taken-${index}@example.com`
          assert.strictEqual((yield* signUp(email, password)).status, 200, who)
        }
      }
    })
  )

  it.effect(
    "stores passwords as argon2id with 19 MiB or more and a salt, rehashed at login",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const password = "correct horse battery"
        const email = "existing@example.com"
        const tables = {
          player: {
            read: sql<{ hash: string }>`
            select password_hash as hash from identities where subject like 'existing%' order by 1`,
            weaken: sql`update identities set password_hash = ${weakHash(password)}
            where subject = ${email}`
          },
          developer: {
            read: sql<{ hash: string }>`
            select password_hash as hash from developers where email like 'existing%' order by 1`,
            weaken: sql`update developers set password_hash = ${weakHash(password)}
            where email = ${email}`
          }
        }
        for (const { logIn, signUp, who } of yield* makeAccountKinds) {
          const { read, weaken } = who === "player" ? tables.player : tables.developer
          yield* signUp(email, password)
          yield* signUp("existing-2@example.com", password)
          const hashes = (yield* read).map(({ hash }) => hash)
          assert.lengthOf(new Set(hashes), 2, who)
          for (const hash of hashes) {
            const [, memory, passes] = currentHash.exec(hash) ?? []
            assert.isAtLeast(Number(memory), 19 * 1024)
            assert.isAtLeast(Number(passes), 2)
          }
          yield* weaken
          assert.strictEqual((yield* logIn(email, "another password")).status, 401)
          assert.include(JSON.stringify(yield* read), "m=8,t=1")
          assert.strictEqual((yield* logIn(email, password)).status, 200)
          assert.notInclude(JSON.stringify(yield* read), "m=8,t=1", who)
          assert.strictEqual((yield* logIn(email, password)).status, 200)
        }
      }),
    60_000
  )

  it.effect("hashes with bounded concurrency, and answers 503 unavailable beyond the queue", () =>
    Effect.gen(function* () {
      const passwords = yield* Passwords
      const capacity = passwordHashes.concurrency + passwordHashes.waitingPerTenant
      const hash = weakHash("another password")
      const outcomes = yield* Effect.forEach(
        Array.from({ length: capacity + 40 }),
        () => Effect.result(passwords.verify("a password", hash)),
        { concurrency: "unbounded" }
      )
      const refused = outcomes.flatMap((it) => (it._tag === "Failure" ? [it.failure._tag] : []))
      assert.deepStrictEqual(
        refused,
        Array.from({ length: 40 }, () => "unavailable")
      )
      assert.isTrue(yield* passwords.verify("another password", hash))
    })
  )

  it.effect("revokes a developer's login that races with a password change", () =>
    Effect.gen(function* () {
      const url = yield* addressOfNode
      const email = "racer@example.com"
      const currentPassword = "correct horse battery"
      const ask = (path: string, body: unknown, token?: unknown): Effect.Effect<TestResponse> =>
        request(`${url}/v1/developers/${path}`, {
          ...(body === undefined ? {} : { body }),
          headers: token === undefined ? {} : { authorization: `Bearer ${String(token)}` }
        })
      const own = at((yield* ask("signup", { email, password: currentPassword })).body, "token")
      const tokens: Array<unknown> = []
      let changed = false
      const keepSigningIn = Effect.repeat(
        Effect.map(ask("login", { email, password: currentPassword }), ({ body }) =>
          tokens.push(at(body, "token"))
        ),
        { until: () => changed }
      )
      const change = Effect.tap(
        ask("me/password", { currentPassword, newPassword: "battery staple horse" }, own),
        () => Effect.sync(() => (changed = true))
      )
      const [{ status }] = yield* Effect.all(
        [change, ...Array.from({ length: 4 }, () => keepSigningIn)],
        { concurrency: "unbounded" }
      )
      assert.strictEqual(status, 200)
      const issued = tokens.filter((token) => token !== undefined)
      assert.isNotEmpty(issued)
      for (const token of issued) {
        assert.strictEqual((yield* ask("me", undefined, token)).status, 401)
      }
      assert.strictEqual((yield* ask("me", undefined, own)).status, 200)
    })
  )
})
