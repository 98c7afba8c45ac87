/** Logs: JSON lines with the id of their request, and without secrets. */
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { HttpRouter } from "effect/http"
import { TestConsole } from "effect/testing"
import { redactSecrets } from "#server/telemetry/logs"
import { ObservabilityLive } from "#server/telemetry/telemetry"
import { TestApp, TestDatabase } from "#testing/app"
import { at, newPlayer, request } from "#testing/players"
import { addressOfNode, nodeWith, SharedDatabase } from "../support/http-stack.ts"
import { DatabaseLive } from "../support/service.ts"

const logEverything = { SVC_LOG_FORMAT: "json", SVC_LOG_LEVEL: "debug", SVC_LOG_REQUESTS: "all" }

const logText = Effect.map(TestConsole.logLines, (lines) => lines.map(String).join("\n"))

const logLines = Effect.map(TestConsole.logLines, (lines) =>
  lines.map((line): unknown => JSON.parse(String(line)))
)

const AppLive = TestApp.layerWith(logEverything).pipe(Layer.provideMerge(DatabaseLive))

/** Uses secrets of every kind in valid and invalid requests; returns them. */
const play = Effect.gen(function* () {
  const app = yield* TestApp
  const { url: databaseUrl } = yield* TestDatabase
  const { project, publishableKey, secretKey, url } = app
  const password = "correct horse battery staple"
  const used = new Set([publishableKey, secretKey, app.developer.password, password, databaseUrl])
  const call = (method: string, path: string, headers: Record<string, string>, body?: unknown) =>
    request(`${url}${path}`, { method, headers, ...(body === undefined ? {} : { body }) })
  const pk = { "x-svc-key": publishableKey }

  const ada = yield* newPlayer(app)
  used.add(ada.accessToken).add(ada.refreshToken)
  yield* ada.socket.request({ t: "auth", key: publishableKey, token: ada.accessToken })
  yield* ada.socket.request({ t: "auth", key: publishableKey, token: `${ada.accessToken}x` })
  for (const refreshToken of [ada.refreshToken, ada.refreshToken, `${ada.refreshToken}x`]) {
    const { body } = yield* call("POST", "/v1/auth/refresh", pk, { refreshToken })
    if (at(body, "refreshToken") !== undefined) {
      used.add(String(at(body, "refreshToken"))).add(String(at(body, "accessToken")))
    }
  }
  const asAda = { ...pk, authorization: `Bearer ${ada.accessToken}` }
  const save = { data: { note: "the diary of a player" } }
  used.add("the diary of a player")
  yield* call("PUT", `/v1/saves/slot?token=${ada.accessToken}`, asAda, save)
  yield* call("PUT", "/v1/saves/slot", { ...asAda, "x-svc-key": `${publishableKey}x` }, save)
  yield* call("POST", `/v1/${ada.accessToken}/${secretKey}`, asAda, "{ broken")

  for (const attempt of [app.developer.password, password]) {
    const login = { email: app.developer.email, password: attempt }
    const { body } = yield* call("POST", "/v1/developers/login", {}, login)
    const token = at(body, "token")
    if (typeof token !== "string") continue
    used.add(token)
    const asDeveloper = { authorization: `Bearer ${token}` }
    const env = `/v1/projects/${project}/environments/development`
    const made = yield* call("POST", `${env}/keys`, asDeveloper, { kind: "secret" })
    used.add(String(at(made.body, "key")))
    const rotated = yield* call("POST", `${env}/integrity/webhook-secret`, asDeveloper, {})
    used.add(String(at(rotated.body, "secret")))
    const sealed = { clientId: "client", clientSecret: "the secret of a provider" }
    used.add(sealed.clientSecret)
    yield* call("PUT", `${env}/auth/providers/google`, asDeveloper, sealed)
  }
  yield* call("POST", `/v1/admin/players/${ada.id}/ban`, { "x-svc-key": secretKey }, {})
  yield* ada.socket.closed
  return used
})

layer(AppLive)("the log of a session", (it) => {
  it.effect("logs no secret of a session", () =>
    Effect.gen(function* () {
      const used = yield* play
      const text = yield* logText
      assert.isAbove(used.size, 12)
      for (const secret of used) {
        assert.isAbove(secret.length, 8)
        assert.notInclude(text, secret)
      }
      assert.include(text, `"route":"/v1/saves/:key"`)
      for (const line of yield* logLines) {
        assert.match(String(at(line, "time")), /^\d{4}-.*Z$/)
        assert.include(["debug", "info", "warn", "error"], at(line, "level"))
        assert.isString(at(line, "message"))
      }
    })
  )
})

const secret = `sk_${"a".repeat(43)}`

const Faulty = HttpRouter.add(
  "GET",
  "/boom",
  Effect.andThen(
    Effect.logInfo("Under way", { deep: secret }),
    Effect.die(new Error(`no route to postgres://svc:hunter2@db/x with ${secret}`))
  )
)

const Node = (env: Readonly<Record<string, string>>) =>
  nodeWith(env, Faulty, ObservabilityLive).pipe(Layer.provideMerge(SharedDatabase.layer))

layer(Node(logEverything))("the log of a request", (it) => {
  it.effect("logs the request id on each line of a request", () =>
    Effect.gen(function* () {
      const url = yield* addressOfNode
      const headers = { "x-request-id": "id-of-this-request" }
      assert.strictEqual((yield* request(`${url}/boom?x=1`, { headers })).status, 500)
      yield* request(`${url}/healthz`, { headers })
      const lines = (yield* logLines).filter(
        (line) => at(line, "requestId") === "id-of-this-request"
      )
      assert.deepStrictEqual(
        lines.map((line) => [at(line, "level"), at(line, "message"), at(line, "status")]),
        [
          ["info", "Under way", undefined],
          ["error", "Failed to handle a request", undefined],
          ["warn", "Handled a request", 500],
          ["info", "Handled a request", 200]
        ]
      )
      assert.include(String(at(lines[1], "cause")), "no route to postgres://svc:<secret>@db/x with")
      const text = yield* logText
      assert.notInclude(text, secret)
      assert.notInclude(text, "hunter2")
    })
  )
})

layer(Node({ SVC_LOG_FORMAT: "json", SVC_LOG_LEVEL: "warning" }))(
  "the log at level warning",
  (it) => {
    it.effect("logs failed requests only at level warning", () =>
      Effect.gen(function* () {
        const url = yield* addressOfNode
        for (const path of ["/healthz", "/boom", "/nowhere"]) yield* request(`${url}${path}`)
        const lines = yield* logLines
        assert.deepStrictEqual(
          lines.map((line) => at(line, "message")),
          ["Failed to handle a request", "Handled a request"]
        )
      })
    )
  }
)

describe("redaction", () => {
  it("replaces secrets in logged text, and keeps the text around them", () => {
    const key = "x".repeat(43)
    const cases = [
      [`key sk_${key}, next`, "key <secret>, next"],
      [`{"refreshToken":"rt_${key}.${key}.${key}"}`, `{"refreshToken":"<secret>"}`],
      [`{"a":"kds_${key}"}`, `{"a":"<secret>"}`],
      ["Bearer abc.def, next", "Bearer <secret> next"],
      ["authorization: Basic dXNlcjpwYXNz\\n", "authorization: Basic <secret>\\n"],
      ["eyJhbGciOi.eyJzdWIi.c2ln end", "<secret> end"],
      ["postgres://u:p%40ss@host/db", "postgres://u:<secret>@host/db"],
      ["https://host:8080/a@b", "https://host:8080/a@b"],
      ["pk_ sk_short room_1 risk_assessment", "pk_ sk_short room_1 risk_assessment"]
    ] as const
    for (const [text, expected] of cases) assert.strictEqual(redactSecrets(text), expected)
  })
})
