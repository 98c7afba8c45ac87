/**
 * Threats in what the service says: a walk over every endpoint by everybody, with bodies that fit and
 * that do not, on a database that works and on one that lacks tables. No answer, no line of the log and
 * no row tells a stack, a statement, a hash or a secret.
 */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { TestConsole } from "effect/testing"
import { sha256 } from "#server/platform/secrets"
import { type Endpoint, endpoints } from "#server/http/authorization"
import { TestApp } from "#testing/app"
import { type Answer, at, guest, request, type TestTarget } from "#testing/players"
import { appWithSql } from "../support/devices.ts"
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

/** What the inside of a service looks like when it leaks. */
const inside: Readonly<Record<string, RegExp>> = {
  "a stack": /\n\s+at |\bat (?:async )?[\w.<>$]+ \(|file:\/\/|node_modules|\.[cm]?[jt]s:\d+/,
  "a statement": /\bselect\b.{1,80}\bfrom\b|\binsert into\b|\bupdate\b.{1,40}\bset\b|\bpg_\w+\(/i,
  "the database": /SqlError|PgError|relation \\?"|violates|duplicate key|syntax error at|SQLSTATE/i,
  "a fault": /FiberFailure|"_tag"|\bCause\b|Defect|ECONN|ENOENT/,
  "a hash": /\$argon2|\$2[aby]\$\d\d\$/,
  "a sealed text": /\b[\w-]{8}\.[\w-]{80}\.[\w-]{20,}/
}

/** What only its owner may have. */
const secrets: Readonly<Record<string, RegExp>> = {
  "secret key": /\bsk_[\w-]{43}/,
  "developer session": /\bkds_[\w-]{43}/,
  "refresh token": /\brt_[0-9A-Z]{26}\.[\w-]{43}/,
  "access token": /\beyJ[\w-]+\.[\w-]+\.[\w-]+/,
  "webhook secret": /\bwhsec_[\w+/=-]{20,}/
}

const found = (forms: Readonly<Record<string, RegExp>>, text: string): ReadonlyArray<string> =>
  Object.entries(forms).flatMap(([name, form]) => (form.test(text) ? [name] : []))

/** Endpoints that hand out what is its caller's own. */
const handsOut: Readonly<Record<string, ReadonlyArray<string>>> = {
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

/** Fields of all endpoints: what an endpoint does not know it ignores. */
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
  displayName: "Walk",
  email: `${id.toLowerCase()}@example.com`,
  idToken: "eyJhbGciOiJub25lIn0.e30.",
  kind: "secret",
  message: "Please.",
  name: "Walk",
  newPassword: password,
  nonce: "n",
  op: "mute",
  optIn: true,
  password,
  platform: "ios",
  playerId: id,
  reason: "walk",
  redirectUrl: "http://localhost:3000/",
  refreshToken: own.refreshToken,
  stats: { score: 1 },
  status: "declared",
  token: own.accessToken,
  type: "x",
  verifier: "v".repeat(43)
})

type Fields = ReturnType<typeof fields>

const each = (body: Fields, value: unknown) =>
  Object.fromEntries(Object.keys(body).map((key) => [key, value]))

const bodiesOf = (body: Fields, least: object): ReadonlyArray<unknown> => [
  body,
  least,
  "{ broken",
  each(body, { a: [1] }),
  each(body, "'; select * from players; -- \u0000")
]

/** These end what the others stand on, and say nothing but that. */
const endings = ["DELETE /v1/projects/:projectId", "POST /v1/developers/logout"]

interface Heard {
  readonly endpoint: string
  readonly answer: Answer
  readonly text: string
}

const textOf = ({ body, headers }: Answer): string =>
  `${JSON.stringify(Array.from(headers))} ${typeof body === "string" ? body : JSON.stringify(body)}`

/** Asks every endpoint as everybody who may, and as nobody; hands on all that was answered. */
const walk = Effect.gen(function* () {
  const { url } = yield* TestApp
  const developer = yield* signUp("walker")
  const { development, projectId } = yield* makeProject(developer)
  const { appealId, sanctionId } = yield* makeAppeal(development)
  const heard: Array<Heard> = []
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
    const path = endpoint.path.replace(/:([A-Za-z]+)/g, (_, name: string) => samples[name] ?? "x")
    const answer = yield* request(`${url}${path}`, {
      method: endpoint.method,
      headers,
      ...(endpoint.method === "GET" ? {} : { body })
    })
    heard.push({ endpoint: nameOf(endpoint), answer, text: textOf(answer) })
  })
  const publishable = { "x-svc-key": development.publishableKey }
  const visit = Effect.fnUntraced(function* (endpoint: Endpoint) {
    const player = yield* guest(development)
    const token = { authorization: `Bearer ${player.accessToken}` }
    const own: Partial<Record<Endpoint["access"], Headers>> = {
      secret: { "x-svc-key": development.secretKey },
      member: developer.headers,
      developer: developer.headers,
      publishable
    }
    // An empty config is one, too: it would turn everything off.
    const least = endpoint.path.endsWith("/config") ? everything : {}
    const bodies = endpoint.method === "GET" ? [{}] : bodiesOf(fields(player, player.id), least)
    for (const body of bodies) {
      yield* ask(endpoint, own[endpoint.access] ?? { ...publishable, ...token }, body)
    }
    for (const headers of [{}, publishable, { ...publishable, ...token }]) {
      yield* ask(endpoint, headers, {})
    }
  })
  const lasting = endpoints.filter((endpoint) => !endings.includes(nameOf(endpoint)))
  yield* Effect.forEach(lasting, visit, { concurrency: 8, discard: true })
  return { heard, development, developer }
})

/** The names of all tables. */
const tables = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ name: string }>`
    select table_name as name from information_schema.tables
    where table_schema = 'public' and table_type = 'BASE TABLE'`
  return rows.map(({ name }) => name)
})

const logged = Effect.map(TestConsole.logLines, (lines) => lines.map(String).join("\n"))

/** Requests that meet a database without the table that they need: a fault, and nothing told of it. */
const faults = Effect.fnUntraced(function* (target: TestTarget, developer: Headers) {
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
    yield* sql`alter table ${sql(table)} rename to away`
    const answer = yield* request(`${target.url}/v1/${path}`, {
      headers,
      ...(body === undefined ? {} : { body })
    })
    yield* sql`alter table away rename to ${sql(table)}`
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
    assert.deepStrictEqual(found({ ...inside, ...secrets }, textOf(answer)), [], path)
  }
  assert.deepStrictEqual(found(secrets, yield* logged), [])
})

layer(App, { timeout: "120 seconds" })("the service", (it) => {
  it.effect(
    "tells nothing of its inside and nobody's secret: in answers, in the log, in rows",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { developer, development, heard } = yield* walk
        const leaks = heard.flatMap(({ answer, endpoint, text }) => {
          const fault = answer.status >= 500 ? [`status ${answer.status}`] : []
          const told = [...fault, ...found(inside, text)]
          const given = found(secrets, text).filter((one) => !handsOut[endpoint]?.includes(one))
          return told.length + given.length === 0
            ? []
            : [`${endpoint}: ${[...told, ...given].join()} in ${text.slice(0, 300)}`]
        })
        assert.isAbove(heard.length, endpoints.length * 4)
        assert.deepStrictEqual(Array.from(new Set(leaks)), [])

        const answers = heard.map(({ text }) => text).join("\n")
        const used = [
          development.secretKey,
          ...Object.values(secrets).flatMap(({ source }) =>
            Array.from(answers.matchAll(new RegExp(source, "g")), ([one]) => one)
          )
        ]
        const log = yield* logged
        assert.isAbove(used.length, 20)
        assert.deepStrictEqual(found({ ...inside, ...secrets }, log), [])
        for (const secret of used) assert.notInclude(answers, sha256(secret))
        for (const word of [...used.map(sha256), password, clientSecret, diary]) {
          assert.notInclude(log, word)
        }
        for (const name of yield* tables) {
          const rows = yield* sql`select string_agg(t::text, ' ') as text from ${sql(name)} t`
          const text = JSON.stringify(rows)
          assert.deepStrictEqual(found(secrets, text), [], name)
          for (const word of [...used, password, clientSecret]) assert.notInclude(text, word, name)
        }
        yield* faults(development, developer.headers)
      }),
    120_000
  )
})
