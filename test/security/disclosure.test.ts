/**
 * Information disclosure. Every caller calls every endpoint, with valid and invalid bodies and with missing
 * tables. No response, log line or row contains a stack trace, a statement, a hash or a secret.
 */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { TestConsole } from "effect/testing"
import { sha256 } from "#server/platform/secrets"
import { type Endpoint, endpoints } from "#server/http/authorization"
import { TestApp } from "#testing/app"
import { at, guest, request, type TestResponse, type TestTarget } from "#testing/players"
import { appWithSql } from "../support/devices.ts"
import { whileTimePasses } from "../support/passing-time.ts"
import {
  everything,
  makeAppeal,
  makeKey,
  makeProject,
  signUp
} from "../support/operator-harness.ts"

const App = appWithSql({
  SVC_SIGNUPS: "open",
  SVC_LOG_FORMAT: "json",
  SVC_LOG_LEVEL: "debug",
  SVC_LOG_REQUESTS: "all"
})

type Headers = Readonly<Record<string, string>>

const nameOf = ({ method, path }: Endpoint): string => `${method} ${path}`

/** Internals of the service that a response or the log may not contain. */
const internals: Readonly<Record<string, RegExp>> = {
  "a stack trace": /\n\s+at |\bat (?:async )?[\w.<>$]+ \(|file:\/\/|node_modules|\.[cm]?[jt]s:\d+/,
  "a statement": /\bselect\b.{1,80}\bfrom\b|\binsert into\b|\bupdate\b.{1,40}\bset\b|\bpg_\w+\(/i,
  "the database": /SqlError|PgError|relation \\?"|violates|duplicate key|syntax error at|SQLSTATE/i,
  "a fault": /FiberFailure|"_tag"|\bCause\b|Defect|ECONN|ENOENT/,
  "a hash": /\$argon2|\$2[aby]\$\d\d\$/,
  "an encrypted secret": /\b[\w-]{8}\.[\w-]{80}\.[\w-]{20,}/
}

/** Secrets that only their owner may receive. */
const secrets: Readonly<Record<string, RegExp>> = {
  "secret key": /\bsk_[\w-]{43}/,
  "developer session": /\bkds_[\w-]{43}/,
  "refresh token": /\brt_[0-9A-Z]{26}\.[\w-]{43}/,
  "access token": /\beyJ[\w-]+\.[\w-]+\.[\w-]+/,
  "webhook secret": /\bwhsec_[\w+/=-]{20,}/
}

const matching = (forms: Readonly<Record<string, RegExp>>, text: string): ReadonlyArray<string> =>
  Object.entries(forms).flatMap(([name, form]) => (form.test(text) ? [name] : []))

/** Endpoints that issue secrets to their caller. */
const issues: Readonly<Record<string, ReadonlyArray<string>>> = {
  "POST /v1/auth/guest": ["access token", "refresh token"],
  "POST /v1/auth/email/signup": ["access token", "refresh token"],
  "POST /v1/auth/email/login": ["access token", "refresh token"],
  "POST /v1/auth/refresh": ["access token", "refresh token"],
  "POST /v1/developers/signup": ["developer session"],
  "POST /v1/developers/login": ["developer session"],
  "POST /v1/projects": ["secret key"],
  "POST /v1/projects/:projectId/environments/:env/keys": ["secret key"],
  "GET /v1/admin/integrity/webhook-secret": ["webhook secret"],
  "POST /v1/admin/integrity/webhook-secret": ["webhook secret"],
  "GET /v1/projects/:projectId/environments/:env/integrity/webhook-secret": ["webhook secret"],
  "POST /v1/projects/:projectId/environments/:env/integrity/webhook-secret": ["webhook secret"]
}

const password = "correct horse battery"
const clientSecret = "GOCSPX-sesame-of-a-client"
const diary = "the diary of a player"

/** Valid fields of all endpoints in one body; an endpoint ignores those that it does not define. */
const fields = (
  own: { readonly refreshToken: string; readonly accessToken: string },
  id: string
) => ({
  accept: true,
  band: "teen",
  challenge: "c".repeat(43),
  clientId: "client-1",
  clientSecret,
  code: "ABCDEFGH",
  currentPassword: password,
  data: { diary },
  displayName: "Ada",
  email: `${id.toLowerCase()}@example.com`,
  idToken: "eyJhbGciOiJub25lIn0.e30.",
  kind: "secret",
  message: "Please.",
  name: "Ada",
  newPassword: password,
  nonce: "n",
  op: "mute",
  optIn: true,
  password,
  platform: "ios",
  playerId: id,
  reason: "test",
  redirectUrl: "http://localhost:3000/",
  refreshToken: own.refreshToken,
  stats: { score: 1 },
  status: "declared",
  token: own.accessToken,
  type: "x",
  verifier: "v".repeat(43)
})

type Fields = ReturnType<typeof fields>

const withEvery = (body: Fields, value: unknown) =>
  Object.fromEntries(Object.keys(body).map((key) => [key, value]))

const bodiesOf = (body: Fields, minimal: object): ReadonlyArray<unknown> => [
  body,
  minimal,
  "{ broken",
  withEvery(body, { a: [1] }),
  withEvery(body, "'; select * from players; -- \u0000")
]

/** Endpoints that the test skips, because they would delete the project or session of the other calls. */
const destructive = ["DELETE /v1/projects/:projectId", "POST /v1/developers/logout"]

interface Exchange {
  readonly endpoint: string
  readonly answer: TestResponse
  readonly text: string
}

const textOf = ({ body, headers }: TestResponse): string =>
  `${JSON.stringify(Array.from(headers))} ${typeof body === "string" ? body : JSON.stringify(body)}`

/** Calls every endpoint as each permitted caller and without credentials; returns every response. */
const callEveryEndpoint = Effect.gen(function* () {
  const { url } = yield* TestApp
  const developer = yield* signUp("caller")
  const { development, projectId } = yield* makeProject(developer)
  const { appealId, sanctionId } = yield* makeAppeal(development)
  const exchanges: Array<Exchange> = []
  const ask = Effect.fnUntraced(function* (endpoint: Endpoint, headers: Headers, body: unknown) {
    const about = (name: string) => endpoint.path.includes(`:${name}`)
    const { id: playerId } = about("playerId") ? yield* guest(development) : { id: "" }
    const { keyId } = about("keyId")
      ? yield* makeKey(developer, projectId, "secret")
      : { keyId: "" }
    const samples: Readonly<Record<string, string>> = {
      projectId,
      env: "development",
      appealId,
      sanctionId,
      keyId,
      playerId,
      name: "lobby",
      key: "slot",
      provider: "google",
      version: "1"
    }
    const path = endpoint.path.replace(
      /:([A-Za-z0-9]+)/g,
      (_, name: string) => samples[name] ?? "x"
    )
    const answer = yield* request(`${url}${path}`, {
      method: endpoint.method,
      headers,
      ...(endpoint.method === "GET" ? {} : { body })
    })
    exchanges.push({ endpoint: nameOf(endpoint), answer, text: textOf(answer) })
  })
  const publishable = { "x-svc-key": development.publishableKey }
  const callAsEveryone = Effect.fnUntraced(function* (endpoint: Endpoint) {
    const player = yield* guest(development)
    const token = { authorization: `Bearer ${player.accessToken}` }
    const own: Partial<Record<Endpoint["access"], Headers>> = {
      secret: { "x-svc-key": development.secretKey },
      member: developer.headers,
      developer: developer.headers,
      publishable
    }
    // An empty config is valid and would disable every feature.
    const minimal = endpoint.path.endsWith("/config") ? everything : {}
    const bodies = endpoint.method === "GET" ? [{}] : bodiesOf(fields(player, player.id), minimal)
    for (const body of bodies) {
      yield* ask(endpoint, own[endpoint.access] ?? { ...publishable, ...token }, body)
    }
    for (const headers of [{}, publishable, { ...publishable, ...token }]) {
      yield* ask(endpoint, headers, {})
    }
  })
  const repeatable = endpoints.filter((endpoint) => !destructive.includes(nameOf(endpoint)))
  const calls = Effect.forEach(repeatable, callAsEveryone, { concurrency: 8, discard: true })
  // A change of a channel that another call deletes is repeated after 50 ms.
  yield* whileTimePasses(calls, "50 millis")
  return { exchanges, development, developer }
})

const tables = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ name: string }>`
    select table_name as name from information_schema.tables
    where table_schema = 'public' and table_type = 'BASE TABLE'`
  return rows.map(({ name }) => name)
})

const logged = Effect.map(TestConsole.logLines, (lines) => lines.map(String).join("\n"))

/** Sends requests whose table is missing: each gets a 500 response that reveals nothing about the fault. */
const callWithoutTables = Effect.fnUntraced(function* (target: TestTarget, developer: Headers) {
  const sql = yield* SqlClient.SqlClient
  const player = yield* guest(target)
  const publishable = { "x-svc-key": target.publishableKey }
  const asPlayer = { ...publishable, authorization: `Bearer ${player.accessToken}` }
  const secret = { "x-svc-key": target.secretKey }
  const cases: ReadonlyArray<readonly [table: string, path: string, Headers, body?: unknown]> = [
    ["players", "auth/guest", publishable, {}],
    ["sessions", "auth/refresh", publishable, { refreshToken: player.refreshToken }],
    ["saves", "saves", asPlayer],
    ["stats", "stats", asPlayer, { stats: { score: 1 } }],
    ["identities", "players/me/identities", asPlayer],
    ["sanctions", `admin/players/${player.id}/ban`, secret, {}],
    ["audit", `admin/players/${player.id}/ban`, secret, {}],
    ["provider_credentials", "admin/auth/providers/google", secret],
    ["project_members", "projects", developer]
  ]
  for (const [table, path, headers, body] of cases) {
    yield* sql`alter table ${sql(table)} rename to hidden_table`
    const answer = yield* request(`${target.url}/v1/${path}`, {
      headers,
      ...(body === undefined ? {} : { body })
    })
    yield* sql`alter table hidden_table rename to ${sql(table)}`
    const id = answer.headers.get("x-request-id")
    assert.strictEqual(answer.status, 500, path)
    assert.deepStrictEqual(
      answer.body,
      {
        error: {
          code: "internal_error",
          message: at(answer.body, "error", "message"),
          details: { requestId: id }
        }
      },
      path
    )
    assert.deepStrictEqual(matching({ ...internals, ...secrets }, textOf(answer)), [], path)
  }
  assert.deepStrictEqual(matching(secrets, yield* logged), [])
})

layer(App, { timeout: "120 seconds" })("the service", (it) => {
  it.effect(
    "reveals no internals and no secret in any response, log line or row",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { developer, development, exchanges } = yield* callEveryEndpoint
        const leaks = exchanges.flatMap(({ answer, endpoint, text }) => {
          const fault = answer.status >= 500 ? [`status ${answer.status}`] : []
          const exposed = [...fault, ...matching(internals, text)]
          const issued = matching(secrets, text).filter((name) => !issues[endpoint]?.includes(name))
          return exposed.length + issued.length === 0
            ? []
            : [`${endpoint}: ${[...exposed, ...issued].join()} in ${text.slice(0, 300)}`]
        })
        assert.isAbove(exchanges.length, endpoints.length * 4)
        assert.deepStrictEqual(Array.from(new Set(leaks)), [])

        const answers = exchanges.map(({ text }) => text).join("\n")
        const received = [
          development.secretKey,
          ...Object.values(secrets).flatMap(({ source }) =>
            Array.from(answers.matchAll(new RegExp(source, "g")), ([secret]) => secret)
          )
        ]
        const log = yield* logged
        assert.isAbove(received.length, 20)
        assert.deepStrictEqual(matching({ ...internals, ...secrets }, log), [])
        for (const secret of received) assert.notInclude(answers, sha256(secret))
        for (const word of [...received.map(sha256), password, clientSecret, diary]) {
          assert.notInclude(log, word)
        }
        for (const name of yield* tables) {
          const rows = yield* sql`select string_agg(t::text, ' ') as text from ${sql(name)} t`
          const text = JSON.stringify(rows)
          assert.deepStrictEqual(matching(secrets, text), [], name)
          for (const word of [...received, password, clientSecret])
            assert.notInclude(text, word, name)
        }
        yield* callWithoutTables(development, developer.headers)
      }),
    120_000
  )
})
