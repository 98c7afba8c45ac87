/** Sockets that a key has opened on two runners, and their end at its revocation. */
import { PgClient } from "@effect/sql-pg"
import { assert } from "@effect/vitest"
import { Clock, Effect, Redacted } from "effect"
import { authenticate, configure, guest, type TestTarget } from "#testing/players"
import { connectAnonymously } from "../channel-calls.ts"
import { connectNative } from "../native-socket.ts"
import { makeOwnProject } from "../own-project.ts"
import { TwoRunners } from "../two-runners.ts"

/** A new developer's project on two runners. */
export const makeKeys = Effect.fnUntraced(function* (email: string) {
  const { at1, at2, databaseUrl } = yield* TwoRunners
  const { headers, newKey, target } = yield* makeOwnProject(at1.url, email)
  yield* configure(target, { features: { multiplayer: true, realtimeChannels: true } })
  const sql = yield* PgClient.make({ url: Redacted.make(databaseUrl) })
  return { here: at1.url, there: at2.url, headers, keys: target, newKey, sql }
})

/** A socket of each kind that a key opens, on one runner. */
export const openSockets = Effect.fnUntraced(function* (
  url: string,
  publishable: string,
  secret: string
) {
  const target: TestTarget = { url, publishableKey: publishable, secretKey: secret }
  const [json, native, acted] = yield* Effect.all([guest(target), guest(target), guest(target)])
  const { socket } = yield* authenticate(target, json)
  yield* socket.next("welcome")
  const anonymous = yield* connectAnonymously(target)
  const player = yield* connectNative(url)
  yield* player.open({ "x-svc-key": publishable, authorization: `Bearer ${native.accessToken}` })
  const server = yield* connectNative(url)
  const events = yield* server.open({ "x-svc-key": secret, "x-svc-player": acted.id })
  return { publishable: [socket, anonymous, player.socket], server, events }
})

/** Waits until all have closed with 4001 `key_revoked`; returns how long that took. */
export const closedByRevocation = Effect.fnUntraced(function* (
  sockets: ReadonlyArray<{ readonly closed: Effect.Effect<{ code: number; reason: string }> }>
) {
  const start = yield* Clock.currentTimeMillis
  for (const socket of sockets) {
    const { code, reason } = yield* socket.closed
    assert.deepStrictEqual([code, reason], [4001, "key_revoked"])
  }
  return (yield* Clock.currentTimeMillis) - start
})
