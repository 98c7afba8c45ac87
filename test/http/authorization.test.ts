/** The authorization matrix: its file is up to date, and the service enforces it. The short form takes a sample. */
import { readFileSync } from "node:fs"
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import {
  authorizationText,
  type Caller,
  callers,
  type Endpoint,
  endpoints,
  isCaller,
  refusal
} from "#server/http/authorization"
import { TestApp } from "#testing/app"
import { at, configure, guest, request, type TestResponse, type TestTarget } from "#testing/players"
import {
  everything,
  makeAppeal,
  makeRoom,
  makeKey,
  makeProject,
  makeTenantFixtures,
  signUp,
  type TenantFixtures
} from "../support/operator-harness.ts"
import { addDeadLetterOf } from "../support/dead-letters.ts"
import { call as callFunctions, deploy, enable, storeTargets } from "../support/function-calls.ts"
import { call, makeUnfinished } from "../support/hosting.ts"
import { misissue, partsOf, signingKey } from "../support/security/forger.ts"
import { SecurityAppLive } from "../support/security/security-harness.ts"
import { sampled } from "../support/security/sizes.ts"

const committed = readFileSync(new URL("../../rpc/authorization.md", import.meta.url), "utf8")

describe("rpc/authorization.md", () => {
  it("commits the matrix that the definitions generate (otherwise: npm run generate)", () => {
    assert.strictEqual(committed, authorizationText())
  })
})

type Headers = Readonly<Record<string, string>>

/** An access token of the player that expired a second ago. */
const expired = Effect.fnUntraced(function* (token: string) {
  const { claims } = partsOf(token)
  const exp = Number(claims["iat"]) - 1
  return misissue(yield* signingKey, { ...claims, iat: exp - 900, exp })
})

/** Expires the sessions of a developer, as 30 days without use do. */
const expireSessions = Effect.fnUntraced(function* ({ id }: TenantFixtures["developer"]) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`update developer_sessions set expires_at = now() where developer_id = ${id}`
})

/** Valid credentials in headers that do not accept them. */
const misplaced = ({ developer, development, player }: TenantFixtures): ReadonlyArray<Headers> => {
  const session = developer.headers["authorization"] ?? ""
  const { publishableKey, secretKey } = development
  const keys = [session, session.replace("Bearer ", ""), player.accessToken, player.refreshToken]
  const tokens = [secretKey, publishableKey, player.accessToken, player.refreshToken]
  return [
    ...keys.map((key) => ({ "x-svc-key": key })),
    ...tokens.map((token) => ({ authorization: `Bearer ${token}` })),
    { authorization: session.replace("Bearer", "Basic") },
    { "x-svc-key": `${secretKey} ` + publishableKey },
    { cookie: `x-svc-key=${secretKey}; authorization=${session}` }
  ]
}

/** The headers of each kind of caller. A kind with several entries calls once with each. */
const headersOf = Effect.fnUntraced(function* (fixtures: TenantFixtures) {
  const { development } = fixtures
  yield* expireSessions(fixtures.idleDeveloper)
  const publishable = { "x-svc-key": development.publishableKey }
  const secret = { "x-svc-key": development.secretKey }
  const withToken = (key: Headers, token: string) => ({ ...key, authorization: `Bearer ${token}` })
  const headers: Readonly<Record<Caller, ReadonlyArray<Headers>>> = {
    nobody: [{}],
    publishable: [publishable],
    player: [withToken(publishable, fixtures.player.accessToken)],
    bannedPlayer: [withToken(publishable, fixtures.bannedPlayer.accessToken)],
    otherPlayer: fixtures.otherPlayers.map((it) => withToken(publishable, it.accessToken)),
    expiredPlayer: [withToken(publishable, yield* expired(fixtures.player.accessToken))],
    secret: [secret, withToken(secret, fixtures.player.accessToken)],
    revoked: [
      ...fixtures.revoked,
      ...fixtures.revoked.map((it) => withToken(it, fixtures.player.accessToken))
    ],
    developer: [fixtures.developer.headers],
    otherDeveloper: [fixtures.otherDeveloper.headers],
    signedOut: [fixtures.signedOut, fixtures.idleDeveloper.headers],
    misplaced: misplaced(fixtures)
  }
  return headers
})

type Samples = Readonly<Record<string, string>>

/** Path parameters that exist, so that no request fails because its target is missing. */
const makeSamples = Effect.fnUntraced(function* ({
  developer,
  development,
  projectId
}: Pick<TenantFixtures, "developer" | "development" | "projectId">) {
  const { appealId, sanctionId } = yield* makeAppeal(development)
  const { keyId } = yield* makeKey(developer, projectId, "secret")
  const { id: playerId } = yield* guest(development)
  const { ref, sha256 } = yield* makeUnfinished(development)
  const roomId = yield* makeRoom(development)
  const domain = "play.example.com"
  yield* call(development, "POST", "hosting/domains", { domain })
  return {
    projectId,
    env: "development",
    appealId,
    sanctionId,
    keyId,
    playerId,
    roomId,
    name: "lobby",
    key: "slot",
    provider: "google",
    label: "nobody",
    shareId: "0123456789",
    version: "1",
    ref,
    sha256,
    checkoutId: `chk_${"0".repeat(26)}`,
    domain,
    binding: "DB",
    id: yield* addDeadLetterOf(development.publishableKey)
  } satisfies Samples
})

const fill = (path: string, samples: Samples): string =>
  path.replace(/:binding$/, "$&?prefix=").replace(/:([A-Za-z0-9]+)/g, (_, name: string) => {
    const value = samples[name]
    if (value === undefined) throw new Error(`${path}: there is no sample of ${name}`)
    return value
  })

/** Endpoints that invalidate the credentials or targets of the others: called last. */
const destructive = ["DELETE /v1/projects/:projectId", "POST /v1/developers/logout"]

const nameOf = ({ method, path }: Endpoint): string => `${method} ${path}`

/** Paths whose target belongs to one environment or project. */
const owned = /:(?:playerId|appealId|keyId|version|name|ref|sha256|domain|binding|roomId|id)\b/

/** Endpoints that do not answer 404 for a missing target: they create it, or keep silent. */
const creating = new Set([
  "PUT /v1/social/blocks/:playerId",
  "DELETE /v1/social/blocks/:playerId",
  "PUT /v1/realtime/channels/:name",
  "PUT /v1/admin/functions/secrets/:name",
  "PUT /v1/projects/:projectId/environments/:env/functions/secrets/:name"
])

/** Valid bodies, by the last segment of the path. */
const bodies: Readonly<Record<string, unknown>> = {
  age: { band: "teen" },
  activate: {},
  ban: {},
  finalize: {},
  messages: { type: "news" },
  migrate: { migrations: [{ name: "0001", sql: "select 1" }] },
  query: { sql: "select 1" },
  moderate: { op: "unban", playerId: `pl_${"0".repeat(26)}` },
  resolve: { accept: true }
}

const ofFunctions = "/v1/projects/:projectId/environments/:env/functions"
type MakeTarget = (target: TestTarget) => Effect.Effect<Samples, never, SqlClient.SqlClient>

const deadLetter: MakeTarget = ({ publishableKey }) =>
  Effect.map(addDeadLetterOf(publishableKey), (id) => ({ id }))

/** Endpoints whose target is made just before the request, with its parameters. */
const targets: Readonly<Record<string, MakeTarget>> = {
  [`POST ${ofFunctions}/deployments/:version/activate`]: (target) =>
    Effect.andThen(
      enable(target),
      Effect.map(deploy(target), (made) => ({ version: String(at(made, "version")) }))
    ),
  ...storeTargets(ofFunctions),
  [`POST ${ofFunctions}/dead-letters/:id/retry`]: deadLetter,
  [`DELETE ${ofFunctions}/dead-letters/:id`]: deadLetter,
  [`DELETE ${ofFunctions}/secrets/:name`]: (target) =>
    Effect.andThen(
      enable(target),
      Effect.as(callFunctions(target, "PUT", "/secrets/API_KEY", { value: "x" }), {
        name: "API_KEY"
      })
    )
}

const everyCaller = Object.keys(callers).filter(isCaller)

/** A response in the form of the matrix: `401 invalid_key`. */
const outcomeOf = ({ body, status }: TestResponse): string =>
  [status, at(body, "error", "code")].filter((it) => it !== undefined).join(" ")

/** Outcomes that refuse the caller, not the content of the request. */
const refusals = new Set(["401 invalid_key", "401 unauthorized", "403 player_banned"])

/** The number of rows in each table that a request can write to. */
const rowCounts = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql`
    select (select count(*) from players) players, (select count(*) from sessions) sessions,
      (select count(*) from identities) identities, (select count(*) from developers) developers,
      (select count(*) from developer_sessions) logins, (select count(*) from projects) projects,
      (select count(*) from keys) keys, (select count(*) from configs) configs,
      (select count(*) from sanctions) sanctions, (select count(*) from audit) audit,
      (select count(*) from channels) channels, (select count(*) from saves) saves,
      (select count(*) from stats) stats, (select count(*) from single_use_codes) codes,
      (select count(*) from sign_in_steps) steps, (select count(*) from mails) mails,
      (select count(*) from provider_credentials) providers,
      (select count(*) from webhook_secrets) secrets,
      (select count(*) from deployments) deployments, (select count(*) from checkouts) checkouts,
      (select count(*) from ledger_postings) postings,
      (select count(*) from functions) functions,
      (select count(*) from function_deployments) function_deployments,
      (select count(*) from function_secrets) function_secrets,
      (select count(*) from function_deliveries) function_deliveries,
      (select count(*) from idempotency_keys) idempotency`
  return row
})

layer(SecurityAppLive(), { timeout: "120 seconds", excludeTestServices: true })(
  "authorization",
  (it) => {
    it.effect(
      "admits or refuses each caller of each endpoint as the matrix states",
      () =>
        Effect.gen(function* () {
          const { url } = yield* TestApp
          const fixtures = yield* makeTenantFixtures("cells")
          const samples = yield* makeSamples(fixtures)
          const headers = yield* headersOf(fixtures)
          const ask = ({ method, path }: Endpoint, own: Headers, params = samples) =>
            request(`${url}${fill(path, params)}`, {
              method,
              headers: own,
              ...(method === "GET" ? {} : { body: {} })
            })
          const wrong: Array<string> = []
          const expect = (
            endpoint: Endpoint,
            caller: Caller,
            got: TestResponse,
            passes: boolean
          ) => {
            if (!passes) wrong.push(`${nameOf(endpoint)}: ${callers[caller]} got ${outcomeOf(got)}`)
          }
          const before = yield* rowCounts
          const cells = endpoints.flatMap((endpoint) =>
            everyCaller.flatMap((caller) => {
              const refused = refusal(endpoint, caller)
              if (refused === undefined) return []
              return headers[caller].map((own) => ({ endpoint, caller, refused, own }))
            })
          )
          yield* Effect.forEach(
            sampled(cells, 7),
            Effect.fnUntraced(function* ({ caller, endpoint, own, refused }) {
              const answer = yield* ask(endpoint, own)
              expect(endpoint, caller, answer, outcomeOf(answer) === refused)
            }),
            { concurrency: 8 }
          )
          assert.deepStrictEqual(yield* rowCounts, before)
          const rank = (endpoint: Endpoint) => destructive.indexOf(nameOf(endpoint))
          const admitted = endpoints
            .toSorted((a, b) => rank(a) - rank(b))
            .flatMap((endpoint) =>
              everyCaller
                .filter((caller) => refusal(endpoint, caller) === undefined)
                .flatMap((caller) => headers[caller].map((own) => ({ endpoint, caller, own })))
            )
          for (const { caller, endpoint, own } of sampled(admitted, 3)) {
            const makeTarget = targets[nameOf(endpoint)]
            const made = makeTarget === undefined ? {} : yield* makeTarget(fixtures.development)
            const answer = yield* ask(endpoint, own, { ...samples, ...made })
            const isAdmitted = answer.status < 500 && !refusals.has(outcomeOf(answer))
            // A developer of another project gets 404, so 404 refuses a member, too.
            const isFound = endpoint.access !== "member" || outcomeOf(answer) !== "404 not_found"
            expect(endpoint, caller, answer, isAdmitted && isFound)
          }
          assert.deepStrictEqual(wrong, [])
        }),
      { timeout: 300_000, tags: "sized" }
    )

    it.effect("accepts credentials in the query only to start a sign-in by a plain link", () =>
      Effect.gen(function* () {
        const { url } = yield* TestApp
        const fixtures = yield* makeTenantFixtures("query")
        const { developer, development, player } = fixtures
        const samples = yield* makeSamples(fixtures)
        const session = developer.headers["authorization"] ?? ""
        const wrong: Array<string> = []
        for (const key of [development.secretKey, development.publishableKey]) {
          const query = new URLSearchParams({
            key,
            "x-svc-key": key,
            access_token: player.accessToken,
            token: session,
            authorization: session
          })
          for (const endpoint of endpoints) {
            const { access, method, path } = endpoint
            if (access === "anyone" || access === "link") continue
            const options = method === "GET" ? { method } : { method, body: {} }
            const answer = yield* request(`${url}${fill(path, samples)}?${query}`, options)
            if (outcomeOf(answer) !== refusal(endpoint, "nobody")) wrong.push(nameOf(endpoint))
          }
        }
        const { body } = yield* request(
          `${url}/v1/auth/oauth/google/start?key=${development.secretKey}`
        )
        assert.strictEqual(at(body, "error", "code"), "invalid_key")
        assert.deepStrictEqual(wrong, [])
      })
    )

    it.effect("answers 404 to valid credentials of another environment or project", () =>
      Effect.gen(function* () {
        const { url } = yield* TestApp
        const owner = yield* signUp("owner")
        const { development, production, projectId } = yield* makeProject(owner)
        const stranger = yield* signUp("neighbour")
        const { development: strangers, projectId: strangersProject } = yield* makeProject(stranger)
        yield* Effect.forEach([development, production, strangers], enable)
        yield* deploy(development, { bindings: [{ name: "DB", type: "db" }] })
        yield* deploy(development)
        // Version 2 of the config exists in the development environment only.
        yield* configure(development, { ...everything, resetTimeZone: "Asia/Tokyo" })
        const samples = { ...(yield* makeSamples({ developer: owner, development, projectId })) }
        const elsewhere = [
          { access: "secret", headers: { "x-svc-key": production.secretKey }, params: {} },
          { access: "member", headers: owner.headers, params: { env: "production" } },
          {
            access: "member",
            headers: stranger.headers,
            params: { projectId: strangersProject }
          }
        ] as const
        const wrong: Array<string> = []
        for (const endpoint of endpoints.filter(({ path }) => owned.test(path))) {
          for (const { access, headers, params } of elsewhere) {
            const inProject = /:keyId/.test(endpoint.path) && "env" in params
            if (endpoint.access !== access || creating.has(nameOf(endpoint)) || inProject) continue
            const body = bodies[endpoint.path.split("/").at(-1) ?? ""]
            const answer = yield* request(
              `${url}${fill(endpoint.path, { ...samples, version: "2", ...params })}`,
              { method: endpoint.method, headers, ...(body === undefined ? {} : { body }) }
            )
            if (answer.status !== 404) wrong.push(`${nameOf(endpoint)}: ${outcomeOf(answer)}`)
          }
        }
        assert.deepStrictEqual(wrong, [])
      })
    )

    it.effect("refuses a ban with a publishable key, with or without a player's token", () =>
      Effect.gen(function* () {
        const { url } = yield* TestApp
        const owner = yield* signUp("judge")
        const { development, projectId } = yield* makeProject(owner)
        const victim = yield* guest(development)
        const accomplice = yield* guest(development)
        const { publishableKey } = development
        const mounted = [
          `${url}/v1/admin`,
          `${url}/v1/projects/${projectId}/environments/development`
        ]
        for (const mount of mounted) {
          for (const headers of [
            { "x-svc-key": publishableKey },
            { "x-svc-key": publishableKey, authorization: `Bearer ${accomplice.accessToken}` },
            { authorization: `Bearer ${publishableKey}` }
          ]) {
            const answer = yield* request(`${mount}/players/${victim.id}/ban`, {
              headers,
              body: {}
            })
            assert.include([401, 403], answer.status)
          }
        }
        const { body } = yield* request(`${url}/v1/players/me/sanctions`, {
          headers: { "x-svc-key": publishableKey, authorization: `Bearer ${victim.accessToken}` }
        })
        assert.deepStrictEqual(body, { sanctions: [] })
      })
    )
  }
)
