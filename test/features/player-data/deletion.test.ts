/** `DELETE /v1/players/me`: the proof that it requires and its effects. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestApp } from "#testing/app"
import { at, configure, goOnline, guest, newPlayer, type TestPlayer } from "#testing/players"
import {
  anotherDevice,
  appWithSql,
  inAppBrowser,
  link,
  logout,
  password
} from "../../support/devices.ts"
import { ban, codeOf, play, refresh } from "../../support/moderation-calls.ts"
import { openRoom } from "../../support/opened-room.ts"

const live = { timeout: "120 seconds", excludeTestServices: true } as const

const remove = (app: TestApp["Service"], player: TestPlayer, proof: object) =>
  play(app, player, "DELETE", "players/me", proof)

const assertDeleted = Effect.fnUntraced(function* (app: TestApp["Service"], player: TestPlayer) {
  assert.strictEqual((yield* play(app, player, "GET", "players/me")).status, 401)
  assert.strictEqual(codeOf(yield* refresh(app, player.refreshToken)), "invalid_refresh_token")
})

/** A player with these identities. */
const playerWith = Effect.fnUntraced(function* (...methods: ReadonlyArray<"email" | "google">) {
  const app = yield* TestApp
  yield* configure(app, { features: { multiplayer: true }, ...inAppBrowser })
  const ada = yield* guest(app, "Ada")
  for (const method of methods) yield* link(ada, method)
  return { app, ada }
})

layer(appWithSql(), live)("self-deletion", (it) => {
  it.effect("deletes a guest who proves it with the own refresh token", () =>
    Effect.gen(function* () {
      const { ada, app } = yield* playerWith()
      const answer = yield* remove(app, ada, { refreshToken: ada.refreshToken })
      assert.strictEqual(answer.status, 200)
      assert.deepStrictEqual(answer.body, { deleted: true })
      yield* assertDeleted(app, ada)
    })
  )

  it.effect("deletes a player without an email by a refresh token of any open session", () =>
    Effect.gen(function* () {
      const { ada, app } = yield* playerWith("google")
      const tablet = yield* anotherDevice(app, ada)
      const answer = yield* remove(app, ada, { refreshToken: tablet.refreshToken })
      assert.deepStrictEqual(answer.body, { deleted: true })
      yield* assertDeleted(app, ada)
      yield* assertDeleted(app, tablet)
    })
  )

  it.effect("requires the password to delete a player with an email", () =>
    Effect.gen(function* () {
      const { ada, app } = yield* playerWith("email", "google")
      for (const proof of [
        { refreshToken: ada.refreshToken },
        { password: "wrong", refreshToken: ada.refreshToken },
        { password: `${password} ` }
      ]) {
        const answer = yield* remove(app, ada, proof)
        assert.strictEqual(answer.status, 401, JSON.stringify(proof))
        assert.strictEqual(codeOf(answer), "invalid_credentials")
      }
      const answer = yield* remove(app, ada, { password, refreshToken: "nonsense" })
      assert.deepStrictEqual(answer.body, { deleted: true })
      yield* assertDeleted(app, ada)
    })
  )

  it.effect(
    "refuses to delete a player by a password without an email, a foreign token or a revoked one",
    () =>
      Effect.gen(function* () {
        const { ada, app } = yield* playerWith("google")
        const bob = yield* guest(app)
        const tablet = yield* anotherDevice(app, ada)
        yield* logout(app, tablet)
        const next = yield* refresh(app, ada.refreshToken)
        for (const proof of [
          { password },
          { password: "" },
          { refreshToken: bob.refreshToken },
          { refreshToken: tablet.refreshToken },
          { refreshToken: ada.refreshToken },
          { refreshToken: "nonsense" }
        ]) {
          const answer = yield* remove(app, ada, proof)
          assert.strictEqual(codeOf(answer), "invalid_credentials", JSON.stringify(proof))
        }
        const refreshToken = String(at(next.body, "refreshToken"))
        assert.strictEqual(codeOf(yield* remove(app, ada, { refreshToken })), "ok")
        assert.strictEqual((yield* play(app, bob, "GET", "players/me")).status, 200)
      })
  )

  it.effect("refuses to delete a player without a proof", () =>
    Effect.gen(function* () {
      const { ada, app } = yield* playerWith()
      for (const proof of [{}, { password: 7 }, { refreshToken: "" }, { passwort: "x" }]) {
        assert.strictEqual(codeOf(yield* remove(app, ada, proof)), "invalid_request")
      }
      assert.strictEqual((yield* play(app, ada, "GET", "players/me")).status, 200)
    })
  )

  it.effect(
    "removes a player who deletes the account from the room, and closes the socket with 4001",
    () =>
      Effect.gen(function* () {
        const { ada, app } = yield* playerWith()
        const online = yield* goOnline(app, ada)
        const bob = yield* newPlayer(app, "Bob")
        yield* openRoom([bob, online])
        yield* remove(app, ada, { refreshToken: ada.refreshToken })
        const { code, reason } = yield* online.socket.closed
        assert.strictEqual(`${code} ${reason}`, "4001 session_revoked")
        const left = yield* bob.socket.next("player_left")
        assert.deepInclude(left, { playerId: ada.id, reason: "deleted" })
      })
  )

  it.effect("deletes a player once under concurrent requests", () =>
    Effect.gen(function* () {
      const { ada, app } = yield* playerWith()
      const answers = yield* Effect.all(
        Array.from({ length: 5 }, () => remove(app, ada, { refreshToken: ada.refreshToken })),
        { concurrency: "unbounded" }
      )
      assert.lengthOf(
        answers.filter(({ status }) => status === 200),
        1
      )
      for (const { status } of answers) assert.include([200, 401, 404], status)
    })
  )

  it.effect("refuses to delete a banned player on the player's request", () =>
    Effect.gen(function* () {
      const { ada, app } = yield* playerWith()
      yield* ban(app, ada.id)
      const answer = yield* remove(app, ada, { refreshToken: ada.refreshToken })
      assert.strictEqual(codeOf(answer), "player_banned")
    })
  )
})

layer(appWithSql({ SVC_THROTTLES: "on" }), live)("the throttle of self-deletion", (it) => {
  it.effect(
    "allows ten wrong proofs for a deletion within 15 minutes, and then refuses a correct one, too",
    () =>
      Effect.gen(function* () {
        const { ada, app } = yield* playerWith()
        for (let i = 0; i < 10; i++) {
          const answer = yield* remove(app, ada, { refreshToken: "nonsense" })
          assert.strictEqual(codeOf(answer), "invalid_credentials")
        }
        const right = yield* remove(app, ada, { refreshToken: ada.refreshToken })
        assert.strictEqual(right.status, 429)
        assert.isNotNull(right.headers.get("retry-after"))
      })
  )
})
