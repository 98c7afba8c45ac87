/** Forged access tokens at both doors (ASVS 9.1 and 9.2): none is accepted, all are told the same. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestApp } from "#testing/app"
import { at, configure, guest, request } from "#testing/players"
import { connectSocket } from "#testing/socket-client"
import {
  type Forged,
  misissue,
  misused,
  partsOf,
  signingKey,
  tampered,
  withoutKey
} from "../support/security/forger.ts"
import { Exposed, live } from "../support/security/security-harness.ts"

/** The least that are tried. */
const least = 120

const forgedTokens = Effect.gen(function* () {
  const app = yield* TestApp
  const key = yield* signingKey
  const { accessToken } = yield* guest(app)
  const { claims } = partsOf(accessToken)
  const foreign = yield* guest(app.production)
  const { aud: elsewhere } = partsOf(foreign.accessToken).claims
  const forged: ReadonlyArray<Forged> = [
    ...withoutKey(key, claims),
    ...tampered(accessToken),
    ...misused(key, claims, [String(elsewhere), "env_00000000000000000000000000"]),
    ["a token of the other environment", foreign.accessToken],
    ["a refresh token", foreign.refreshToken],
    ["a publishable key", app.publishableKey],
    ["a secret key", app.secretKey]
  ]
  assert.isAtLeast(forged.length, least)
  return { app, accessToken, claims, forged, key }
})

layer(Exposed(), live)("access tokens (ASVS 9)", (it) => {
  it.effect(
    "over HTTP, every forged one is 401 unauthorized, and the true one still works",
    () =>
      Effect.gen(function* () {
        const { accessToken, app, forged } = yield* forgedTokens
        const me = (token: string) =>
          request(`${app.url}/v1/players/me`, {
            headers: { "x-svc-key": app.publishableKey, authorization: `Bearer ${token}` }
          })
        const answers = yield* Effect.forEach(forged, ([, token]) => me(token), { concurrency: 8 })
        for (const [index, answer] of answers.entries()) {
          const told = [answer.status, at(answer.body, "error", "code")]
          assert.deepStrictEqual(told, [401, "unauthorized"], forged[index]?.[0])
          assert.deepStrictEqual(answer.body, answers[0]?.body)
        }
        assert.strictEqual((yield* me(accessToken)).status, 200)
      }),
    60_000
  )

  it.effect(
    "at the socket, every forged one closes 4001, and the true one is welcome",
    () =>
      Effect.gen(function* () {
        const { accessToken, app, forged } = yield* forgedTokens
        yield* configure(app, { version: 1, features: { multiplayer: true } })
        const { publishableKey: key, socketUrl } = app
        const enter = Effect.fnUntraced(function* (token: string) {
          const socket = yield* connectSocket(socketUrl)
          yield* socket.say({ t: "auth", key, token })
          return socket
        })
        yield* Effect.forEach(
          forged,
          ([what, token]) =>
            Effect.scoped(
              Effect.gen(function* () {
                const { closed } = yield* enter(token)
                const { code, reason } = yield* closed
                assert.deepStrictEqual([code, reason], [4001, "unauthorized"], what)
              })
            ),
          { concurrency: 8 }
        )
        yield* (yield* enter(accessToken)).next("welcome")
      }),
    60_000
  )

  it.effect("one that has ended says so at both doors, and opens neither", () =>
    Effect.gen(function* () {
      const { app, claims, key } = yield* forgedTokens
      yield* configure(app, { version: 1, features: { multiplayer: true } })
      const exp = Number(claims["iat"]) - 1
      const ended = misissue(key, { ...claims, iat: exp - 900, exp })
      const answer = yield* request(`${app.url}/v1/players/me`, {
        headers: { "x-svc-key": app.publishableKey, authorization: `Bearer ${ended}` }
      })
      assert.deepStrictEqual(
        [answer.status, at(answer.body, "error", "code")],
        [401, "token_expired"]
      )
      const socket = yield* connectSocket(app.socketUrl)
      yield* socket.say({ t: "auth", key: app.publishableKey, token: ended })
      const { code, reason } = yield* socket.closed
      assert.deepStrictEqual([code, reason], [4002, "token_expired"])
    })
  )
})
