/** Bans over HTTP: their effect, expiry and limits, and who may ban. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { at, guest, request, type TestTarget } from "#testing/players"
import {
  addressOfNode,
  configure,
  makeDeveloper,
  makeTenantsOf,
  nodeWith,
  SharedDatabase,
  type Tenant
} from "../../support/http-stack.ts"
import {
  ban,
  codeOf,
  lastSanction,
  operate,
  play,
  refresh,
  unban
} from "../../support/moderation-calls.ts"

const Node = nodeWith().pipe(Layer.provideMerge(SharedDatabase.layer))

const targetOf = (url: string, { publishableKey, secretKey }: Tenant): TestTarget => ({
  url,
  publishableKey,
  secretKey
})

const setUp = Effect.gen(function* () {
  const url = yield* addressOfNode
  const developer = yield* makeDeveloper
  const { development, production, projectId } = yield* makeTenantsOf(developer.developerId)
  yield* configure(development, { features: { saves: true } })
  const dashboard = `${url}/v1/projects/${projectId}/environments/development`
  const target = targetOf(url, development)
  return { developer, dashboard, target, production: targetOf(url, production) }
})

const rename = { displayName: "Other" }

layer(Node)("bans", (it) => {
  it.effect("rejects a banned player's writes at once, allows reads, and rejects its refresh", () =>
    Effect.gen(function* () {
      const { target } = yield* setUp
      const ada = yield* guest(target, "Ada")
      assert.strictEqual((yield* play(target, ada, "PATCH", "players/me", rename)).status, 200)
      const banned = yield* ban(target, ada.id, {
        reason: "cheats",
        publicNote: "No bots, please."
      })
      assert.deepStrictEqual(banned, {
        id: ada.id,
        banned: true,
        bannedAt: "1970-01-01T00:00:00.000Z",
        banReason: "cheats",
        banExpiresAt: null,
        revokedSessions: 1
      })
      const sanctionId = yield* lastSanction(target, ada)
      const details = { sanctionId, expiresAt: null, note: "No bots, please." }
      for (const [method, path, body] of [
        ["PATCH", "players/me", rename],
        ["PUT", "saves/a", { data: 1 }],
        ["DELETE", "saves/a", undefined]
      ] as const) {
        const refused = yield* play(target, ada, method, path, body)
        assert.strictEqual(refused.status, 403, path)
        assert.strictEqual(codeOf(refused), "player_banned")
        assert.deepStrictEqual(at(refused.body, "error", "details"), details)
      }
      for (const path of ["players/me", "saves", "players/me/sanctions"]) {
        assert.strictEqual((yield* play(target, ada, "GET", path)).status, 200, path)
      }
      const over = yield* refresh(target, ada.refreshToken)
      assert.strictEqual(over.status, 401)
      assert.strictEqual(codeOf(over), "player_banned")
      assert.deepStrictEqual(at(over.body, "error", "details"), details)
      assert.notInclude(JSON.stringify(over.body), "cheats", "the reason is for operators")
    })
  )

  it.effect("expires a ban without any request, and does not restore revoked sessions", () =>
    Effect.gen(function* () {
      const { target } = yield* setUp
      const ada = yield* guest(target, "Ada")
      const banned = yield* ban(target, ada.id, { durationHours: 0.1 })
      assert.strictEqual(banned.banExpiresAt, "1970-01-01T00:06:00.000Z")
      assert.strictEqual(
        codeOf(yield* play(target, ada, "PATCH", "players/me", rename)),
        "player_banned"
      )
      yield* TestClock.adjust("359 seconds")
      assert.strictEqual(codeOf(yield* refresh(target, ada.refreshToken)), "player_banned")
      yield* TestClock.adjust("1 second")
      assert.strictEqual((yield* play(target, ada, "PATCH", "players/me", rename)).status, 200)
      assert.strictEqual(codeOf(yield* refresh(target, ada.refreshToken)), "session_revoked")
      const { body } = yield* play(target, ada, "GET", "players/me/sanctions")
      assert.deepInclude(body.sanctions[0], {
        kind: "ban",
        active: false,
        expiresAt: "1970-01-01T00:06:00.000Z",
        liftedAt: null
      })
    })
  )

  it.effect("lifts a ban by an unban, which changes nothing for other players", () =>
    Effect.gen(function* () {
      const { target } = yield* setUp
      const ada = yield* guest(target, "Ada")
      const free = { id: ada.id, banned: false, bannedAt: null, banReason: null }
      assert.deepInclude(yield* unban(target, ada.id), free)
      yield* ban(target, ada.id)
      assert.deepInclude(yield* unban(target, ada.id), { ...free, banExpiresAt: null })
      assert.strictEqual((yield* play(target, ada, "PATCH", "players/me", rename)).status, 200)
      const { body } = yield* play(target, ada, "GET", "players/me/sanctions")
      assert.isString(body.sanctions[0]?.liftedAt)
    })
  )

  it.effect("keeps the id of a ban that is changed, and issues a new one after expiry", () =>
    Effect.gen(function* () {
      const { target } = yield* setUp
      const ada = yield* guest(target, "Ada")
      yield* ban(target, ada.id, { reason: "one", durationHours: 1 })
      const first = yield* lastSanction(target, ada)
      const again = yield* ban(target, ada.id, { reason: "two", publicNote: "Now for good." })
      assert.deepInclude(again, { banReason: "two", banExpiresAt: null, revokedSessions: 0 })
      assert.strictEqual(yield* lastSanction(target, ada), first)
      yield* unban(target, ada.id)
      yield* ban(target, ada.id)
      assert.notStrictEqual(yield* lastSanction(target, ada), first)
      const { body } = yield* play(target, ada, "GET", "players/me/sanctions")
      assert.strictEqual(body.sanctions.length, 2)
    })
  )

  it.effect("keeps the texts of an active ban that is changed without new ones", () =>
    Effect.gen(function* () {
      const { target } = yield* setUp
      const ada = yield* guest(target, "Ada")
      yield* ban(target, ada.id, { reason: "cheating", publicNote: "Aimbot.", durationHours: 1 })
      assert.deepInclude(yield* ban(target, ada.id), { banReason: "cheating", banExpiresAt: null })
      const { body } = yield* play(target, ada, "GET", "players/me/sanctions")
      assert.strictEqual(body.sanctions[0]?.note, "Aimbot.")
    })
  )

  it.effect("rejects bans with publishable keys and of players of another environment", () =>
    Effect.gen(function* () {
      const { production, target } = yield* setUp
      const ada = yield* guest(target, "Ada")
      const page = { ...target, secretKey: target.publishableKey }
      const path = `players/${ada.id}/ban`
      assert.strictEqual(codeOf(yield* operate(page, "POST", path, {})), "invalid_key")
      for (const [where, who] of [
        [production, ada.id],
        [target, `pl_${"0".repeat(26)}`],
        [target, "somebody"]
      ] as const) {
        for (const act of ["ban", "unban"]) {
          const answer = yield* operate(where, "POST", `players/${who}/${act}`, {})
          assert.strictEqual(answer.status, 404)
          assert.strictEqual(codeOf(answer), "player_not_found")
        }
      }
      assert.strictEqual((yield* play(target, ada, "PATCH", "players/me", rename)).status, 200)
    })
  )

  it.effect("accepts a reason and a note of 500 characters, and durations up to 8784 hours", () =>
    Effect.gen(function* () {
      const { target } = yield* setUp
      const ada = yield* guest(target, "Ada")
      const long = "x".repeat(500)
      yield* ban(target, ada.id, { reason: long, publicNote: long, durationHours: 8784 })
      for (const terms of [
        { reason: `${long}x` },
        { publicNote: `${long}x` },
        { reason: 7 },
        { durationHours: 0 },
        { durationHours: -1 },
        { durationHours: 8784.01 },
        { durationHours: "24" },
        { durationHours: null },
        []
      ]) {
        const answer = yield* operate(target, "POST", `players/${ada.id}/ban`, terms)
        assert.strictEqual(answer.status, 400, JSON.stringify(terms))
        assert.strictEqual(codeOf(answer), "invalid_request")
      }
    })
  )

  it.effect("rejects the duration of a ban from a developer", () =>
    Effect.gen(function* () {
      const { dashboard, developer, target } = yield* setUp
      const ada = yield* guest(target, "Ada")
      const { headers } = developer
      const url = `${dashboard}/players/${ada.id}`
      const timed = yield* request(`${url}/ban`, { headers, body: { durationHours: 1 } })
      assert.strictEqual(timed.status, 400)
      assert.strictEqual(at(timed.body, "error", "details", "issues", 0, "path"), "durationHours")
      const banned = yield* request(`${url}/ban`, { headers, body: { reason: "spam" } })
      assert.strictEqual(at(banned.body, "player", "banned"), true)
      assert.strictEqual(
        codeOf(yield* play(target, ada, "PATCH", "players/me", rename)),
        "player_banned"
      )
      const freed = yield* request(`${url}/unban`, { headers, body: {} })
      assert.strictEqual(at(freed.body, "player", "banned"), false)
    })
  )

  it.effect("applies concurrent bans as one, and revokes sessions that refresh meanwhile", () =>
    Effect.gen(function* () {
      const { target } = yield* setUp
      const ada = yield* guest(target, "Ada")
      const [refreshed] = yield* Effect.all(
        [
          refresh(target, ada.refreshToken),
          ...Array.from({ length: 8 }, (_, i) => ban(target, ada.id, { reason: `${i}` }))
        ],
        { concurrency: "unbounded" }
      )
      const { body } = yield* play(target, ada, "GET", "players/me/sanctions")
      assert.strictEqual(body.sanctions.length, 1)
      const token = String(refreshed.body.refreshToken ?? ada.refreshToken)
      assert.strictEqual(codeOf(yield* refresh(target, token)), "player_banned")
      yield* unban(target, ada.id)
      assert.strictEqual(codeOf(yield* refresh(target, token)), "session_revoked")
    })
  )
})

layer(Node)("the player of a token", (it) => {
  const verify = (target: TestTarget, token: unknown) =>
    operate(target, "POST", "players/verify-token", { token })

  it.effect("returns the player of a token to servers, banned or not", () =>
    Effect.gen(function* () {
      const { target } = yield* setUp
      const ada = yield* guest(target, "Ada")
      const player = { id: ada.id, displayName: "Ada", banned: false }
      assert.deepStrictEqual((yield* verify(target, ada.accessToken)).body, { player })
      yield* ban(target, ada.id)
      const banned = { player: { ...player, banned: true } }
      assert.deepStrictEqual((yield* verify(target, ada.accessToken)).body, banned)
    })
  )

  it.effect("returns no player for expired or foreign tokens and other text", () =>
    Effect.gen(function* () {
      const { production, target } = yield* setUp
      const ada = yield* guest(target, "Ada")
      const [head = "", body = "", mark = ""] = ada.accessToken.split(".")
      for (const garbled of [
        "",
        "x",
        `${head}.${body}.${"A".repeat(mark.length)}`,
        "x".repeat(9000)
      ]) {
        const answer = yield* verify(target, garbled)
        assert.strictEqual(answer.status, 401, garbled.slice(0, 40))
        assert.strictEqual(codeOf(answer), "invalid_token")
      }
      assert.strictEqual((yield* verify(target, 7)).status, 400)
      assert.strictEqual(codeOf(yield* verify(production, ada.accessToken)), "token_expired")
      yield* TestClock.adjust("15 minutes")
      const late = yield* verify(target, ada.accessToken)
      assert.strictEqual(late.status, 401)
      assert.strictEqual(codeOf(late), "token_expired")
    })
  )
})
