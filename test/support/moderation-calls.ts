/** Requests of the moderation tests: those of the operator and of players. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { at, request, type TestPlayer, type TestResponse, type TestTarget } from "#testing/players"

export { codeOf } from "./bodies.ts"

/** Sends a request with the secret key. */
export const operate = (
  { secretKey, url }: TestTarget,
  method: "GET" | "POST" | "PUT",
  path: string,
  body?: unknown
): Effect.Effect<TestResponse> =>
  request(`${url}/v1/admin/${path}`, {
    method,
    headers: { "x-svc-key": secretKey },
    ...(body === undefined ? {} : { body })
  })

/** Bans a player and returns it from the response. */
export const ban = Effect.fnUntraced(function* (
  target: TestTarget,
  playerId: string,
  terms: object = {}
) {
  const answer = yield* operate(target, "POST", `players/${playerId}/ban`, terms)
  assert.strictEqual(answer.status, 200, JSON.stringify(answer.body))
  return at(answer.body, "player")
})

export const unban = Effect.fnUntraced(function* (target: TestTarget, playerId: string) {
  const answer = yield* operate(target, "POST", `players/${playerId}/unban`, {})
  assert.strictEqual(answer.status, 200, JSON.stringify(answer.body))
  return at(answer.body, "player")
})

/** Sends a request with the publishable key and the player's token. */
export const play = (
  { publishableKey, url }: TestTarget,
  { accessToken }: Pick<TestPlayer, "accessToken">,
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE",
  path: string,
  body?: unknown,
  idempotencyKey?: string
): Effect.Effect<TestResponse> =>
  request(`${url}/v1/${path}`, {
    method,
    headers: {
      "x-svc-key": publishableKey,
      authorization: `Bearer ${accessToken}`,
      ...(idempotencyKey === undefined ? {} : { "idempotency-key": idempotencyKey })
    },
    ...(body === undefined ? {} : { body })
  })

/** Sends a request with the publishable key only. */
export const ask = ({ publishableKey, url }: TestTarget, path: string, body: object) =>
  request(`${url}/v1/${path}`, { headers: { "x-svc-key": publishableKey }, body })

export const refresh = (target: TestTarget, refreshToken: string) =>
  ask(target, "auth/refresh", { refreshToken })

/** Returns the id of the player's last ban. */
export const lastSanction = Effect.fnUntraced(function* (target: TestTarget, player: TestPlayer) {
  const answer = yield* play(target, player, "GET", "players/me/sanctions")
  return String(at(answer.body, "sanctions", 0, "id"))
})
