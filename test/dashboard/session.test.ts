/** The dashboard's session: a cookie that works for the dashboard's own pages and for nothing else. */
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer, Option } from "effect"
import { dashboardHeader } from "#rpc/dashboard"
import { SignInLinks } from "#server/features/developers/sign-in-links"
import { DashboardPort } from "#server/http/dashboard/listener"
import { at, request, type TestResponse } from "#testing/players"
import { freePort } from "#testing/runners"
import { codeOf } from "../support/developer-requests.ts"
import { addressOfNode, buildAnother, nodeWith, SharedDatabase } from "../support/http-stack.ts"

const account = { email: "ada@example.com", password: "a password of ada", name: "Ada" }

/** The bundle of the dashboard, made once for all runs of these tests. */
const data = { SVC_DATA_DIR: join(tmpdir(), "svc-dashboard-test") }

const own = { [dashboardHeader]: "1" }

const send = Effect.fnUntraced(function* (
  method: string,
  path: string,
  headers: Readonly<Record<string, string>>,
  body?: unknown
) {
  const url = `${yield* addressOfNode}${path}`
  return yield* request(url, { method, headers, ...(body === undefined ? {} : { body }) })
})

/** The cookie that a response sets, as a browser sends it back. */
const cookieOf = ({ headers }: TestResponse): string =>
  headers.get("set-cookie")?.split(";")[0] ?? ""

const signedUp = Effect.gen(function* () {
  const answer = yield* send("POST", "/dashboard/session/signup", own, account)
  if (answer.status === 200) return answer
  return yield* send("POST", "/dashboard/session", own, account)
})

const Node = nodeWith(data).pipe(Layer.provideMerge(SharedDatabase.layer))

layer(Node)("the session of the dashboard", (it) => {
  it.effect(
    "keeps the dashboard's session in a cookie that scripts cannot read, with no token in the body",
    () =>
      Effect.gen(function* () {
        const answer = yield* signedUp
        const cookie = answer.headers.get("set-cookie") ?? ""
        assert.match(cookie, /^__Host-svc=kds_[\w-]{43};/)
        for (const attribute of ["HttpOnly", "Secure", "SameSite=Strict", "Path=/"]) {
          assert.include(cookie, attribute)
        }
        assert.strictEqual(at(answer.body, "developer", "email"), account.email)
        assert.notInclude(JSON.stringify(answer.body), "kds_")
      })
  )

  it.effect("accepts the dashboard's session in requests of its own pages only", () =>
    Effect.gen(function* () {
      const cookie = cookieOf(yield* signedUp)
      const statusWith = (headers: Readonly<Record<string, string>>) =>
        Effect.map(send("GET", "/v1/developers/me", { cookie, ...headers }), ({ status }) => status)
      const { host } = new URL(yield* addressOfNode)
      assert.strictEqual(yield* statusWith(own), 200)
      assert.strictEqual(yield* statusWith({ ...own, origin: `http://${host}` }), 200)
      assert.strictEqual(yield* statusWith({}), 401)
      assert.strictEqual(yield* statusWith({ ...own, origin: "https://evil.example" }), 401)
      assert.strictEqual(yield* statusWith({ ...own, origin: "null" }), 401)
      for (const site of ["cross-site", "same-site", "none"]) {
        assert.strictEqual(yield* statusWith({ ...own, "sec-fetch-site": site }), 401, site)
      }
      assert.strictEqual(yield* statusWith({ ...own, authorization: "Bearer kds_other" }), 401)
    })
  )

  it.effect(
    "refuses a dashboard sign-in without its header, and does not allow the header across origins",
    () =>
      Effect.gen(function* () {
        const withoutHeader = yield* send("POST", "/dashboard/session", {}, account)
        assert.deepStrictEqual(
          [withoutHeader.status, codeOf(withoutHeader)],
          [403, "origin_not_allowed"]
        )
        assert.isNull(withoutHeader.headers.get("set-cookie"))
        const preflight = yield* send("OPTIONS", "/v1/developers/me", {
          origin: "https://evil.example",
          "access-control-request-method": "GET",
          "access-control-request-headers": dashboardHeader
        })
        const allowed = preflight.headers.get("access-control-allow-headers") ?? ""
        assert.notInclude(allowed.toLowerCase(), dashboardHeader)
        assert.isNull(preflight.headers.get("access-control-allow-credentials"))
      })
  )

  it.effect("ends the dashboard's session for good with the sign-out", () =>
    Effect.gen(function* () {
      const cookie = cookieOf(yield* signedUp)
      const gone = yield* send("DELETE", "/dashboard/session", { ...own, cookie })
      assert.match(gone.headers.get("set-cookie") ?? "", /^__Host-svc=; Max-Age=0/)
      const after = yield* send("GET", "/v1/developers/me", { ...own, cookie })
      assert.strictEqual(after.status, 401)
      const again = yield* send("DELETE", "/dashboard/session", { ...own, cookie })
      assert.strictEqual(again.status, 200)
    })
  )

  it.effect("refuses a malformed sign-in in the usual format", () =>
    Effect.gen(function* () {
      const answer = yield* send("POST", "/dashboard/session", own, { email: 1 })
      assert.deepStrictEqual([answer.status, codeOf(answer)], [400, "invalid_request"])
      const wrong = yield* send("PATCH", "/dashboard/session", own)
      assert.strictEqual(wrong.status, 405)
      assert.include(wrong.headers.get("allow"), "DELETE")
    })
  )

  it.effect("serves a dashboard page that allows nothing inline and nothing of other origins", () =>
    Effect.gen(function* () {
      for (const path of ["/dashboard", "/dashboard/some/development/players"]) {
        const { body, headers, status } = yield* send("GET", path, {})
        assert.strictEqual(status, 200)
        const policy = headers.get("content-security-policy") ?? ""
        assert.include(policy, "default-src 'self'")
        assert.include(policy, "frame-ancestors 'none'")
        assert.notInclude(policy, "unsafe")
        assert.notMatch(String(body), /<script>|<style>|style=|https?:\/\//)
      }
      const missing = yield* send("GET", "/dashboard/files/other.js", {})
      assert.strictEqual(missing.status, 404)
    })
  )
})

const local = { SVC_BASE_URL: "http://localhost:8080" }

const Demo = nodeWith(local).pipe(Layer.provideMerge(SharedDatabase.layer))

layer(Demo)("a one-time link", (it) => {
  it.effect("signs the demo's developer in once, and again only for a repeat by its key", () =>
    Effect.gen(function* () {
      const links = yield* SignInLinks
      const before = yield* links.create
      assert.isTrue(Option.isNone(before), "without a demo developer there is no link")
      yield* send("POST", "/dashboard/session/signup", own, { ...account, email: "demo@localhost" })
      // A link of another runner.
      const there = Context.get(yield* buildAnother(nodeWith(local)), SignInLinks)
      const code = Option.getOrElse(yield* there.create, () => "")
      const keyed = { ...own, "idempotency-key": "a-key-of-128-random-bits" }
      const first = yield* send("POST", "/dashboard/session/link", keyed, { code })
      assert.strictEqual(at(first.body, "developer", "email"), "demo@localhost")
      const cookie = first.headers.get("set-cookie") ?? ""
      assert.match(cookie, /^svc-\d+=kds_/)
      assert.notInclude(cookie, "Secure")
      const repeat = yield* send("POST", "/dashboard/session/link", keyed, { code })
      assert.strictEqual(repeat.headers.get("set-cookie"), cookie, "the same session again")
      const second = yield* send("POST", "/dashboard/session/link", own, { code })
      assert.deepStrictEqual([second.status, codeOf(second)], [401, "invalid_credentials"])
    })
  )
})

const Off = nodeWith({ SVC_DASHBOARD: "off" }).pipe(Layer.provideMerge(SharedDatabase.layer))

layer(Off)("without a dashboard", (it) => {
  it.effect("serves neither page nor session without a dashboard", () =>
    Effect.gen(function* () {
      const page = yield* send("GET", "/dashboard", {})
      assert.strictEqual(page.status, 404)
      const session = yield* send("POST", "/dashboard/session", own, account)
      assert.strictEqual(session.status, 404)
    })
  )
})

class OwnPort extends Context.Service<OwnPort, number>()("test/dashboard/session/OwnPort") {}

const Apart = Layer.unwrap(
  Effect.map(OwnPort, (port) =>
    DashboardPort.pipe(Layer.provideMerge(nodeWith({ ...data, SVC_DASHBOARD: `${port}` })))
  )
).pipe(
  Layer.provideMerge(Layer.effect(OwnPort, freePort)),
  Layer.provideMerge(SharedDatabase.layer)
)

layer(Apart)("a dashboard on a port of its own", (it) => {
  it.effect(
    "serves a dashboard with its own port on that port only, and accepts its session only there",
    () =>
      Effect.gen(function* () {
        const there = `http://127.0.0.1:${yield* OwnPort}`
        const page = yield* send("GET", "/dashboard", {})
        assert.strictEqual(page.status, 404)
        assert.strictEqual((yield* request(`${there}/dashboard`)).status, 200)
        const signup = { headers: own, body: account }
        const signedIn = yield* request(`${there}/dashboard/session/signup`, signup)
        const headers = { ...own, cookie: cookieOf(signedIn) }
        assert.strictEqual((yield* request(`${there}/v1/developers/me`, { headers })).status, 200)
        assert.strictEqual((yield* send("GET", "/v1/developers/me", headers)).status, 401)
      })
  )
})
