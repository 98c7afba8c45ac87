/**
 * What a credential opened ends with it on every runner, also when a runner was not listening for changes
 * meanwhile, and developers' sessions.
 *
 * @module-tag long
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Reactivity } from "effect/reactivity"
import { request } from "#testing/players"
import { closedByRevocation, makeKeys, openSockets } from "../support/security/revoked-sockets.ts"
import { live } from "../support/security/security-harness.ts"
import { TwoRunners } from "../support/two-runners.ts"

layer(Layer.merge(TwoRunners.layerWith({ SVC_SIGNUPS: "open" }), Reactivity.layer), live)(
  "revocation on two runners",
  (it) => {
    it.effect("closes the sockets of a key that was revoked while the runner did not listen", () =>
      Effect.gen(function* () {
        const { keys, newKey, sql, there } = yield* makeKeys("dev-2@example.com")
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
        const { headers, here, there } = yield* makeKeys("dev-3@example.com")
        const me = (url: string) =>
          Effect.map(request(`${url}/v1/developers/me`, { headers }), ({ status }) => status)
        assert.deepStrictEqual([yield* me(here), yield* me(there)], [200, 200])
        yield* request(`${here}/v1/developers/logout`, { method: "POST", headers })
        assert.deepStrictEqual([yield* me(here), yield* me(there)], [401, 401])
      })
    )
  }
)
