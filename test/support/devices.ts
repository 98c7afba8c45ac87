/** Requests of identity tests: linked identities and further devices of a player. */
import { PgClient } from "@effect/sql-pg"
import { assert } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { SecureRandom } from "effect/crypto"
import { Reactivity } from "effect/reactivity"
import { SqlClient } from "effect/sql"
import type { Method } from "#rpc/identities"
import { Passwords } from "#server/platform/passwords"
import { TestApp, TestDatabase } from "#testing/app"
import { at, request, type TestPlayer, type TestResponse, type TestTarget } from "#testing/players"
import { ask, play, refresh } from "./moderation-calls.ts"
import { DatabaseLive } from "./service.ts"

/** The service, and a connection to its database. */
export const appWithSql = (env: Readonly<Record<string, string>> = {}) =>
  Layer.mergeAll(
    TestApp.layerWith(env),
    Layer.unwrap(
      Effect.map(TestDatabase, ({ url }) =>
        Layer.effect(SqlClient.SqlClient, PgClient.make({ url: Redacted.make(url) }))
      )
    ).pipe(Layer.provide(Reactivity.layer))
  ).pipe(Layer.provide(DatabaseLive))

/** Config that allows transfer codes. */
export const inAppBrowser = { share: { inAppBrowser: { enabled: true } } }

/** All share tools that need no image. */
export const shareTools = {
  share: { ...inAppBrowser.share, links: { enabled: true }, tracking: { enabled: true } }
}

export const password = "correct horse"

const passwordHash = Effect.flatMap(Passwords, (passwords) => passwords.hash(password)).pipe(
  Effect.provide(Passwords.layer.pipe(Layer.provide(SecureRandom.layerWebCrypto))),
  Effect.orDie
)

/** Inserts an identity of a player, linked on `day`. */
export const link = Effect.fnUntraced(function* (
  { id }: Pick<TestPlayer, "id">,
  provider: Method,
  day = "2026-01-01"
) {
  const sql = yield* SqlClient.SqlClient
  const subject = provider === "email" ? `${id.toLowerCase()}@example.com` : `${provider}-${id}`
  const hash = provider === "email" ? yield* passwordHash : null
  yield* sql`
    insert into identities (environment_id, provider, subject, player_id, email, email_verified,
      username, password_hash, grant_sealed, linked_at)
    select environment_id, ${provider}, ${subject}, id,
      ${provider === "x" ? null : `${id.toLowerCase()}@example.com`}, ${provider === "google"},
      ${provider === "x" ? "ada" : null}, ${hash}, ${provider === "apple" ? "sealed-grant" : null},
      ${day}::timestamptz
    from players where id = ${id}`
  yield* sql`update players set is_guest = false where id = ${id}`
})

/** Creates a transfer code. Requires `share.inAppBrowser`. */
export const transferCode = Effect.fnUntraced(function* (target: TestTarget, player: TestPlayer) {
  const answer = yield* play(target, player, "POST", "auth/transfer")
  assert.strictEqual(answer.status, 201, JSON.stringify(answer.body))
  return String(at(answer.body, "code"))
})

export const redeem = (target: TestTarget, code: string): Effect.Effect<TestResponse> =>
  ask(target, "auth/transfer/redeem", { code })

const playerOf = ({ body }: TestResponse): TestPlayer => ({
  id: String(at(body, "player", "id")),
  accessToken: String(at(body, "accessToken")),
  refreshToken: String(at(body, "refreshToken"))
})

/** Signs the player in on another device. Requires `share.inAppBrowser`. */
export const anotherDevice = Effect.fnUntraced(function* (target: TestTarget, player: TestPlayer) {
  const answer = yield* redeem(target, yield* transferCode(target, player))
  assert.strictEqual(answer.status, 200, JSON.stringify(answer.body))
  return playerOf(answer)
})

export const unlink = (
  target: TestTarget,
  player: Pick<TestPlayer, "accessToken">,
  provider: string,
  refreshToken: string
) => play(target, player, "DELETE", `players/me/identities/${provider}`, { refreshToken })

/** Revokes the session of a player as theft does: presents a refresh token from before two rotations. */
export const stealSession = Effect.fnUntraced(function* (
  target: TestTarget,
  { refreshToken }: TestPlayer
) {
  const next = yield* refresh(target, refreshToken)
  yield* refresh(target, String(at(next.body, "refreshToken")))
  const reused = yield* refresh(target, refreshToken)
  assert.strictEqual(at(reused.body, "error", "code"), "session_revoked")
})

export const logout = ({ publishableKey, url }: TestTarget, { refreshToken }: TestPlayer) =>
  request(`${url}/v1/auth/logout`, {
    headers: { "x-svc-key": publishableKey },
    body: { refreshToken }
  })

/** The providers of the player's identities, as the API lists them. */
export const providersOf = Effect.fnUntraced(function* (target: TestTarget, player: TestPlayer) {
  const { body } = yield* play(target, player, "GET", "players/me/identities")
  const list = at(body, "identities")
  return Array.isArray(list) ? list.map((identity) => at(identity, "provider")) : []
})
