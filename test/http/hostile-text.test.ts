/** NUL characters in requests, which Postgres cannot store: a client error, never a server error. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestApp } from "#testing/app"
import { guest, request } from "#testing/players"
import { makeTenantFixtures } from "../support/operator-harness.ts"
import { DatabaseLive } from "../support/service.ts"

const App = TestApp.layerWith({ SVC_SIGNUPS: "open" }).pipe(Layer.provide(DatabaseLive))

layer(App, { timeout: "120 seconds", excludeTestServices: true })("a NUL character", (it) => {
  it.effect("answers a NUL character in a path, a query or a body without a server error", () =>
    Effect.gen(function* () {
      const { url } = yield* TestApp
      const { developer, development, player, projectId } = yield* makeTenantFixtures("nul")
      const banned = yield* guest(development)
      const { headers } = developer
      const project = `/v1/projects/${projectId}`
      const environment = `${project}/environments/development`
      const nul = "a\u0000b"
      const ban = `${environment}/players/${player.id}/ban`
      const requests = [
        ...["action", "actor", "target", "before"].map((it) => `${project}/audit?${it}=%00`),
        [`${environment}/appeals/a%00b/resolve`, { accept: false }],
        [ban, { reason: nul }],
        [ban, { publicNote: nul }],
        [`${environment}/players/verify-token`, { token: nul }],
        `${environment}/players?q=%00`,
        `${environment}/players/%00`,
        `${environment}/config/versions?cursor=%00`
      ] as const
      const faults: Array<string> = []
      for (const it of requests) {
        const [path, body] = typeof it === "string" ? [it] : it
        const options = body === undefined ? { headers } : { headers, body }
        const { status } = yield* request(`${url}${path}`, options)
        if (status >= 500) faults.push(`${path} ${status}`)
      }
      yield* request(`${url}${environment}/players/${banned.id}/ban`, { headers, body: {} })
      const pages = { "x-svc-key": development.publishableKey }
      const own = { ...pages, authorization: `Bearer ${player.accessToken}` }
      for (const [path, body] of [
        [`/v1/players/me/sanctions/a%00/appeal`, { message: nul }],
        [`/v1/auth/appeal`, { refreshToken: banned.refreshToken, message: nul }],
        [`/v1/auth/appeal`, { refreshToken: player.refreshToken, sanctionId: nul, message: nul }],
        [`/v1/auth/logout`, { refreshToken: nul }],
        [`/v1/stats`, { stats: { [nul]: 1 } }]
      ] as const) {
        const { status } = yield* request(`${url}${path}`, { headers: own, body })
        if (status >= 500) faults.push(`${path} ${status}`)
      }
      assert.deepStrictEqual(faults, [])
    })
  )
})
