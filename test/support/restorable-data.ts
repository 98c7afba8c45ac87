/** Data of a player and an environment, which a backup must bring back. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { configure, guest, request, type TestResponse, type TestTarget } from "#testing/players"

/** The body of a response that must be 200. */
export const ok = (answer: TestResponse): unknown => {
  assert.strictEqual(answer.status, 200, JSON.stringify(answer.body))
  return answer.body
}

const config = {
  version: 1,
  features: { saves: true, stats: true, multiplayer: true },
  stats: [{ key: "kills" }]
}

/** Data with what a text format must quote. */
const data = { level: 4, text: 'a"b\\c\n(),{} NULL \t\u{1F3AE} ü', none: null, list: ["", " "] }

/** A player with a save and a stat, and a stored secret of the environment. */
export const play = Effect.fnUntraced(function* (target: TestTarget) {
  yield* configure(target, config)
  const player = yield* guest(target, "Ada")
  const headers = {
    "x-svc-key": target.publishableKey,
    authorization: `Bearer ${player.accessToken}`
  }
  const ask = (method: string, path: string, body?: unknown) =>
    Effect.map(request(`${target.url}${path}`, { method, headers, body }), ok)
  yield* ask("PUT", "/v1/saves/slot", { data })
  yield* ask("POST", "/v1/stats", { stats: { kills: 7 } })
  return { player, headers }
})

/** Reads the player's data, the config and a secret that is encrypted in the database. */
export const readAll = Effect.fnUntraced(function* (
  target: TestTarget,
  headers: Readonly<Record<string, string>>
) {
  const read = (path: string, as: Readonly<Record<string, string>>) =>
    Effect.map(request(`${target.url}${path}`, { headers: as }), ok)
  const server = { "x-svc-key": target.secretKey }
  return {
    me: yield* read("/v1/players/me", headers),
    save: yield* read("/v1/saves/slot", headers),
    stats: yield* read("/v1/stats", headers),
    config: yield* read("/v1/config", server),
    secret: yield* read("/v1/admin/integrity/webhook-secret", server)
  }
})
