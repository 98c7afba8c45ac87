/** Appeals against bans: creation, resolution, listing and rate limit. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { at, guest, type TestPlayer, type TestTarget } from "#testing/players"
import { addressOfNode, makeTenants, nodeWith, SharedDatabase } from "../../support/http-stack.ts"
import {
  ask,
  ban,
  codeOf,
  lastSanction,
  operate,
  play,
  refresh,
  unban
} from "../../support/moderation-calls.ts"

const Node = nodeWith().pipe(Layer.provideMerge(SharedDatabase.layer))

const setUp = Effect.gen(function* () {
  const url = yield* addressOfNode
  const { development, production } = yield* makeTenants
  return { target: { url, ...development }, production: { url, ...production } }
})

const banned = Effect.gen(function* () {
  const { production, target } = yield* setUp
  const ada = yield* guest(target, "Ada")
  yield* ban(target, ada.id, { reason: "private", publicNote: "note" })
  return { ada, production, sanctionId: yield* lastSanction(target, ada), target }
})

const appeal = (
  target: TestTarget,
  player: TestPlayer,
  sanctionId: string,
  message: unknown = "It was my brother."
) => play(target, player, "POST", `players/me/sanctions/${sanctionId}/appeal`, { message })

/** Appeals with a refresh token. */
const byToken = (target: TestTarget, refreshToken: string, more: object = {}) =>
  ask(target, "auth/appeal", { refreshToken, message: "Please.", ...more })

const list = (target: TestTarget, query = "") => operate(target, "GET", `appeals${query}`)

const resolve = (target: TestTarget, appealId: unknown, resolution: object) =>
  operate(target, "POST", `appeals/${String(appealId)}/resolve`, resolution)

const openAppeal = Effect.gen(function* () {
  const setting = yield* banned
  const { ada, sanctionId, target } = setting
  assert.strictEqual((yield* appeal(target, ada, sanctionId)).status, 201)
  const { body } = yield* list(target)
  return { ...setting, appealId: at(body, "appeals", 0, "id") }
})

/** The player's view of the last ban. */
const sanctionOf = Effect.fnUntraced(function* (target: TestTarget, player: TestPlayer) {
  return (yield* play(target, player, "GET", "players/me/sanctions")).body.sanctions[0]
})

layer(Node)("an appeal", (it) => {
  it.effect("accepts one appeal from the banned player and returns the ban", () =>
    Effect.gen(function* () {
      const { ada, sanctionId, target } = yield* banned
      const made = yield* appeal(target, ada, sanctionId)
      assert.strictEqual(made.status, 201)
      const sanction = made.body.sanction
      assert.deepInclude(sanction, { id: sanctionId, kind: "ban", active: true, note: "note" })
      assert.deepInclude(sanction.appeal, {
        status: "open",
        message: "It was my brother.",
        response: null
      })
      assert.deepStrictEqual(yield* sanctionOf(target, ada), sanction)
      const again = yield* appeal(target, ada, sanctionId)
      assert.strictEqual(again.status, 409)
      assert.strictEqual(codeOf(again), "already_appealed")
      // A second ban call changes the active ban instead of creating another.
      yield* ban(target, ada.id, { reason: "other", durationHours: 1 })
      assert.strictEqual(codeOf(yield* appeal(target, ada, sanctionId)), "already_appealed")
    })
  )

  it.effect("stores one of several concurrent appeals", () =>
    Effect.gen(function* () {
      const { ada, sanctionId, target } = yield* banned
      const answers = yield* Effect.all(
        Array.from({ length: 8 }, (_, i) => appeal(target, ada, sanctionId, `${i}`)),
        { concurrency: "unbounded" }
      )
      const codes = answers.map(codeOf).toSorted()
      assert.deepStrictEqual(codes, [...Array<string>(7).fill("already_appealed"), "ok"])
    })
  )

  it.effect("accepts only appeals against the player's active ban, with 1 to 2000 characters", () =>
    Effect.gen(function* () {
      const { ada, sanctionId, target } = yield* banned
      const bob = yield* guest(target, "Bob")
      for (const [player, id] of [
        [bob, sanctionId],
        [ada, `snc_${"0".repeat(26)}`],
        [ada, "mine"]
      ] as const) {
        const answer = yield* appeal(target, player, id)
        assert.strictEqual(answer.status, 404)
        assert.strictEqual(codeOf(answer), "not_found")
      }
      for (const message of ["", " ", "x".repeat(2001), 7, null]) {
        assert.strictEqual((yield* appeal(target, ada, sanctionId, message)).status, 400)
      }
      yield* unban(target, ada.id)
      const late = yield* appeal(target, ada, sanctionId, "x".repeat(2000))
      assert.strictEqual(late.status, 409)
      assert.strictEqual(codeOf(late), "sanction_inactive")
    })
  )

  it.effect("lifts the ban by an accepted appeal, keeps it by a rejected one, resolves once", () =>
    Effect.gen(function* () {
      for (const accept of [true, false]) {
        const { ada, appealId, target } = yield* openAppeal
        const resolved = yield* resolve(target, appealId, { accept, response: "We looked." })
        assert.strictEqual(resolved.status, 200)
        const status = accept ? "accepted" : "rejected"
        assert.deepInclude(resolved.body.appeal, { status, response: "We looked." })
        const sanction = yield* sanctionOf(target, ada)
        assert.strictEqual(sanction?.active, !accept)
        assert.deepInclude(sanction?.appeal, { status, response: "We looked." })
        const write = yield* play(target, ada, "PATCH", "players/me", { displayName: "A" })
        assert.strictEqual(codeOf(write), accept ? "ok" : "player_banned")
        const again = yield* resolve(target, appealId, { accept: true })
        assert.strictEqual(again.status, 409)
        assert.strictEqual(codeOf(again), "already_resolved")
      }
    })
  )

  it.effect("accepts the open appeal when the ban is lifted or expires", () =>
    Effect.gen(function* () {
      const closed = { status: "accepted", response: null }
      const lifted = yield* openAppeal
      yield* unban(lifted.target, lifted.ada.id)
      assert.deepInclude(at(yield* sanctionOf(lifted.target, lifted.ada), "appeal"), closed)
      const timed = yield* openAppeal
      yield* ban(timed.target, timed.ada.id, { durationHours: 0.1 })
      yield* TestClock.adjust("6 minutes")
      assert.deepInclude(at(yield* sanctionOf(timed.target, timed.ada), "appeal"), closed)
      for (const { appealId, target } of [lifted, timed]) {
        const answer = yield* resolve(target, appealId, { accept: false })
        assert.strictEqual(codeOf(answer), "already_resolved")
        const open = yield* list(target, "?status=open")
        assert.deepStrictEqual(open.body, { appeals: [], nextCursor: null })
        const { body } = yield* list(target, "?status=accepted")
        assert.deepInclude(at(body, "appeals", 0), { id: appealId, ...closed })
        assert.isString(at(body, "appeals", 0, "resolvedAt"))
      }
    })
  )

  it.effect("resolves an appeal once when the player is unbanned concurrently", () =>
    Effect.gen(function* () {
      const { ada, appealId, target } = yield* openAppeal
      const [resolved] = yield* Effect.all(
        [resolve(target, appealId, { accept: true, response: "ok" }), unban(target, ada.id)],
        { concurrency: "unbounded" }
      )
      const sanction = yield* sanctionOf(target, ada)
      assert.strictEqual(sanction?.active, false)
      assert.deepInclude(sanction?.appeal, {
        status: "accepted",
        response: resolved.status === 200 ? "ok" : null
      })
    })
  )
})

layer(Node)("an appeal with the revoked refresh token", (it) => {
  it.effect(
    "takes an appeal with the revoked refresh token, also after the access token has expired",
    () =>
      Effect.gen(function* () {
        const { ada, sanctionId, target } = yield* banned
        yield* TestClock.adjust("16 minutes")
        const made = yield* byToken(target, ada.refreshToken)
        assert.strictEqual(made.status, 201, JSON.stringify(made.body))
        assert.strictEqual(made.body.sanction.id, sanctionId)
        const again = yield* byToken(target, ada.refreshToken, { sanctionId })
        assert.strictEqual(codeOf(again), "already_appealed")
        yield* unban(target, ada.id)
        assert.strictEqual(codeOf(yield* byToken(target, ada.refreshToken)), "sanction_inactive")
      })
  )

  it.effect("rejects an appeal with any other token than the revoked one", () =>
    Effect.gen(function* () {
      const { production, target } = yield* setUp
      const ada = yield* guest(target, "Ada")
      const next = String((yield* refresh(target, ada.refreshToken)).body.refreshToken)
      const bob = yield* guest(target, "Bob")
      yield* ask(target, "auth/logout", { refreshToken: bob.refreshToken })
      yield* ban(target, ada.id)
      yield* ban(target, bob.id)
      const cleo = yield* guest(target, "Cleo")
      for (const [where, token, code] of [
        [target, "rt_nonsense", "invalid_refresh_token"],
        [target, ada.refreshToken, "invalid_refresh_token"],
        [production, next, "invalid_refresh_token"],
        [target, bob.refreshToken, "session_revoked"],
        [target, cleo.refreshToken, "not_found"]
      ] as const) {
        assert.strictEqual(codeOf(yield* byToken(where, token)), code)
      }
      const foreign = yield* byToken(target, next, { sanctionId: `snc_${"0".repeat(26)}` })
      assert.strictEqual(codeOf(foreign), "not_found")
      assert.strictEqual((yield* byToken(target, next)).status, 201)
    })
  )
})

layer(Node)("the list of appeals", (it) => {
  it.effect("lists open appeals first, then oldest first, in pages of one environment", () =>
    Effect.gen(function* () {
      const { production, target } = yield* setUp
      const made: Array<unknown> = []
      for (const name of ["a", "b", "c", "d"]) {
        const player = yield* guest(target, name)
        yield* ban(target, player.id, { reason: "why" })
        yield* appeal(target, player, yield* lastSanction(target, player), name)
        yield* TestClock.adjust("1 second")
      }
      const all = yield* list(target)
      for (let i = 0; i < 4; i++) made.push(at(all.body, "appeals", i, "message"))
      assert.deepStrictEqual(made, ["a", "b", "c", "d"])
      assert.deepInclude(at(all.body, "appeals", 0, "sanction"), { reason: "why", active: true })
      yield* resolve(target, at(all.body, "appeals", 1, "id"), { accept: false })
      const seen: Array<unknown> = []
      let cursor = ""
      do {
        const { body } = yield* list(target, `?limit=1${cursor}`)
        seen.push(at(body, "appeals", 0, "message"))
        const next = at(body, "nextCursor")
        cursor = next === null ? "" : `&cursor=${String(next)}`
      } while (cursor !== "")
      assert.deepStrictEqual(seen, ["a", "c", "d", "b"])
      const rejected = yield* list(target, "?status=rejected")
      assert.strictEqual(at(rejected.body, "appeals", 0, "message"), "b")
      assert.deepStrictEqual((yield* list(production)).body, { appeals: [], nextCursor: null })
      const foreign = yield* resolve(production, at(all.body, "appeals", 0, "id"), { accept: true })
      assert.strictEqual(codeOf(foreign), "not_found")
      for (const query of ["?status=closed", "?limit=0", "?limit=101", "?cursor=x"]) {
        assert.strictEqual((yield* list(target, query)).status, 400, query)
      }
    })
  )
})

const Throttled = nodeWith({ SVC_THROTTLES: "on" }).pipe(Layer.provideMerge(SharedDatabase.layer))

layer(Throttled)("appeals", (it) => {
  it.effect("limits appeals to five per player and hour", () =>
    Effect.gen(function* () {
      const { ada, target } = yield* banned
      for (let i = 0; i < 5; i++) {
        assert.strictEqual(codeOf(yield* appeal(target, ada, "none")), "not_found")
      }
      const sixth = yield* appeal(target, ada, "none")
      assert.strictEqual(sixth.status, 429)
      assert.strictEqual(codeOf(sixth), "rate_limited")
      assert.closeTo(Number(sixth.headers.get("retry-after")), 3600, 60)
    })
  )

  it.effect("counts appeals by access token and by refresh token together", () =>
    Effect.gen(function* () {
      const { ada, target } = yield* banned
      const unknown = `snc_${"0".repeat(26)}`
      for (let i = 0; i < 3; i++) yield* appeal(target, ada, unknown)
      for (let i = 0; i < 2; i++) {
        assert.strictEqual(
          codeOf(yield* byToken(target, ada.refreshToken, { sanctionId: unknown })),
          "not_found"
        )
      }
      const sixth = yield* byToken(target, ada.refreshToken)
      assert.strictEqual(codeOf(sixth), "rate_limited")
    })
  )
})
