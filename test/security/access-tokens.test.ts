/** Forged access tokens over HTTP and at the socket (ASVS 9.1, 9.2): all get the same refusal. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestApp } from "#testing/app"
import { at, configure, guest, request } from "#testing/players"
import { connectSocket } from "#testing/socket-client"
import {
  type Forged,
  misissue,
  misissuedTokens,
  partsOf,
  signingKey,
  tampered,
  forgedWithoutKey
} from "../support/security/forger.ts"
import { SecurityAppLive, live } from "../support/security/security-harness.ts"

/** Lower bound of the number of forgeries. */
const minForged = 120

const forgedTokens = Effect.gen(function* () {
  const app = yield* TestApp
  const key = yield* signingKey
  const { accessToken } = yield* guest(app)
  const { claims } = partsOf(accessToken)
  const foreign = yield* guest(app.production)
  const { aud: otherEnvironment } = partsOf(foreign.accessToken).claims
  const forged: ReadonlyArray<Forged> = [
    ...forgedWithoutKey(key, claims),
    ...tampered(accessToken),
    ...misissuedTokens(key, claims, [String(otherEnvironment), "env_00000000000000000000000000"]),
    ["a token of the other environment", foreign.accessToken],
    ["a refresh token", foreign.refreshToken],
    ["a publishable key", app.publishableKey],
    ["a secret key", app.secretKey]
  ]
  assert.isAtLeast(forged.length, minForged)
  return { app, accessToken, claims, forged, key }
})

layer(SecurityAppLive(), live)("access tokens (ASVS 9)", (it) => {
  it.effect(
    "HTTP refuses every forged token with 401 unauthorized and accepts the genuine one",
    () =>
      Effect.gen(function* () {
        const { accessToken, app, forged } = yield* forgedTokens
        const me = (token: string) =>
          request(`${app.url}/v1/players/me`, {
            headers: { "x-svc-key": app.publishableKey, authorization: `Bearer ${token}` }
          })
        const answers = yield* Effect.forEach(forged, ([, token]) => me(token), { concurrency: 8 })
        for (const [index, answer] of answers.entries()) {
          const outcome = [answer.status, at(answer.body, "error", "code")]
          assert.deepStrictEqual(outcome, [401, "unauthorized"], forged[index]?.[0])
          assert.deepStrictEqual(answer.body, answers[0]?.body)
        }
        assert.strictEqual((yield* me(accessToken)).status, 200)
      }),
    60_000
  )

  it.effect(
    "the socket closes with 4001 for every forged token and accepts the genuine one",
    () =>
      Effect.gen(function* () {
        const { accessToken, app, forged } = yield* forgedTokens
        yield* configure(app, { version: 1, features: { multiplayer: true } })
        const { publishableKey: key, socketUrl } = app
        const connect = Effect.fnUntraced(function* (token: string) {
          const socket = yield* connectSocket(socketUrl)
          yield* socket.send({ t: "auth", key, token })
          return socket
        })
        yield* Effect.forEach(
          forged,
          ([what, token]) =>
            Effect.scoped(
              Effect.gen(function* () {
                const { closed } = yield* connect(token)
                const { code, reason } = yield* closed
                assert.deepStrictEqual([code, reason], [4001, "unauthorized"], what)
              })
            ),
          { concurrency: 8 }
        )
        yield* (yield* connect(accessToken)).next("welcome")
      }),
    60_000
  )

  it.effect("HTTP and socket refuse an expired token with token_expired", () =>
    Effect.gen(function* () {
      const { app, claims, key } = yield* forgedTokens
      yield* configure(app, { version: 1, features: { multiplayer: true } })
      const exp = Number(claims["iat"]) - 1
      const expired = misissue(key, { ...claims, iat: exp - 900, exp })
      const answer = yield* request(`${app.url}/v1/players/me`, {
        headers: { "x-svc-key": app.publishableKey, authorization: `Bearer ${expired}` }
      })
      assert.deepStrictEqual(
        [answer.status, at(answer.body, "error", "code")],
        [401, "token_expired"]
      )
      const socket = yield* connectSocket(app.socketUrl)
      yield* socket.send({ t: "auth", key: app.publishableKey, token: expired })
      const { code, reason } = yield* socket.closed
      assert.deepStrictEqual([code, reason], [4002, "token_expired"])
    })
  )
})
