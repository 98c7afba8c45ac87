/** Requests of the moderation tests: those of the operator and of players. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { type TestPlayer, type TestTarget } from "#testing/players"

import { requestTyped, type ResponseTo } from "./response-types.ts"

export { codeOf } from "./bodies.ts"

/** Sends a request with the secret key. */
export const operate = <const M extends "GET" | "POST" | "PUT", const P extends string>(
  { secretKey, url }: TestTarget,
  method: M,
  path: P,
  body?: unknown
): Effect.Effect<ResponseTo<M, `/v1/admin/${P}`>> =>
  requestTyped(url, method, `/v1/admin/${path}`, { headers: { "x-svc-key": secretKey }, body })

/** Bans a player and returns it from the response. */
export const ban = Effect.fnUntraced(function* (
  target: TestTarget,
  playerId: string,
  terms: object = {}
) {
  const answer = yield* operate(target, "POST", `players/${playerId}/ban`, terms)
  assert.strictEqual(answer.status, 200, JSON.stringify(answer.body))
  return answer.body.player
})

export const unban = Effect.fnUntraced(function* (target: TestTarget, playerId: string) {
  const answer = yield* operate(target, "POST", `players/${playerId}/unban`, {})
  assert.strictEqual(answer.status, 200, JSON.stringify(answer.body))
  return answer.body.player
})

/** Sends a request with the publishable key and the player's token. */
export const play = <
  const M extends "GET" | "POST" | "PUT" | "PATCH" | "DELETE",
  const P extends string
>(
  { publishableKey, url }: TestTarget,
  { accessToken }: Pick<TestPlayer, "accessToken">,
  method: M,
  path: P,
  body?: unknown,
  idempotencyKey?: string
): Effect.Effect<ResponseTo<M, `/v1/${P}`>> =>
  requestTyped(url, method, `/v1/${path}`, {
    headers: {
      "x-svc-key": publishableKey,
      authorization: `Bearer ${accessToken}`,
      ...(idempotencyKey === undefined ? {} : { "idempotency-key": idempotencyKey })
    },
    body
  })

/** Sends a request with the publishable key only. */
export const ask = <const P extends string>(
  { publishableKey, url }: TestTarget,
  path: P,
  body: object
) => requestTyped(url, "POST", `/v1/${path}`, { headers: { "x-svc-key": publishableKey }, body })

export const refresh = (target: TestTarget, refreshToken: string) =>
  ask(target, "auth/refresh", { refreshToken })

/** Returns the id of the player's last ban. */
export const lastSanction = Effect.fnUntraced(function* (target: TestTarget, player: TestPlayer) {
  const answer = yield* play(target, player, "GET", "players/me/sanctions")
  return String(answer.body.sanctions[0]?.id)
})
