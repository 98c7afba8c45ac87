/**
 * Fields that are not the caller's to set (API3): in the body of every endpoint that changes something
 * they are dropped. Nothing of them is stored, nobody else is touched, and no session comes about but
 * by signing in.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { HttpApi } from "effect/http-api"
import { SqlClient } from "effect/sql"
import { Api } from "#rpc/api"
import { type Endpoint, endpoints } from "#server/http/authorization"
import { TestApp } from "#testing/app"
import { at, configure, guest, request, type TestTarget } from "#testing/players"
import { inAppBrowser } from "../support/devices.ts"
import { everything, makeAppeal, makeProject, signUp, text } from "../support/operator-harness.ts"
import { SecurityAppLive, live } from "../support/security/security-harness.ts"

const password = "correct horse battery"

/** What is planted: found anywhere in the database, it was taken. */
const planted = "planted-by-nobody"
const plantedNumber = 987_654_321

/** Names that a careless handler would take from a body. */
const plantedFor = (victim: string, environmentId: string) => ({
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
      (name) => [name, planted]
    )
  ),
  isGuest: false,
  is_guest: false,
  emailVerified: true,
  email_verified: true,
  banned: false,
  isAdmin: true,
  balance: plantedNumber,
  owed: -plantedNumber,
  createdAt: "1999-09-09T09:09:09.999Z",
  created_at: "1999-09-09T09:09:09.999Z",
  identities: [{ provider: planted, subject: planted }],
  permissions: [planted],
  actor: { kind: planted, id: planted, name: planted },
  ageBand: "adult",
  declaredAgeBand: "adult",
  audience: planted,
  keys: [{ kind: "secret", plain: planted }]
})

/** Everything in the database, a text for each table. */
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

/** Everything that is stored about a player. */
const rowsOf = (playerId: string) =>
  Effect.map(
    Effect.flatMap(SqlClient.SqlClient, (sql) =>
      Effect.all([
        sql`select * from players where id = ${playerId}`,
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

const makeCast = Effect.gen(function* () {
  const { url } = yield* TestApp
  const developer = yield* signUp("assigner")
  const { development, production, projectId } = yield* makeProject(developer)
  const document = { ...everything, ...inAppBrowser }
  yield* configure(development, document)
  const victim = yield* guest(development)
  const elsewhere = yield* guest(production)
  const [environment] = yield* Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql<{ readonly id: string }>`
      select environment_id as id from players where id = ${elsewhere.id}`
  )
  const extras = plantedFor(victim.id, String(environment?.id))
  return { developer, development, document, extras, projectId, url, victim }
})
type Cast = Effect.Success<typeof makeCast>

/** A call that is in order; how its path is filled, and who makes it. */
interface Call {
  readonly path: string
  readonly body: object
  readonly headers: Readonly<Record<string, string>>
}

const asPlayer = ({ publishableKey }: TestTarget, accessToken: string) => ({
  "x-svc-key": publishableKey,
  authorization: `Bearer ${accessToken}`
})

const publicly =
  (path: string, body: object) =>
  ({ development: { publishableKey } }: Cast): Effect.Effect<Call> =>
    Effect.succeed({ path, body, headers: { "x-svc-key": publishableKey } })

const newly =
  (path: string, body: object) =>
  ({ development }: Cast) =>
    Effect.map(guest(development), ({ accessToken }): Call => ({
      path,
      body,
      headers: asPlayer(development, accessToken)
    }))

const operating =
  (path: string, body: object) =>
  ({ development }: Cast) =>
    Effect.map(guest(development), ({ id }): Call => ({
      path: path.replace(":playerId", id),
      body,
      headers: { "x-svc-key": development.secretKey }
    }))

const developing =
  (path: string, body: object) =>
  ({ developer, projectId }: Cast) =>
    Effect.succeed<Call>({
      path: path.replace(":projectId", projectId).replace(":env", "development"),
      body,
      headers: developer.headers
    })

type Make = (cast: Cast) => Effect.Effect<Call>

const calls: Readonly<Record<string, Make>> = {
  "POST /v1/auth/guest": publicly("/v1/auth/guest", { displayName: "Ada" }),
  "POST /v1/auth/email/signup": publicly("/v1/auth/email/signup", {
    email: "new@example.com",
    password
  }),
  "POST /v1/auth/email/login": publicly("/v1/auth/email/login", {
    email: "new@example.com",
    password
  }),
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
  "POST /v1/auth/link/email": newly("/v1/auth/link/email", { email: "own@example.com", password }),
  "POST /v1/auth/transfer": newly("/v1/auth/transfer", {}),
  "POST /v1/auth/transfer/redeem": ({ development, url }) =>
    Effect.gen(function* () {
      const { accessToken } = yield* guest(development)
      const headers = asPlayer(development, accessToken)
      const issued = yield* request(`${url}/v1/auth/transfer`, { method: "POST", headers })
      const body = { code: text(issued.body, "code") }
      const { publishableKey } = development
      return { path: "/v1/auth/transfer/redeem", body, headers: { "x-svc-key": publishableKey } }
    }),
  "PATCH /v1/players/me": newly("/v1/players/me", { displayName: "Bea" }),
  "POST /v1/players/me/age-signal": newly("/v1/players/me/age-signal", {
    platform: "ios",
    status: "verified",
    upperBound: 15
  }),
  "PUT /v1/social/age": newly("/v1/social/age", { band: "teen" }),
  "PUT /v1/news/opt-in": newly("/v1/news/opt-in", { optIn: true }),
  "PUT /v1/saves/:key": newly("/v1/saves/slot", { data: { gold: 1 } }),
  "POST /v1/stats": newly("/v1/stats", { stats: { score: 1 } }),
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
  "POST /v1/admin/players/:playerId/ban": operating("/v1/admin/players/:playerId/ban", {
    reason: "test"
  }),
  "POST /v1/admin/players/:playerId/unban": operating("/v1/admin/players/:playerId/unban", {}),
  "PUT /v1/admin/players/:playerId/age": operating("/v1/admin/players/:playerId/age", {
    band: "teen"
  }),
  "PUT /v1/admin/auth/providers/:provider": operating("/v1/admin/auth/providers/google", {
    clientId: "c",
    clientSecret: "s"
  }),
  "PUT /v1/realtime/channels/:name": operating("/v1/realtime/channels/lobby", { open: true }),
  "POST /v1/realtime/channels/:name/messages": operating("/v1/realtime/channels/lobby/messages", {
    type: "news"
  }),
  "POST /v1/realtime/channels/:name/moderate": operating("/v1/realtime/channels/lobby/moderate", {
    op: "mute",
    playerId: "pl_1",
    seconds: 60
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
  "POST /v1/developers/me/password": developing("/v1/developers/me/password", {
    currentPassword: password,
    newPassword: password
  }),
  "POST /v1/projects": developing("/v1/projects", { name: "Second" }),
  "PATCH /v1/projects/:projectId": developing("/v1/projects/:projectId", { name: "Third" }),
  "POST /v1/projects/:projectId/environments/:env/keys": developing(
    "/v1/projects/:projectId/environments/:env/keys",
    { kind: "publishable" }
  )
}

/** Those of which a session is to come. */
const signIns = new Set([
  "POST /v1/auth/guest",
  "POST /v1/auth/email/signup",
  "POST /v1/auth/email/login",
  "POST /v1/auth/transfer/redeem",
  "POST /v1/developers/signup",
  "POST /v1/developers/login"
])

/** What else changes something: the same handler behind another mount, or why it is not called. */
const others: ReadonlyArray<readonly [RegExp, why: string]> = [
  [/^\w+ \/v1\/projects\/:projectId\/environments\/:env\//, "handlers of both mounts are one"],
  [/^DELETE /, "what is removed has no fields"],
  [/\/config$/, "unknown fields of the document are refused by their path"],
  [/\/(?:export|delete|webhook-secret|verify-token|logout)$/, "no field of the body is stored"],
  [/\/oauth\/|\/auth\/providers\/apple$/, "only by its definition, below"],
  [/\/email\/(?:verify|resend)$|\/password\//, "only by its definition, below"],
  [/\/sanctions\//, "the handler of /v1/auth/appeal"]
]

const nameOf = ({ method, path }: Endpoint): string => `${method} ${path}`

layer(SecurityAppLive(), live)("mass assignment (API3)", (it) => {
  it.effect(
    "is of no use at any endpoint that changes something, and opens no session",
    () =>
      Effect.gen(function* () {
        const cast = yield* makeCast
        const before = yield* rowsOf(cast.victim.id)
        assert.isAtLeast(Object.keys(cast.extras).length, 30)
        const opened: Array<string> = []
        for (const [name, make] of Object.entries(calls)) {
          const { body, headers, path } = yield* make(cast)
          const sessions = yield* sessionCount
          const [method] = name.split(" ")
          const answer = yield* request(`${cast.url}${path}`, {
            method: method ?? "POST",
            headers,
            body: { ...cast.extras, ...body }
          })
          assert.isBelow(answer.status, 300, `${name}: ${JSON.stringify(answer.body)}`)
          assert.notInclude(JSON.stringify(answer.body), planted, name)
          assert.notInclude(JSON.stringify(answer.body), `"${cast.victim.id}"`, name)
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
          for (const trace of [planted, String(plantedNumber), "1999-09-09"]) {
            assert.notInclude(rows, trace, name)
          }
        }
        assert.strictEqual(yield* rowsOf(cast.victim.id), before)
      }),
    60_000
  )

  it.effect("is tried at every endpoint, or it is said why not", () =>
    Effect.sync(() => {
      const changing = endpoints.filter(({ method }) => method !== "GET").map(nameOf)
      const untold = changing.filter(
        (name) => calls[name] === undefined && !others.some(([form]) => form.test(name))
      )
      assert.deepStrictEqual(untold, [])
      assert.includeMembers(changing, Object.keys(calls))
    })
  )

  it.effect(
    "no definition of a body names what is not the caller's, or takes what it does not name",
    () =>
      Effect.sync(() => {
        const extras = plantedFor(planted, planted)
        let schemas = 0
        HttpApi.reflect(Api, {
          onGroup: () => undefined,
          onEndpoint: ({ endpoint }) => {
            for (const { schemas: payloads } of endpoint.payload.values()) {
              for (const schema of payloads) {
                const document = Schema.toJsonSchemaDocument(schema)
                const named = Object.keys(Object(at(document, "schema", "properties")))
                const own = new Set(["playerId"])
                const wrong = named.filter((name) => name in extras && !own.has(name))
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
