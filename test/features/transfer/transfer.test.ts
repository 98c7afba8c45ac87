/** Transfer codes, which continue a player in another browser. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { SqlClient } from "effect/sql"
import { at, guest, request, type TestTarget } from "#testing/players"
import { anotherDevice, inAppBrowser, logout, redeem, transferCode } from "../../support/devices.ts"
import {
  addressOfNode,
  configure,
  makeTenants,
  nodeWith,
  SharedDatabase
} from "../../support/http-stack.ts"
import { ask, ban, codeOf, operate, play, refresh } from "../../support/moderation-calls.ts"

const nodeOf = (env: Readonly<Record<string, string>> = {}) =>
  nodeWith(env).pipe(Layer.provideMerge(SharedDatabase.layer))

/** Both environments of a project with `share.inAppBrowser`. */
const targets = Effect.gen(function* () {
  const url = yield* addressOfNode
  const { development, production } = yield* makeTenants
  for (const tenant of [development, production]) yield* configure(tenant, inAppBrowser)
  const target: TestTarget = { url, ...development }
  const elsewhere: TestTarget = { url, ...production }
  return { target, elsewhere, tenant: development }
})

layer(nodeOf())("a transfer code", (it) => {
  it.effect("signs in another browser as the same player and keeps the first session", () =>
    Effect.gen(function* () {
      const { target } = yield* targets
      const ada = yield* guest(target, "Ada")
      const issued = yield* play(target, ada, "POST", "auth/transfer")
      assert.strictEqual(issued.status, 201)
      assert.strictEqual(at(issued.body, "expiresIn"), 600)
      assert.match(String(at(issued.body, "code")), /^[6789BCDFGHJKLMNPQRTW]{8}$/)
      const redeemed = yield* redeem(target, String(at(issued.body, "code")))
      assert.strictEqual(redeemed.status, 200)
      assert.deepInclude(at(redeemed.body, "player"), { id: ada.id, isGuest: true })
      assert.strictEqual(at(redeemed.body, "expiresIn"), 900)
      assert.notStrictEqual(at(redeemed.body, "refreshToken"), ada.refreshToken)
      const other = { accessToken: String(at(redeemed.body, "accessToken")) }
      assert.strictEqual((yield* play(target, other, "GET", "players/me")).status, 200)
      assert.strictEqual(codeOf(yield* refresh(target, ada.refreshToken)), "ok")
    })
  )

  it.effect("redeems a transfer code once, for one of several concurrent requests", () =>
    Effect.gen(function* () {
      const { target } = yield* targets
      const ada = yield* guest(target)
      const code = yield* transferCode(target, ada)
      const answers = yield* Effect.all(
        Array.from({ length: 16 }, () => redeem(target, code)),
        { concurrency: "unbounded" }
      )
      assert.lengthOf(
        answers.filter(({ status }) => status === 200),
        1
      )
      for (const answer of answers.filter(({ status }) => status !== 200)) {
        assert.strictEqual(answer.status, 400)
        assert.strictEqual(codeOf(answer), "invalid_code")
      }
    })
  )

  it.effect("expires a transfer code after 600 seconds", () =>
    Effect.gen(function* () {
      const { target } = yield* targets
      const ada = yield* guest(target)
      const first = yield* transferCode(target, ada)
      yield* TestClock.adjust("599 seconds")
      assert.strictEqual(codeOf(yield* redeem(target, first)), "ok")
      const second = yield* transferCode(target, ada)
      yield* TestClock.adjust("600 seconds")
      assert.strictEqual(codeOf(yield* redeem(target, second)), "invalid_code")
    })
  )

  it.effect("accepts a transfer code in any case, with spaces and dashes", () =>
    Effect.gen(function* () {
      const { target } = yield* targets
      const ada = yield* guest(target)
      const code = yield* transferCode(target, ada)
      const written = ` ${code.slice(0, 4).toLowerCase()} - ${code.slice(4)}\t`
      assert.strictEqual(codeOf(yield* redeem(target, written)), "ok")
    })
  )

  it.effect("withdraws the player's earlier codes, also under concurrent requests", () =>
    Effect.gen(function* () {
      const { target } = yield* targets
      const ada = yield* guest(target)
      const bob = yield* guest(target)
      const others = yield* transferCode(target, bob)
      const codes = yield* Effect.all(
        Array.from({ length: 4 }, () => transferCode(target, ada)),
        { concurrency: "unbounded" }
      )
      const outcomes = yield* Effect.forEach(codes, (code) => redeem(target, code))
      assert.lengthOf(
        outcomes.filter((answer) => codeOf(answer) === "ok"),
        1
      )
      assert.strictEqual(codeOf(yield* redeem(target, others)), "ok")
    })
  )

  it.effect("refuses a transfer code in another environment and one that was never issued", () =>
    Effect.gen(function* () {
      const { elsewhere, target } = yield* targets
      const ada = yield* guest(target)
      const code = yield* transferCode(target, ada)
      assert.strictEqual(codeOf(yield* redeem(elsewhere, code)), "invalid_code")
      for (const wrong of ["AAAAAAAA", code.slice(1), `${code}${code}`, "-", "\u0000", "é"]) {
        assert.strictEqual(codeOf(yield* redeem(target, wrong)), "invalid_code", wrong)
      }
      for (const body of [{}, { code: "" }, { code: 7 }, { code: "x".repeat(65) }]) {
        const answer = yield* ask(target, "auth/transfer/redeem", body)
        assert.strictEqual(codeOf(answer), "invalid_request", JSON.stringify(body))
      }
      assert.strictEqual(codeOf(yield* redeem(target, code)), "ok")
    })
  )

  it.effect("neither issues nor redeems a transfer code for a banned player", () =>
    Effect.gen(function* () {
      const { target } = yield* targets
      const ada = yield* guest(target)
      const code = yield* transferCode(target, ada)
      yield* ban(target, ada.id)
      const issued = yield* play(target, ada, "POST", "auth/transfer")
      assert.strictEqual(codeOf(issued), "player_banned")
      const redeemed = yield* redeem(target, code)
      assert.deepStrictEqual([redeemed.status, codeOf(redeemed)], [403, "player_banned"])
    })
  )

  it.effect("voids the transfer code of a revoked session, and issues none to it", () =>
    Effect.gen(function* () {
      const { target } = yield* targets
      const ada = yield* guest(target)
      const other = yield* anotherDevice(target, ada)
      const code = yield* transferCode(target, ada)
      yield* logout(target, ada)
      assert.strictEqual(codeOf(yield* redeem(target, code)), "invalid_code")
      const issued = yield* play(target, ada, "POST", "auth/transfer")
      assert.deepStrictEqual([issued.status, codeOf(issued)], [401, "session_revoked"])
      const others = yield* transferCode(target, other)
      assert.strictEqual(codeOf(yield* redeem(target, others)), "ok")
    })
  )

  it.effect("voids the transfer code of a deleted player, and issues none to it", () =>
    Effect.gen(function* () {
      const { target } = yield* targets
      const ada = yield* guest(target)
      const code = yield* transferCode(target, ada)
      const other = yield* anotherDevice(target, yield* guest(target))
      assert.isString(other.accessToken)
      const sql = yield* SqlClient.SqlClient
      yield* sql`delete from players where id = ${ada.id}`
      assert.strictEqual(codeOf(yield* redeem(target, code)), "invalid_code")
      const issued = yield* play(target, ada, "POST", "auth/transfer")
      assert.deepStrictEqual([issued.status, codeOf(issued)], [404, "not_found"])
    })
  )

  it.effect("stores a transfer code only as a hash", () =>
    Effect.gen(function* () {
      const { target } = yield* targets
      const code = yield* transferCode(target, yield* guest(target))
      const sql = yield* SqlClient.SqlClient
      const rows = yield* sql`select c::text as text from single_use_codes c`
      assert.isNotEmpty(rows)
      assert.notInclude(JSON.stringify(rows), code)
    })
  )

  it.effect("requires share.inAppBrowser before the request is validated", () =>
    Effect.gen(function* () {
      const { target, tenant } = yield* targets
      const ada = yield* guest(target)
      const code = yield* transferCode(target, ada)
      yield* configure(tenant, { share: { inAppBrowser: { enabled: false } } })
      for (const answer of [
        yield* play(target, ada, "POST", "auth/transfer"),
        yield* redeem(target, code),
        yield* ask(target, "auth/transfer/redeem", { nothing: true })
      ]) {
        assert.strictEqual(answer.status, 404)
        assert.strictEqual(codeOf(answer), "share_inAppBrowser_disabled")
      }
      const signedOut = yield* request(`${target.url}/v1/auth/transfer`, {
        method: "POST",
        headers: { "x-svc-key": target.publishableKey, authorization: "Bearer nonsense" }
      })
      assert.strictEqual(codeOf(signedOut), "unauthorized")
      assert.strictEqual(codeOf(yield* operate(target, "GET", "appeals")), "ok")
      yield* configure(tenant, inAppBrowser)
      assert.strictEqual(codeOf(yield* redeem(target, code)), "ok")
    })
  )
})

layer(nodeOf({ SVC_THROTTLES: "on" }))("the throttle of transfer codes", (it) => {
  it.effect("allows ten tries per minute and address", () =>
    Effect.gen(function* () {
      const { target } = yield* targets
      const codes: Array<unknown> = []
      for (let i = 0; i < 11; i++) codes.push(codeOf(yield* redeem(target, "BBBBBBBB")))
      assert.deepStrictEqual(
        codes.slice(0, 10),
        Array.from({ length: 10 }, () => "invalid_code")
      )
      assert.strictEqual(codes[10], "rate_limited")
    })
  )

  it.effect("allows a player ten codes within ten minutes", () =>
    Effect.gen(function* () {
      const { target } = yield* targets
      const ada = yield* guest(target)
      for (let i = 0; i < 10; i++) yield* transferCode(target, ada)
      const eleventh = yield* play(target, ada, "POST", "auth/transfer")
      assert.strictEqual(codeOf(eleventh), "rate_limited")
      assert.isNotNull(eleventh.headers.get("retry-after"))
    })
  )
})
