/** Identities of a player: listing, unlinking, and the sockets of revoked sessions. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { PlayerId } from "#rpc/ids"
import { IdentityRepository } from "#sql/identities"
import { TestApp } from "#testing/app"
import { at, configure, goOnline, guest, newPlayer } from "#testing/players"
import {
  anotherDevice,
  appWithSql,
  inAppBrowser,
  link,
  logout,
  password,
  providersOf,
  stealSession,
  unlink
} from "../../support/devices.ts"
import { addressOfNode, makeTenants, nodeWith, SharedDatabase } from "../../support/http-stack.ts"
import { ask, ban, codeOf, play, refresh } from "../../support/moderation-calls.ts"
import { openRoom } from "../../support/opened-room.ts"

const live = { timeout: "120 seconds", excludeTestServices: true } as const

/** Waits until this node has applied all earlier changes, which it does in order. */
const waitForChanges = Effect.fnUntraced(function* (app: TestApp["Service"]) {
  const last = yield* newPlayer(app, "Last")
  yield* stealSession(app, last)
  yield* last.socket.closed
})

/** A player with these identities, signed in on two devices. */
const onTwoDevices = Effect.fnUntraced(function* (...methods: ReadonlyArray<"email" | "google">) {
  const app = yield* TestApp
  yield* configure(app, { features: { multiplayer: true }, ...inAppBrowser })
  const phone = yield* guest(app, "Ada")
  for (const method of methods) yield* link(phone, method)
  const tablet = yield* anotherDevice(app, phone)
  return { app, phone, tablet }
})

layer(appWithSql(), live)("identities", (it) => {
  it.effect("lists identities oldest first with their profile, without a guest entry", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const ada = yield* guest(app, "Ada")
      const list = Effect.map(play(app, ada, "GET", "players/me/identities"), ({ body }) => body)
      assert.deepStrictEqual(yield* list, { identities: [] })
      yield* link(ada, "email", "2026-01-02")
      yield* link(ada, "google", "2026-01-03")
      yield* link(ada, "x", "2026-01-01")
      const email = `${ada.id.toLowerCase()}@example.com`
      assert.deepStrictEqual(yield* list, {
        identities: [
          { provider: "x", username: "ada", linkedAt: "2026-01-01T00:00:00.000Z" },
          {
            provider: "email",
            email,
            emailVerified: false,
            linkedAt: "2026-01-02T00:00:00.000Z"
          },
          { provider: "google", email, emailVerified: true, linkedAt: "2026-01-03T00:00:00.000Z" }
        ]
      })
      const bob = yield* guest(app, "Bob")
      assert.deepStrictEqual(yield* providersOf(app, bob), [])
    })
  )

  it.effect("removes an unlinked identity and revokes every other session", () =>
    Effect.gen(function* () {
      const { app, phone, tablet } = yield* onTwoDevices("email", "google")
      const answer = yield* unlink(app, phone, "google", phone.refreshToken)
      assert.strictEqual(answer.status, 200)
      assert.deepInclude(at(answer.body, "player"), {
        id: phone.id,
        isGuest: false,
        identities: [{ provider: "email" }]
      })
      assert.deepStrictEqual(yield* providersOf(app, phone), ["email"])
      assert.strictEqual(codeOf(yield* refresh(app, tablet.refreshToken)), "session_revoked")
      assert.strictEqual(codeOf(yield* refresh(app, phone.refreshToken)), "ok")
    })
  )

  it.effect("unlinks an email identity like a provider identity", () =>
    Effect.gen(function* () {
      const { app, phone } = yield* onTwoDevices("email", "google")
      const answer = yield* unlink(app, phone, "email", phone.refreshToken)
      assert.deepStrictEqual(at(answer.body, "player", "identities"), [{ provider: "google" }])
      assert.strictEqual(at(answer.body, "player", "emailVerified"), false)
    })
  )

  it.effect(
    "refuses to unlink the last identity with 409 last_login_method, revoking nothing",
    () =>
      Effect.gen(function* () {
        for (const method of ["email", "google"] as const) {
          const { app, phone, tablet } = yield* onTwoDevices(method)
          const answer = yield* unlink(app, phone, method, phone.refreshToken)
          assert.strictEqual(answer.status, 409)
          assert.strictEqual(codeOf(answer), "last_login_method")
          assert.deepStrictEqual(yield* providersOf(app, phone), [method])
          assert.strictEqual(codeOf(yield* refresh(app, tablet.refreshToken)), "ok")
        }
      })
  )

  it.effect("answers 404 not_found for an identity that the player does not have", () =>
    Effect.gen(function* () {
      const { app, phone, tablet } = yield* onTwoDevices("email", "google")
      for (const provider of ["apple", "guest", "nobody", "%00", "constructor"]) {
        const answer = yield* unlink(app, phone, provider, phone.refreshToken)
        assert.strictEqual(answer.status, 404, provider)
        assert.strictEqual(codeOf(answer), "not_found", provider)
      }
      assert.strictEqual(codeOf(yield* refresh(app, tablet.refreshToken)), "ok")
      const nobody = yield* guest(app)
      const answer = yield* unlink(app, nobody, "email", nobody.refreshToken)
      assert.strictEqual(codeOf(answer), "not_found")
    })
  )

  it.effect("requires the current refresh token of an open session of the player to unlink", () =>
    Effect.gen(function* () {
      const { app, phone, tablet } = yield* onTwoDevices("email", "google")
      const stranger = yield* guest(app)
      const elsewhere = yield* guest(app.production)
      const renewed = yield* refresh(app, phone.refreshToken)
      yield* logout(app, tablet)
      const wrong = [
        stranger.refreshToken,
        elsewhere.refreshToken,
        phone.refreshToken,
        tablet.refreshToken,
        phone.accessToken,
        "nonsense"
      ]
      for (const token of wrong) {
        const answer = yield* unlink(app, phone, "google", token)
        assert.strictEqual(answer.status, 401)
        assert.strictEqual(codeOf(answer), "invalid_refresh_token")
      }
      for (const body of [{}, { refreshToken: "" }, { refreshToken: 1 }]) {
        const answer = yield* play(app, phone, "DELETE", "players/me/identities/google", body)
        assert.strictEqual(codeOf(answer), "invalid_request")
      }
      assert.deepStrictEqual(yield* providersOf(app, phone), ["email", "google"])
      const current = String(at(renewed.body, "refreshToken"))
      assert.strictEqual((yield* unlink(app, phone, "google", current)).status, 200)
    })
  )

  it.effect("lets one of two concurrent unlinks succeed and keeps its session", () =>
    Effect.gen(function* () {
      const { app, phone, tablet } = yield* onTwoDevices("email", "google")
      const answers = yield* Effect.all(
        [
          unlink(app, phone, "google", phone.refreshToken),
          unlink(app, tablet, "email", tablet.refreshToken)
        ],
        { concurrency: 2 }
      )
      const [winner, loser] = answers[0].status === 200 ? [phone, tablet] : [tablet, phone]
      assert.sameMembers(answers.map(codeOf), ["ok", "invalid_refresh_token"])
      assert.lengthOf(yield* providersOf(app, winner), 1)
      assert.strictEqual(codeOf(yield* refresh(app, winner.refreshToken)), "ok")
      assert.strictEqual(codeOf(yield* refresh(app, loser.refreshToken)), "session_revoked")
    })
  )

  it.effect(
    "fails or revokes a login that races with unlinking the email, without a deadlock",
    () =>
      Effect.gen(function* () {
        for (let round = 0; round < 4; round++) {
          const { app, phone } = yield* onTwoDevices("email", "google")
          yield* configure(app, { features: { emailLogin: true } })
          const email = `${phone.id.toLowerCase()}@example.com`
          const logIn = ask(app, "auth/email/login", { email, password })
          const [unlinked, ...answers] = yield* Effect.all(
            [
              Effect.andThen(logIn, unlink(app, phone, "email", phone.refreshToken)),
              ...Array.from({ length: 6 }, () => logIn)
            ],
            { concurrency: "unbounded" }
          )
          assert.strictEqual(codeOf(unlinked), "ok")
          for (const answer of answers) {
            if (codeOf(answer) === "invalid_credentials") continue
            const token = String(at(answer.body, "refreshToken"))
            assert.strictEqual(codeOf(answer), "ok")
            assert.strictEqual(codeOf(yield* refresh(app, token)), "session_revoked")
          }
        }
      }),
    { tags: "long" }
  )

  it.effect("refuses to unlink for a banned player", () =>
    Effect.gen(function* () {
      const { app, phone } = yield* onTwoDevices("email", "google")
      yield* ban(app, phone.id)
      const answer = yield* unlink(app, phone, "google", phone.refreshToken)
      assert.strictEqual(codeOf(answer), "player_banned")
      assert.deepStrictEqual(yield* providersOf(app, phone), ["email", "google"])
    })
  )
})

layer(appWithSql(), live)("a revoked session", (it) => {
  it.effect(
    "closes the socket with 4001 when another device unlinks, and keeps the room seat",
    () =>
      Effect.gen(function* () {
        const { app, phone, tablet } = yield* onTwoDevices("email", "google")
        const bob = yield* newPlayer(app, "Bob")
        const { roomId } = yield* openRoom([bob])
        const online = yield* goOnline(app, tablet)
        yield* online.socket.request({ t: "join", roomId })
        yield* unlink(app, phone, "google", phone.refreshToken)
        const closed = yield* online.socket.closed
        assert.deepStrictEqual([closed.code, closed.reason], [4001, "session_revoked"])
        yield* bob.socket.next("player_disconnected")
        const back = yield* goOnline(app, phone)
        const resumed = yield* back.socket.request({ t: "resume", roomId })
        assert.strictEqual(resumed["ok"], true)
      })
  )

  it.effect("closes no socket at logout, and lets the access token go on until it expires", () =>
    Effect.gen(function* () {
      const { app, phone, tablet } = yield* onTwoDevices("email", "google")
      const own = yield* goOnline(app, tablet)
      yield* logout(app, tablet)
      assert.strictEqual(codeOf(yield* refresh(app, tablet.refreshToken)), "session_revoked")
      yield* waitForChanges(app)
      assert.strictEqual((yield* own.socket.request({ t: "ping" }))["ok"], true)
      assert.strictEqual((yield* play(app, tablet, "GET", "players/me")).status, 200)
      const again = yield* goOnline(app, tablet)
      // 'Signed out on every device' ends what a logout has left open.
      yield* unlink(app, phone, "google", phone.refreshToken)
      const closed = yield* again.socket.closed
      assert.deepStrictEqual([closed.code, closed.reason], [4001, "session_revoked"])
    })
  )

  it.effect("closes no socket at logout with a token that was rotated a moment ago", () =>
    Effect.gen(function* () {
      const { app, phone } = yield* onTwoDevices()
      const online = yield* goOnline(app, phone)
      const rotated = yield* refresh(app, phone.refreshToken)
      yield* logout(app, phone)
      const next = String(at(rotated.body, "refreshToken"))
      assert.strictEqual(codeOf(yield* refresh(app, next)), "session_revoked")
      yield* waitForChanges(app)
      assert.strictEqual((yield* online.socket.request({ t: "ping" }))["ok"], true)
    })
  )

  it.effect("closes the socket of a session whose refresh token was stolen", () =>
    Effect.gen(function* () {
      const { app, phone } = yield* onTwoDevices()
      const online = yield* goOnline(app, phone)
      yield* stealSession(app, phone)
      const closed = yield* online.socket.closed
      assert.deepStrictEqual([closed.code, closed.reason], [4001, "session_revoked"])
    })
  )

  it.effect("lets a revoked session open a socket until its access token expires", () =>
    Effect.gen(function* () {
      const { app, phone } = yield* onTwoDevices()
      yield* stealSession(app, phone)
      const { socket } = yield* goOnline(app, phone)
      yield* play(app, phone, "PATCH", "players/me", { displayName: "Ida" })
      yield* waitForChanges(app)
      assert.strictEqual((yield* socket.request({ t: "ping" }))["ok"], true)
    })
  )

  it.effect("closes the sockets whose latest token names the revoked session", () =>
    Effect.gen(function* () {
      const { app, phone, tablet } = yield* onTwoDevices()
      const { socket } = yield* goOnline(app, phone)
      const { publishableKey: key } = app
      yield* socket.request({ t: "auth", key, token: tablet.accessToken })
      yield* stealSession(app, phone)
      yield* waitForChanges(app)
      assert.strictEqual((yield* socket.request({ t: "ping" }))["ok"], true)
      yield* stealSession(app, tablet)
      assert.strictEqual((yield* socket.closed).code, 4001)
    })
  )
})

layer(nodeWith().pipe(Layer.provideMerge(SharedDatabase.layer)))(
  "the last two identities",
  (it) => {
    it.effect("never removes the last two identities by concurrent unlinks", () =>
      Effect.gen(function* () {
        const url = yield* addressOfNode
        const { development } = yield* makeTenants
        const identities = yield* IdentityRepository.make
        const { environmentId } = development
        for (let round = 0; round < 8; round++) {
          const player = yield* guest({ url, ...development })
          for (const method of ["email", "google"] as const) yield* link(player, method)
          const playerId = yield* Schema.decodeUnknownEffect(PlayerId)(player.id)
          const both = (["email", "google"] as const).map((provider) =>
            Effect.exit(identities.unlink({ environmentId, playerId, provider }))
          )
          yield* Effect.all(both, { concurrency: 2 })
          assert.lengthOf(yield* identities.ofPlayer({ environmentId, playerId }), 1)
        }
      })
    )
  }
)
