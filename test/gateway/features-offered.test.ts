/** Features that a deployment does not offer, in an environment whose stored config enables all of them. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { featureTable } from "#rpc/config-document/features"
import { TestApp } from "#testing/app"
import { at, guest, newPlayer, request } from "#testing/players"
import { connectSocket } from "#testing/socket-client"
import { SecurityAppLive } from "../support/security/security-harness.ts"

const document = {
  version: 1,
  features: Object.fromEntries(Object.keys(featureTable).map((name) => [name, true])),
  stats: [{ key: "score" }],
  integrity: { stats: { rules: [{ stat: "score", max: 10 }] } }
}

/** A new environment whose config dates from a deployment that offered every feature. */
const makeEnvironment = Effect.gen(function* () {
  const { url } = yield* TestApp
  const sql = yield* SqlClient.SqlClient
  const account = { email: "ada@example.com", password: "correct horse battery" }
  const signedUp = yield* request(`${url}/v1/developers/signup`, { body: account })
  const headers = { authorization: `Bearer ${String(at(signedUp.body, "token"))}` }
  const created = yield* request(`${url}/v1/projects`, { headers, body: { name: "Old" } })
  yield* sql`
    insert into configs (environment_id, version, document, pushed_by, created_at)
    select id, 1, ${JSON.stringify(document)}, 'test', now() from environments
    where project_id = ${String(at(created.body, "project", "id"))} and name = 'development'`
  return {
    url,
    publishableKey: String(at(created.body, "plainKeys", "development", "publishableKey")),
    secretKey: String(at(created.body, "plainKeys", "development", "secretKey"))
  }
})

layer(SecurityAppLive({ SVC_FEATURES: "realtimeChannels,stats" }), { excludeTestServices: true })(
  "features that the deployment does not offer",
  (it) => {
    it.effect(
      "refuses them at the socket, over HTTP and in rules, and leaves them out of the definitions",
      () =>
        Effect.gen(function* () {
          const target = yield* makeEnvironment
          const { publishableKey, secretKey, url } = target
          const { socket } = yield* newPlayer(target)
          const codeOf = (frame: { readonly t: string; readonly [field: string]: unknown }) =>
            Effect.map(socket.request(frame), (reply) => at(reply, "error", "code"))
          for (const t of ["create", "quickMatch"]) {
            assert.strictEqual(yield* codeOf({ t, mode: "default" }), "feature_unavailable")
          }
          const create = { t: "channelCreate", channel: "@talk", maxMembers: 4 }
          assert.strictEqual(yield* codeOf({ ...create, voice: true }), "feature_unavailable")
          assert.isUndefined(yield* codeOf(create))
          assert.strictEqual(
            yield* codeOf({ t: "voiceJoin", channel: "@talk" }),
            "feature_unavailable"
          )
          const put = yield* request(`${url}/v1/realtime/channels/lobby`, {
            method: "PUT",
            headers: { "x-svc-key": secretKey },
            body: { voice: true }
          })
          assert.strictEqual(at(put.body, "error", "code"), "feature_unavailable")

          const key = { "x-svc-key": publishableKey }
          const definitions = yield* request(`${url}/v1/gamedata/definitions`, { headers: key })
          assert.deepStrictEqual(
            Object.entries(Object(at(definitions.body, "features"))).flatMap(([name, on]) =>
              on === true ? [name] : []
            ),
            ["stats", "realtimeChannels"]
          )
          const { accessToken } = yield* guest(target)
          const reported = yield* request(`${url}/v1/stats`, {
            headers: { ...key, authorization: `Bearer ${accessToken}` },
            body: { stats: { score: 11 } }
          })
          assert.deepStrictEqual(at(reported.body, "rejected"), [])
          assert.strictEqual(at(reported.body, "stats", "score", "all"), 11)
        })
    )
  }
)

layer(SecurityAppLive({ SVC_FEATURES: "saves" }), { excludeTestServices: true })(
  "sockets of a deployment without realtime features",
  (it) => {
    it.effect("closes a socket with the code of the error", () =>
      Effect.gen(function* () {
        const target = yield* makeEnvironment
        const socket = yield* connectSocket(`${target.url.replace("http", "ws")}/v1/realtime`)
        const { accessToken } = yield* guest(target)
        yield* socket.send({ t: "auth", key: target.publishableKey, token: accessToken })
        const { code, reason } = yield* socket.closed
        assert.deepStrictEqual([code, reason], [4003, "feature_unavailable"])
      })
    )
  }
)
