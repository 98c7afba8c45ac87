/**
 * Mass assignment (API3): every endpoint that writes drops fields that its caller may not set. None of them
 * is stored, no other player changes, and only a sign-in opens a session.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { HttpApi } from "effect/http-api"
import { SqlClient } from "effect/sql"
import { Api } from "#rpc/api"
import { type Endpoint, endpoints } from "#server/http/authorization"
import { TestApp } from "#testing/app"
import { at, configure, guest, request, type TestTarget } from "#testing/players"
import { code, deploymentOf } from "../support/function-calls.ts"
import { shareTools } from "../support/devices.ts"
import { everything, makeAppeal, makeProject, signUp, text } from "../support/operator-harness.ts"
import { SecurityAppLive, live } from "../support/security/security-harness.ts"

const password = "correct horse battery"

/** Values of the extra fields; in the database they prove that the service stored one. */
const forgedText = "forged-by-caller"
const forgedNumber = 987_654_321

/** Fields that a handler without a schema would read from a body. */
const extraFieldsFor = (victim: string, environmentId: string) => ({
  ...Object.fromEntries(
    ["id", "playerId", "player_id", "userId", "user_id", "sub", "accountId", "owner"].map(
      (name) => [name, victim]
    )
  ),
  ...Object.fromEntries(
    ["environmentId", "environment_id", "env", "projectId", "aud", "tenantId"].map((name) => [
      name,
      environmentId
    ])
  ),
  ...Object.fromEntries(
    ["passwordHash", "password_hash", "tokenHash", "sessionId", "role", "subject", "slug"].map(
      (name) => [name, forgedText]
    )
  ),
  isGuest: false,
  is_guest: false,
  emailVerified: true,
  email_verified: true,
  banned: false,
  isAdmin: true,
  balance: forgedNumber,
  owed: -forgedNumber,
  createdAt: "1999-09-09T09:09:09.999Z",
  created_at: "1999-09-09T09:09:09.999Z",
  identities: [{ provider: forgedText, subject: forgedText }],
  permissions: [forgedText],
  actor: { kind: forgedText, id: forgedText, name: forgedText },
  ageBand: "adult",
  declaredAgeBand: "adult",
  audience: forgedText,
  keys: [{ kind: "secret", plain: forgedText }]
})

/** The content of the whole database, one JSON text per table. */
const dump = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const tables = yield* sql<{ readonly name: string }>`
    select table_name as name from information_schema.tables
    where table_schema = 'public' and table_type = 'BASE TABLE' order by 1`
  return yield* Effect.forEach(tables, ({ name }) =>
    Effect.map(
      sql<{ readonly rows: string }>`
        select coalesce(json_agg(t)::text, '') as rows from ${sql(name)} t`,
      ([first]) => ({ name, rows: first?.rows ?? "" })
    )
  )
})

/** The rows of a player in all tables, as JSON text. */
const rowsOf = (playerId: string) =>
  Effect.map(
    Effect.flatMap(SqlClient.SqlClient, (sql) =>
      Effect.all([
        sql`select to_jsonb(p) - 'last_seen_at' as player from players p where id = ${playerId}`,
        sql`select * from sessions where player_id = ${playerId} order by id`,
        sql`select * from identities where player_id = ${playerId}`,
        sql`select * from sanctions where player_id = ${playerId}`,
        sql`select * from saves where player_id = ${playerId}`,
        sql`select * from stats where player_id = ${playerId}`
      ])
    ),
    (rows) => JSON.stringify(rows)
  )

const sessionCount = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.map(
    sql<{ readonly count: string }>`
      select (select count(*) from sessions) + (select count(*) from developer_sessions) as count`,
    ([row]) => Number(row?.count)
  )
)

const makeFixture = Effect.gen(function* () {
  const { url } = yield* TestApp
  const developer = yield* signUp("assigner")
  const { development, production, projectId } = yield* makeProject(developer)
  const document = { ...everything, ...shareTools }
  yield* configure(development, document)
  const victim = yield* guest(development)
  const productionPlayer = yield* guest(production)
  const [environment] = yield* Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql<{ readonly id: string }>`
      select environment_id as id from players where id = ${productionPlayer.id}`
  )
  const extras = extraFieldsFor(victim.id, String(environment?.id))
  return { developer, development, document, extras, projectId, url, victim }
})
type Fixture = Effect.Success<typeof makeFixture>

/** A valid request. */
interface Call {
  readonly path: string
  readonly body: object
  readonly headers: Readonly<Record<string, string>>
}

const asPlayer = ({ publishableKey }: TestTarget, accessToken: string) => ({
  "x-svc-key": publishableKey,
  authorization: `Bearer ${accessToken}`
})

const byAnyone =
  (path: string, body: object) =>
  ({ development: { publishableKey } }: Fixture): Effect.Effect<Call> =>
    Effect.succeed({ path, body, headers: { "x-svc-key": publishableKey } })

const byNewPlayer =
  (path: string, body: object) =>
  ({ development }: Fixture) =>
    Effect.map(guest(development), ({ accessToken }): Call => ({
      path,
      body,
      headers: asPlayer(development, accessToken)
    }))

const byServer =
  (path: string, body: object) =>
  ({ development }: Fixture) =>
    Effect.map(guest(development), ({ id }): Call => ({
      path: path.replace(":playerId", id),
      body,
      headers: { "x-svc-key": development.secretKey }
    }))

const byDeveloper =
  (path: string, body: object) =>
  ({ developer, projectId }: Fixture) =>
    Effect.succeed<Call>({
      path: path.replace(":projectId", projectId).replace(":env", "development"),
      body,
      headers: developer.headers
    })

const ofPlayer = (rest: string, body: object) =>
  byServer(`/v1/admin/players/:playerId/${rest}`, body)

const signUpForm = { email: "new@example.com", password }

type Make = (fixture: Fixture) => Effect.Effect<Call>

const calls: Readonly<Record<string, Make>> = {
  "POST /v1/auth/guest": byAnyone("/v1/auth/guest", { displayName: "Ada" }),
  "POST /v1/auth/email/signup": byAnyone("/v1/auth/email/signup", signUpForm),
  "POST /v1/auth/email/login": byAnyone("/v1/auth/email/login", signUpForm),
  "POST /v1/auth/refresh": ({ development }) =>
    Effect.map(guest(development), ({ refreshToken }) => ({
      path: "/v1/auth/refresh",
      body: { refreshToken },
      headers: { "x-svc-key": development.publishableKey }
    })),
  "POST /v1/auth/logout": ({ development }) =>
    Effect.map(guest(development), ({ refreshToken }) => ({
      path: "/v1/auth/logout",
      body: { refreshToken },
      headers: { "x-svc-key": development.publishableKey }
    })),
  "POST /v1/auth/link/email": byNewPlayer("/v1/auth/link/email", {
    email: "own@example.com",
    password
  }),
  "POST /v1/auth/transfer": byNewPlayer("/v1/auth/transfer", {}),
  "POST /v1/auth/transfer/redeem": ({ development, url }) =>
    Effect.gen(function* () {
      const { accessToken } = yield* guest(development)
      const headers = asPlayer(development, accessToken)
      const issued = yield* request(`${url}/v1/auth/transfer`, { method: "POST", headers })
      const body = { code: text(issued.body, "code") }
      const { publishableKey } = development
      return { path: "/v1/auth/transfer/redeem", body, headers: { "x-svc-key": publishableKey } }
    }),
  "PATCH /v1/players/me": byNewPlayer("/v1/players/me", { displayName: "Bea" }),
  "POST /v1/players/me/age-signal": byNewPlayer("/v1/players/me/age-signal", {
    platform: "ios",
    status: "verified",
    upperBound: 15
  }),
  "PUT /v1/social/age": byNewPlayer("/v1/social/age", { band: "teen" }),
  "PUT /v1/news/opt-in": byNewPlayer("/v1/news/opt-in", { optIn: true }),
  "POST /v1/share/links": byNewPlayer("/v1/share/links", { kind: "score", score: 1 }),
  "POST /v1/share/visits": ({ development, url }) =>
    Effect.gen(function* () {
      const { accessToken } = yield* guest(development)
      const headers = asPlayer(development, accessToken)
      const made = yield* request(`${url}/v1/share/links`, { headers, body: { kind: "plain" } })
      const body = { shareId: text(made.body, "link").slice(-10), landed: true }
      return { path: "/v1/share/visits", body, headers }
    }),
  "POST /v1/admin/share/links": byServer("/v1/admin/share/links", { label: "spring" }),
  "PUT /v1/saves/:key": byNewPlayer("/v1/saves/slot", { data: { gold: 1 } }),
  "POST /v1/stats": byNewPlayer("/v1/stats", { stats: { score: 1 } }),
  "POST /v1/auth/appeal": ({ development }) =>
    Effect.gen(function* () {
      const { id, refreshToken } = yield* guest(development)
      const headers = { "x-svc-key": development.secretKey }
      yield* request(`${development.url}/v1/admin/players/${id}/ban`, { headers, body: {} })
      const { publishableKey } = development
      const body = { refreshToken, message: "Please." }
      return { path: "/v1/auth/appeal", body, headers: { "x-svc-key": publishableKey } }
    }),
  "POST /v1/admin/appeals/:appealId/resolve": ({ development }) =>
    Effect.map(makeAppeal(development), ({ appealId }) => ({
      path: `/v1/admin/appeals/${appealId}/resolve`,
      body: { accept: true },
      headers: { "x-svc-key": development.secretKey }
    })),
  "POST /v1/admin/players/:playerId/ban": ofPlayer("ban", { reason: "test" }),
  "POST /v1/admin/players/:playerId/unban": ofPlayer("unban", {}),
  "PUT /v1/admin/players/:playerId/saves/:key": ofPlayer("saves/slot", { data: { gold: 1 } }),
  "POST /v1/admin/players/:playerId/stats": ofPlayer("stats", { stats: { score: 1 } }),
  "PUT /v1/admin/players/:playerId/age": ofPlayer("age", { band: "teen" }),
  "PUT /v1/admin/auth/providers/:provider": byServer("/v1/admin/auth/providers/google", {
    clientId: "c",
    clientSecret: "s"
  }),
  "PUT /v1/realtime/channels/:name": byServer("/v1/realtime/channels/lobby", { open: true }),
  "POST /v1/realtime/channels/:name/messages": byServer("/v1/realtime/channels/lobby/messages", {
    type: "news"
  }),
  "POST /v1/realtime/channels/:name/moderate": byServer("/v1/realtime/channels/lobby/moderate", {
    op: "unmute",
    playerId: `pl_${"0".repeat(26)}`
  }),
  "POST /v1/deployments": byServer("/v1/deployments", {
    files: [{ path: "a.txt", sha256: "0".repeat(64), size: 1 }],
    message: "test"
  }),
  "POST /v1/hosting/domains": byServer("/v1/hosting/domains", { domain: "play.example.com" }),
  "POST /v1/admin/functions/enable": byServer("/v1/admin/functions/enable", { cpuMs: 100 }),
  "PUT /v1/admin/functions/secrets/:name": byServer("/v1/admin/functions/secrets/A", {
    value: "x"
  }),
  "POST /v1/admin/functions/deployments": byServer(
    "/v1/admin/functions/deployments",
    deploymentOf(code, { bindings: [{ name: "DB", type: "db" }] })
  ),
  "POST /v1/admin/functions/db/:binding/query": byServer(`/v1/admin/functions/db/DB/query`, {
    sql: "select 1"
  }),
  "POST /v1/admin/functions/db/:binding/migrate": byServer("/v1/admin/functions/db/DB/migrate", {
    migrations: [{ name: "1", sql: "select 1" }]
  }),
  "POST /v1/developers/signup": () =>
    Effect.succeed({
      path: "/v1/developers/signup",
      body: { email: "another@example.com", password },
      headers: {}
    }),
  "POST /v1/developers/login": () =>
    Effect.succeed({
      path: "/v1/developers/login",
      body: { email: "another@example.com", password },
      headers: {}
    }),
  "POST /v1/developers/me/password": byDeveloper("/v1/developers/me/password", {
    currentPassword: password,
    newPassword: password
  }),
  "POST /v1/projects": byDeveloper("/v1/projects", { name: "Second", slug: "second" }),
  "PATCH /v1/projects/:projectId": byDeveloper("/v1/projects/:projectId", { name: "Third" }),
  "POST /v1/projects/:projectId/environments/:env/keys": byDeveloper(
    "/v1/projects/:projectId/environments/:env/keys",
    { kind: "publishable" }
  )
}

/** Endpoints that open a session. */
const signIns = new Set([
  "POST /v1/auth/guest",
  "POST /v1/auth/email/signup",
  "POST /v1/auth/email/login",
  "POST /v1/auth/transfer/redeem",
  "POST /v1/developers/signup",
  "POST /v1/developers/login"
])

/** The other endpoints that write, each with the reason why `calls` lacks it. */
const others: ReadonlyArray<readonly [RegExp, why: string]> = [
  [/^\w+ \/v1\/projects\/:projectId\/environments\/:env\//, "both mounts share their handlers"],
  [/^DELETE /, "a deletion has no fields"],
  [/\/config$/, "the config refuses unknown fields"],
  [
    /\/(?:export|delete|restore|webhook-secret|verify-token|logout|finalize|activate|verify|disable|limits)$|\/blobs\//,
    "the service stores no field of the body"
  ],
  [/\/me\/(?:invite-code|email\/verification)$|retry$/, "the service stores no field of the body"],
  [/\/oauth\/|\/auth\/providers\/apple$/, "the test of body definitions covers it"],
  [/\/email\/(?:verify|resend|disown)$|\/password\//, "the test of body definitions covers it"],
  [/\/v1\/money\//, "it needs a payment provider; the test of body definitions covers it"],
  [/\/v1\/payments\//, "only an event with the provider's signature is read"],
  [/\/social\/blocks\//, "it has no body"],
  [/\/x-profile$/, "it needs an identity at X, and has one field"],
  [/\/sanctions\//, "it shares the handler of /v1/auth/appeal"]
]

const nameOf = ({ method, path }: Endpoint): string => `${method} ${path}`

layer(SecurityAppLive(), live)("mass assignment (API3)", (it) => {
  it.effect(
    "every endpoint that writes drops fields that its caller may not set",
    () =>
      Effect.gen(function* () {
        const fixture = yield* makeFixture
        const before = yield* rowsOf(fixture.victim.id)
        assert.isAtLeast(Object.keys(fixture.extras).length, 30)
        const opened: Array<string> = []
        for (const [name, make] of Object.entries(calls)) {
          const { body, headers, path } = yield* make(fixture)
          const sessions = yield* sessionCount
          const [method] = name.split(" ")
          const answer = yield* request(`${fixture.url}${path}`, {
            method: method ?? "POST",
            headers,
            body: { ...fixture.extras, ...body }
          })
          assert.isBelow(answer.status, 300, `${name}: ${JSON.stringify(answer.body)}`)
          assert.notInclude(JSON.stringify(answer.body), forgedText, name)
          assert.notInclude(JSON.stringify(answer.body), `"${fixture.victim.id}"`, name)
          if ((yield* sessionCount) !== sessions) opened.push(name)
          const player = at(answer.body, "player")
          if (/guest|refresh|PATCH \/v1\/players|redeem/.test(name)) {
            assert.isTrue(at(player, "isGuest"), name)
            assert.deepStrictEqual(at(player, "identities"), [{ provider: "guest" }], name)
          }
          if (player !== undefined) assert.isNotTrue(at(player, "emailVerified"), name)
        }
        assert.sameMembers(opened, [...signIns])
        for (const { name, rows } of yield* dump) {
          for (const trace of [forgedText, String(forgedNumber), "1999-09-09"]) {
            assert.notInclude(rows, trace, name)
          }
        }
        assert.strictEqual(yield* rowsOf(fixture.victim.id), before)
      }),
    60_000
  )

  it.effect("every endpoint that writes is called, or has a reason why not", () =>
    Effect.sync(() => {
      const writing = endpoints.filter(({ method }) => method !== "GET").map(nameOf)
      const uncovered = writing.filter(
        (name) => calls[name] === undefined && !others.some(([form]) => form.test(name))
      )
      assert.deepStrictEqual(uncovered, [])
      assert.includeMembers(writing, Object.keys(calls))
    })
  )

  it.effect("no body definition names a field that its caller may not set", () =>
    Effect.sync(() => {
      const extras = extraFieldsFor(forgedText, forgedText)
      let schemas = 0
      HttpApi.reflect(Api, {
        onGroup: () => undefined,
        onEndpoint: ({ endpoint }) => {
          for (const { schemas: payloads } of endpoint.payload.values()) {
            for (const schema of payloads) {
              const document = Schema.toJsonSchemaDocument(schema)
              const named = Object.keys(Object(at(document, "schema", "properties")))
              const own = ["playerId", endpoint.path === "/v1/projects" ? "slug" : ""]
              const wrong = named.filter((name) => name in extras && !own.includes(name))
              assert.deepStrictEqual(wrong, [], `${endpoint.method} ${endpoint.path}`)
              schemas += 1
            }
          }
        }
      })
      assert.isAtLeast(schemas, 40)
    })
  )
})
