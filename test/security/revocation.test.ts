/**
 * What a credential opened ends with it, on every runner within a second: sockets of both endpoints with
 * their key, also when a runner was not listening for changes meanwhile, and developers' sessions.
 */
import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { Clock, Effect, Layer, Redacted } from "effect"
import { Reactivity } from "effect/reactivity"
import { at, authenticate, configure, guest, request, type TestTarget } from "#testing/players"
import { connectAnonymously } from "../support/channel-calls.ts"
import { connectNative } from "../support/native-socket.ts"
import { makeOwnProject } from "../support/own-project.ts"
import { live } from "../support/security/security-harness.ts"
import { TwoRunners } from "../support/two-runners.ts"

/** A new developer's project on two runners. */
const setUp = Effect.fnUntraced(function* (email: string) {
  const { at1, at2, databaseUrl } = yield* TwoRunners
  const { headers, newKey, target } = yield* makeOwnProject(at1.url, email)
  yield* configure(target, { features: { multiplayer: true, realtimeChannels: true } })
  const sql = yield* PgClient.make({ url: Redacted.make(databaseUrl) })
  return { here: at1.url, there: at2.url, headers, keys: target, newKey, sql }
})

/** A socket of each kind that a key opens, on one runner. */
const openSockets = Effect.fnUntraced(function* (url: string, publishable: string, secret: string) {
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
const closedByRevocation = Effect.fnUntraced(function* (
  sockets: ReadonlyArray<{ readonly closed: Effect.Effect<{ code: number; reason: string }> }>
) {
  const start = yield* Clock.currentTimeMillis
  for (const socket of sockets) {
    const { code, reason } = yield* socket.closed
    assert.deepStrictEqual([code, reason], [4001, "key_revoked"])
  }
  return (yield* Clock.currentTimeMillis) - start
})

layer(Layer.merge(TwoRunners.layerWith({ SVC_SIGNUPS: "open" }), Reactivity.layer), live)(
  "revocation on two runners",
  (it) => {
    it.effect(
      "closes the sockets of a revoked key over both endpoints on every runner, and no others",
      () =>
        Effect.gen(function* () {
          const { here, keys, newKey, there } = yield* setUp("dev-1@example.com")
          const millis: Array<number> = []
          const bystander = yield* openSockets(there, keys.publishableKey, keys.secretKey)
          for (const url of [here, there]) {
            const [publishable, secret] = yield* Effect.all([
              newKey("publishable"),
              newKey("secret")
            ])
            const opened = yield* openSockets(url, publishable.plain, secret.plain)
            yield* publishable.revoke
            millis.push(yield* closedByRevocation(opened.publishable))
            assert.strictEqual(yield* opened.server.call("ping"), "ok")
            yield* secret.revoke
            const exit = yield* opened.server.about("Exit", opened.events)
            assert.strictEqual(at(exit, "exit", "cause", 0, "error", "_tag"), "invalid_key")
            millis.push(yield* closedByRevocation([opened.server.socket]))
          }
          assert.isBelow(Math.max(...millis), 1000, millis.join(", "))
          assert.strictEqual(yield* bystander.server.call("ping"), "ok")
          for (const { ws } of bystander.publishable) assert.strictEqual(ws.readyState, ws.OPEN)
        })
    )

    it.effect("closes the sockets of a key that was revoked while the runner did not listen", () =>
      Effect.gen(function* () {
        const { keys, newKey, sql, there } = yield* setUp("dev-2@example.com")
        const [publishable, secret] = yield* Effect.all([newKey("publishable"), newKey("secret")])
        const opened = yield* openSockets(there, publishable.plain, secret.plain)
        const bystander = yield* openSockets(there, keys.publishableKey, keys.secretKey)
        // No message is ever sent: only the look-up after the reconnect finds the revocation.
        yield* sql`
          update keys set revoked_at = now() where id in (${publishable.id}, ${secret.id})`
        yield* sql`
          select pg_terminate_backend(pid) from pg_stat_activity
          where datname = current_database() and query ilike 'listen%'`
        yield* closedByRevocation([...opened.publishable, opened.server.socket])
        assert.strictEqual(yield* bystander.server.call("ping"), "ok")
      })
    )

    it.effect("ends a developer's session on every runner at its logout", () =>
      Effect.gen(function* () {
        const { headers, here, there } = yield* setUp("dev-3@example.com")
        const me = (url: string) =>
          Effect.map(request(`${url}/v1/developers/me`, { headers }), ({ status }) => status)
        assert.deepStrictEqual([yield* me(here), yield* me(there)], [200, 200])
        yield* request(`${here}/v1/developers/logout`, { method: "POST", headers })
        assert.deepStrictEqual([yield* me(here), yield* me(there)], [401, 401])
      })
    )
  }
)
