/** Sessions: rotation, refresh races, token reuse, expiry and logout. */
import { assert, layer } from "@effect/vitest"
import { Effect, Exit, Layer } from "effect"
import { TestClock } from "effect/testing"
import { SqlClient } from "effect/sql"
import { EnvironmentId } from "#rpc/ids"
import { Sessions } from "#server/features/sessions/service"
import { AccessTokens } from "#server/features/sessions/tokens"
import { coreOfNode, makeTenants, SharedDatabase } from "../../support/http-stack.ts"

const Core = coreOfNode().pipe(Layer.provideMerge(SharedDatabase.layer))

const newGuest = Effect.gen(function* () {
  const sessions = yield* Sessions
  const { development, production } = yield* makeTenants
  const session = yield* sessions.createGuest(development.environmentId, undefined)
  return { environmentId: development.environmentId, foreign: production.environmentId, session }
})

/** The error code of a refresh; `ok` if it rotated. */
const codeOf = Effect.fnUntraced(function* (environmentId: EnvironmentId, token: string) {
  const sessions = yield* Sessions
  return yield* Effect.match(sessions.refresh(environmentId, token), {
    onSuccess: () => "ok",
    onFailure: (error) => error._tag
  })
})

const rotate = Effect.fnUntraced(function* (environmentId: EnvironmentId, token: string) {
  const sessions = yield* Sessions
  return (yield* sessions.refresh(environmentId, token)).refreshToken
})

layer(Core)("sessions", (it) => {
  it.effect("creates a guest with an access token for 15 minutes and a refresh token", () =>
    Effect.gen(function* () {
      const tokens = yield* AccessTokens
      const { environmentId, session } = yield* newGuest
      assert.match(session.player.displayName, /^Player-[0-9A-HJKMNP-TV-Z]{4}$/)
      assert.deepStrictEqual(session.player.identities, [{ provider: "guest" }])
      assert.isTrue(session.player.isGuest)
      assert.isFalse(session.player.emailVerified)
      assert.strictEqual(session.expiresIn, 900)
      const caller = yield* tokens.verify(session.accessToken, environmentId)
      assert.strictEqual(caller.playerId, session.player.id)
      assert.isTrue(caller.isGuest)
    })
  )

  it.effect("creates 200 guests at once, each with its own name, player and session", () =>
    Effect.gen(function* () {
      const sessions = yield* Sessions
      const { development, production } = yield* makeTenants
      const environments = [development.environmentId, production.environmentId]
      const guests = yield* Effect.forEach(
        Array.from({ length: 200 }, (_, index) => index),
        (index) => sessions.createGuest(environments[index % 2]!, `Guest ${index}`),
        { concurrency: "unbounded" }
      )
      const refreshed = yield* Effect.forEach(guests, ({ refreshToken }, index) =>
        sessions.refresh(environments[index % 2]!, refreshToken)
      )
      assert.deepStrictEqual(
        refreshed.map(({ player }) => player),
        guests.map(({ player }) => player)
      )
      assert.strictEqual(new Set(guests.map(({ player }) => player.id)).size, 200)
      assert.deepStrictEqual(
        guests.map(({ player }) => player.displayName),
        guests.map((_, index) => `Guest ${index}`)
      )
    })
  )

  it.effect("creates the other guests when the environment of one is gone", () =>
    Effect.gen(function* () {
      const sessions = yield* Sessions
      const { development } = yield* makeTenants
      const gone = EnvironmentId.make("env_01JZZZZZZZZZZZZZZZZZZZZZZZ")
      const environments = [...Array.from({ length: 20 }, () => development.environmentId), gone]
      const exits = yield* Effect.forEach(
        environments,
        (environmentId) => Effect.exit(sessions.createGuest(environmentId, undefined)),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(
        exits.map(Exit.isSuccess),
        environments.map((environmentId) => environmentId !== gone)
      )
    })
  )

  it.effect("rotates the refresh token of the same player and session", () =>
    Effect.gen(function* () {
      const sessions = yield* Sessions
      const tokens = yield* AccessTokens
      const { environmentId, session } = yield* newGuest
      const next = yield* sessions.refresh(environmentId, session.refreshToken)
      assert.deepStrictEqual(next.player, session.player)
      assert.notStrictEqual(next.refreshToken, session.refreshToken)
      const before = yield* tokens.verify(session.accessToken, environmentId)
      const after = yield* tokens.verify(next.accessToken, environmentId)
      assert.strictEqual(after.sessionId, before.sessionId)
    })
  )

  it.effect(
    "answers refresh_race to the replaced token for ten seconds and keeps the session",
    () =>
      Effect.gen(function* () {
        const { environmentId, session } = yield* newGuest
        const next = yield* rotate(environmentId, session.refreshToken)
        assert.strictEqual(yield* codeOf(environmentId, session.refreshToken), "refresh_race")
        yield* TestClock.adjust("9999 millis")
        assert.strictEqual(yield* codeOf(environmentId, session.refreshToken), "refresh_race")
        assert.strictEqual(yield* codeOf(environmentId, next), "ok")
      })
  )

  it.effect("revokes the session when a replaced token is presented after ten seconds", () =>
    Effect.gen(function* () {
      const { environmentId, session } = yield* newGuest
      const next = yield* rotate(environmentId, session.refreshToken)
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual(yield* codeOf(environmentId, session.refreshToken), "session_revoked")
      assert.strictEqual(yield* codeOf(environmentId, next), "session_revoked")
    })
  )

  it.effect("revokes the session at once when a token older than the parent is presented", () =>
    Effect.gen(function* () {
      const { environmentId, session } = yield* newGuest
      const second = yield* rotate(environmentId, session.refreshToken)
      const third = yield* rotate(environmentId, second)
      assert.strictEqual(yield* codeOf(environmentId, session.refreshToken), "session_revoked")
      assert.strictEqual(yield* codeOf(environmentId, third), "session_revoked")
    })
  )

  it.effect("rotates exactly once for 64 concurrent refreshes and revokes nothing", () =>
    Effect.gen(function* () {
      const { environmentId, session } = yield* newGuest
      const sessions = yield* Sessions
      let current = session.refreshToken
      for (let round = 0; round < 5; round++) {
        const outcomes = yield* Effect.forEach(
          Array.from({ length: 64 }),
          () => Effect.result(sessions.refresh(environmentId, current)),
          { concurrency: "unbounded" }
        )
        const winners = outcomes.flatMap((result) =>
          result._tag === "Success" ? [result.success] : []
        )
        const losers = outcomes.flatMap((result) =>
          result._tag === "Failure" ? [result.failure._tag] : []
        )
        assert.strictEqual(winners.length, 1)
        assert.deepStrictEqual(new Set(losers), new Set(["refresh_race"]))
        current = winners[0]?.refreshToken ?? ""
      }
      assert.strictEqual(yield* codeOf(environmentId, current), "ok")
    })
  )

  it.effect(
    "expires a refresh token 90 days after its issue",
    () =>
      Effect.gen(function* () {
        const used = yield* newGuest
        const idle = yield* newGuest
        yield* TestClock.adjust("7775999 seconds")
        const next = yield* rotate(used.environmentId, used.session.refreshToken)
        yield* TestClock.adjust("1 second")
        const { environmentId, session } = idle
        assert.strictEqual(
          yield* codeOf(environmentId, session.refreshToken),
          "invalid_refresh_token"
        )
        assert.strictEqual(yield* codeOf(used.environmentId, next), "ok")
      }),
    { tags: "long" }
  )

  it.effect("refuses a refresh token of another environment without revoking the session", () =>
    Effect.gen(function* () {
      const { environmentId, foreign, session } = yield* newGuest
      assert.strictEqual(yield* codeOf(foreign, session.refreshToken), "invalid_refresh_token")
      const sessions = yield* Sessions
      yield* sessions.logout(foreign, session.refreshToken)
      assert.strictEqual(yield* codeOf(environmentId, session.refreshToken), "ok")
    })
  )

  it.effect("refuses a forged token of a known session without revoking the session", () =>
    Effect.gen(function* () {
      const { environmentId, session } = yield* newGuest
      const sessions = yield* Sessions
      const [head = "", random = "", mac = ""] = session.refreshToken.split(".")
      const flip = (text: string) => (text.startsWith("A") ? "B" : "A") + text.slice(1)
      const forged = [
        `${head}.${flip(random)}.${mac}`,
        `${head}.${random}.${flip(mac)}`,
        `${head}.${flip(random)}.${flip(mac)}`,
        `${session.refreshToken}x`,
        session.refreshToken.toLowerCase(),
        head,
        "rt_",
        ""
      ]
      for (const token of forged) {
        assert.strictEqual(yield* codeOf(environmentId, token), "invalid_refresh_token", token)
        yield* sessions.logout(environmentId, token)
      }
      assert.strictEqual(yield* codeOf(environmentId, session.refreshToken), "ok")
    })
  )

  it.effect("ends the refresh token at logout, and accepts a repeated logout", () =>
    Effect.gen(function* () {
      const sessions = yield* Sessions
      const tokens = yield* AccessTokens
      const { environmentId, session } = yield* newGuest
      yield* sessions.logout(environmentId, session.refreshToken)
      yield* sessions.logout(environmentId, session.refreshToken)
      assert.strictEqual(yield* codeOf(environmentId, session.refreshToken), "session_revoked")
      // An issued access token stays valid until it expires.
      yield* tokens.verify(session.accessToken, environmentId)
    })
  )

  it.effect("stores no token, secret key or private key in plain text", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const sessions = yield* Sessions
      const { development } = yield* makeTenants
      const session = yield* sessions.createGuest(development.environmentId, undefined)
      const dump = JSON.stringify([
        yield* sql`select * from sessions`,
        yield* sql`select * from keys where kind = 'secret'`,
        yield* sql`select * from signing_keys`
      ])
      const [, random = ""] = session.refreshToken.split(".")
      assert.notInclude(dump, random)
      assert.notInclude(dump, development.secretKey)
      assert.notInclude(dump, '\\"d\\"')
    })
  )
})
