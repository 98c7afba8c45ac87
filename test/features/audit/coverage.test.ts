/**
 * Every endpoint that lets a developer or a secret key change something writes an audit entry. The endpoints
 * come from the API definition: a new one needs a sample change or a listed exemption.
 *
 * @module-tag long
 */
import { generateKeyPairSync } from "node:crypto"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import type { AuditAction } from "#rpc/audit"
import { poolLayer } from "#sql/database"
import { type Endpoint, endpoints } from "#server/http/authorization"
import { TestApp, TestDatabase } from "#testing/app"
import { at, guest, request } from "#testing/players"
import { addDeadLetterOf } from "../../support/dead-letters.ts"
import * as functions from "../../support/function-calls.ts"
import { call, makeUnfinished, upload } from "../../support/hosting.ts"
import {
  makeAppeal,
  makeKey,
  makeProject,
  signUp,
  type TestDeveloper,
  text
} from "../../support/operator-harness.ts"
import { DatabaseLive } from "../../support/service.ts"

const Rows = Layer.unwrap(
  Effect.map(TestDatabase, ({ url }) => poolLayer({ url: Redacted.make(url), connections: 1 }))
)

const App = TestApp.layerWith({ SVC_SIGNUPS: "open" }).pipe(
  Layer.provideMerge(Rows),
  Layer.provideMerge(DatabaseLive)
)

type Project = Effect.Success<ReturnType<typeof makeProject>>

/** The targets of a change, and its request. */
interface Sample {
  readonly action: AuditAction
  readonly params?: Readonly<Record<string, string>>
  readonly body?: unknown
}

type MakeSample = (
  project: Project,
  developer: TestDeveloper
) => Effect.Effect<Sample, never, TestApp | SqlClient.SqlClient>

const simply =
  (sample: Sample): MakeSample =>
  () =>
    Effect.succeed(sample)

/** A change of an existing player. */
const ofPlayer =
  (action: AuditAction, body?: unknown): MakeSample =>
  ({ development }) =>
    Effect.map(guest(development), ({ id }) => ({
      action,
      params: { playerId: id },
      ...(body === undefined ? {} : { body })
    }))

const privateKey = generateKeyPairSync("ec", { namedCurve: "prime256v1" }).privateKey.export({
  type: "pkcs8",
  format: "pem"
})

const clientSecret = "sesame-9f2c"
const client = { clientId: "client-1", clientSecret }

const putProvider = (development: Project["development"]) =>
  request(`${development.url}/v1/admin/auth/providers/google`, {
    method: "PUT",
    headers: { "x-svc-key": development.secretKey },
    body: client
  })

const putChannel = ({ development: { secretKey, url } }: Project) =>
  request(`${url}/v1/realtime/channels/lobby`, {
    method: "PUT",
    headers: { "x-svc-key": secretKey },
    body: {}
  })

/** A deployment whose file is uploaded. */
const makeUploaded = Effect.fnUntraced(function* (development: Project["development"]) {
  const unfinished = yield* makeUnfinished(development)
  yield* upload(development, unfinished.content)
  return unfinished
})

const database = { bindings: [{ name: "DB", type: "db" }] }

/** Live functions with a database. */
const deployFunctions = (target: Project["development"]) =>
  Effect.andThen(functions.enable(target), functions.deploy(target, database))

const deleting = (store: string): Sample => ({
  action: "functions.entriesDelete",
  params: { binding: `${store}?prefix=` }
})

/** A change of functions that are on. */
const ofFunctions =
  (sample: Sample, make: typeof functions.deployStores = functions.enable): MakeSample =>
  ({ development }) =>
    Effect.as(make(development), sample)

/** A change of a dead letter. */
const ofDeadLetter =
  (action: AuditAction): MakeSample =>
  ({ development }) =>
    Effect.map(addDeadLetterOf(development.publishableKey), (id) => ({ action, params: { id } }))

/** Changes of functions. Each follows the one before: the code is deployed, and deleted last. */
const ofFunctionsEndpoints: Readonly<Record<string, MakeSample>> = {
  "POST /functions/enable": ({ development }) =>
    Effect.as(functions.call(development, "POST", "/disable"), {
      action: "functions.enable",
      body: {}
    }),
  "POST /functions/disable": ofFunctions({ action: "functions.disable" }),
  "PUT /functions/limits": ({ development }) =>
    Effect.map(functions.enable(development), (status) => ({
      action: "functions.limits",
      body: { cpuMs: at(status, "limits", "cpuMs") === 70 ? 80 : 70 }
    })),
  "POST /functions/deployments": ofFunctions({
    action: "functions.deploy",
    body: functions.deploymentOf(functions.code, database)
  }),
  "POST /functions/deployments/:version/activate": ({ development }) =>
    Effect.gen(function* () {
      const first = yield* deployFunctions(development)
      yield* deployFunctions(development)
      const version = String(at(first, "version"))
      return { action: "functions.activate", params: { version } } as const
    }),
  "PUT /functions/secrets/:name": ofFunctions({
    action: "functions.secretPut",
    params: { name: "API_KEY" },
    body: { value: clientSecret }
  }),
  "DELETE /functions/secrets/:name": ({ development }) =>
    Effect.gen(function* () {
      yield* functions.enable(development)
      yield* functions.call(development, "PUT", "/secrets/OTHER", { value: clientSecret })
      return { action: "functions.secretDelete", params: { name: "OTHER" } } as const
    }),
  "POST /functions/db/:binding/query": ({ development }) =>
    Effect.as(deployFunctions(development), {
      action: "functions.query",
      params: { binding: "DB" },
      body: { sql: "create table if not exists walks (id integer)" }
    }),
  "POST /functions/db/:binding/migrate": ({ development }) =>
    Effect.map(deployFunctions(development), (deployed) => ({
      action: "functions.migrate",
      params: { binding: "DB" },
      body: { migrations: [{ name: `0001_${String(at(deployed, "version"))}`, sql: "select 1" }] }
    })),
  "DELETE /functions/kv/:binding": ofFunctions(deleting("KEPT"), functions.deployStores),
  "DELETE /functions/files/:binding": ofFunctions(deleting("FILES"), functions.deployStores),
  "POST /functions/dead-letters/:id/retry": ofDeadLetter("functions.deadLetterRetry"),
  "DELETE /functions/dead-letters/:id": ofDeadLetter("functions.deadLetterDelete"),
  "DELETE /functions": simply({ action: "functions.delete" })
}

/** Changes by endpoints with two mounts, by the path after the mount. */
const operating: Readonly<Record<string, MakeSample>> = {
  ...ofFunctionsEndpoints,
  "POST /share/links": simply({ action: "share.link", body: { label: "spring" } }),
  "DELETE /auth/providers/:provider": ({ development }) =>
    Effect.as(putProvider(development), {
      action: "provider.delete",
      params: { provider: "google" }
    }),
  "PUT /auth/providers/:provider": simply({
    action: "provider.put",
    params: { provider: "discord" },
    body: client
  }),
  "PUT /auth/providers/apple": simply({
    action: "provider.put",
    body: {
      servicesId: "com.example.walk",
      teamId: "ABCDE12345",
      keyId: "FGHIJ67890",
      privateKey: String(privateKey)
    }
  }),
  "POST /deployments": simply({
    action: "deployment.create",
    body: { files: [{ path: "a.txt", sha256: "0".repeat(64), size: 1 }] }
  }),
  "POST /deployments/:ref/finalize": ({ development }) =>
    Effect.map(makeUploaded(development), ({ ref }) => ({
      action: "deployment.finalize",
      params: { ref },
      body: {}
    })),
  "POST /deployments/:ref/activate": ({ development }) =>
    Effect.gen(function* () {
      const { ref } = yield* makeUploaded(development)
      yield* call(development, "POST", `deployments/${ref}/finalize`, {})
      return { action: "deployment.activate", params: { ref } } as const
    }),
  "POST /hosting/domains": () =>
    Effect.sync(() => ({
      action: "domain.add",
      body: { domain: `${crypto.randomUUID()}.example.com` }
    })),
  "DELETE /hosting/domains/:domain": ({ development }) =>
    Effect.as(call(development, "POST", "hosting/domains", { domain: "gone.example.com" }), {
      action: "domain.remove",
      params: { domain: "gone.example.com" }
    }),
  "POST /integrity/webhook-secret": simply({ action: "webhookSecret.rotate" }),
  "POST /players/:playerId/ban": ofPlayer("player.ban", { reason: "walk" }),
  "POST /players/:playerId/unban": ({ development }) =>
    Effect.map(makeAppeal(development), ({ player }) => ({
      action: "player.unban",
      params: { playerId: player.id }
    })),
  "PUT /players/:playerId/age": ofPlayer("player.age", { band: "teen" }),
  "POST /players/:playerId/export": ofPlayer("player.export"),
  "POST /players/:playerId/delete": ofPlayer("player.delete"),
  "POST /appeals/:appealId/resolve": ({ development }) =>
    Effect.map(makeAppeal(development), ({ appealId }) => ({
      action: "appeal.resolve",
      params: { appealId },
      body: { accept: true }
    })),
  "PUT /config": ({ development }) =>
    Effect.map(
      request(`${development.url}/v1/config`, {
        headers: { "x-svc-key": development.secretKey }
      }),
      ({ body }) => {
        const resetTimeZone = at(body, "resetTimeZone") === "UTC" ? "Asia/Tokyo" : "UTC"
        return { action: "config.push", body: { ...Object(body), resetTimeZone } }
      }
    )
}

/** Changes by endpoints with one mount. */
const others: Readonly<Record<string, MakeSample>> = {
  "PUT /v1/realtime/channels/:name": simply({
    action: "channel.put",
    params: { name: "walk" },
    body: { allow: [`pl_${"0".repeat(26)}`] }
  }),
  "POST /v1/realtime/channels/:name/moderate": (project) =>
    Effect.as(putChannel(project), {
      action: "channel.moderate",
      params: { name: "lobby" },
      body: { op: "unban", playerId: `pl_${"0".repeat(26)}` }
    }),
  "DELETE /v1/realtime/channels/:name": (project) =>
    Effect.as(putChannel(project), { action: "channel.delete", params: { name: "lobby" } }),
  "POST /v1/projects": simply({ action: "project.create", body: { name: "Second" } }),
  "PATCH /v1/projects/:projectId": simply({ action: "project.rename", body: { name: "Third" } }),
  "DELETE /v1/projects/:projectId": (_, developer) =>
    Effect.map(makeProject(developer), ({ projectId }) => ({
      action: "project.delete",
      params: { projectId }
    })),
  "POST /v1/projects/:projectId/restore": (_, developer) =>
    Effect.gen(function* () {
      const { projectId } = yield* makeProject(developer)
      const { url } = yield* TestApp
      const { headers } = developer
      yield* request(`${url}/v1/projects/${projectId}`, { method: "DELETE", headers })
      return { action: "project.restore", params: { projectId } } as const
    }),
  "POST /v1/projects/:projectId/environments/:env/keys": simply({
    action: "key.create",
    body: { kind: "secret" }
  }),
  "DELETE /v1/projects/:projectId/keys/:keyId": ({ projectId }, developer) =>
    Effect.map(makeKey(developer, projectId, "secret"), ({ keyId }) => ({
      action: "key.revoke",
      params: { keyId }
    }))
}

const proofReason = "needs a DNS record: the test of custom domains looks at its entry"
const blobReason = "the entry of the deployment names the files"

/** Endpoints that change no project, with the reason. */
const gameReason = "the data of a game, which a game server writes all the time"

const exempt: Readonly<Record<string, string>> = {
  "POST /v1/hosting/domains/:domain/verify": proofReason,
  "POST /v1/projects/:projectId/environments/:env/hosting/domains/:domain/verify": proofReason,
  "PUT /v1/blobs/:sha256": blobReason,
  "PUT /v1/projects/:projectId/environments/:env/blobs/:sha256": blobReason,
  "POST /v1/admin/players/verify-token": "reads",
  "POST /v1/projects/:projectId/environments/:env/players/verify-token": "reads",
  "PUT /v1/admin/players/:playerId/saves/:key": gameReason,
  "DELETE /v1/admin/players/:playerId/saves/:key": gameReason,
  "POST /v1/admin/players/:playerId/stats": gameReason,
  "POST /v1/realtime/channels/:name/messages": "sends a message that is not stored",
  "POST /v1/money/prepaid/checkout": "the developer's own money, of which the ledger is the log",
  "POST /v1/developers/logout": "the developer's own account, of no project",
  "POST /v1/developers/me/email/verification": "the developer's own account, of no project",
  "POST /v1/developers/me/invite-code": "the developer's own account, of no project",
  "POST /v1/developers/me/password": "the developer's own account, of no project",
  "DELETE /v1/developers/me/identities/:provider": "the developer's own account, of no project"
}

const mounts = ["/v1/admin", "/v1/projects/:projectId/environments/:env", "/v1"]

const nameOf = ({ method, path }: Endpoint): string => `${method} ${path}`

const sampleOf = (endpoint: Endpoint): MakeSample | undefined => {
  const own = others[nameOf(endpoint)]
  if (own !== undefined) return own
  const mount = mounts.find((it) => endpoint.path.startsWith(it)) ?? ""
  return operating[`${endpoint.method} ${endpoint.path.slice(mount.length)}`]
}

const changing = endpoints.filter(
  ({ access, method }) =>
    method !== "GET" && ["secret", "member", "developer", "developerOnly"].includes(access)
)

const fill = (path: string, params: Readonly<Record<string, string>>): string =>
  path.replace(/:([A-Za-z0-9]+)/g, (_, name: string) => params[name] ?? `no-${name}`)

/** Matches texts that look like secrets. */
const secretForm = /(?:sk|pk|kds)_[\w-]{43}|whsec_|PRIVATE KEY|sesame/

const newest = Effect.flatMap(SqlClient.SqlClient, (sql) => sql`select * from audit order by id`)

layer(App, { timeout: "120 seconds", excludeTestServices: true })("the audit log", (it) => {
  it.effect("adds an entry for every change by a developer or a secret key", () =>
    Effect.gen(function* () {
      const { url } = yield* TestApp
      const developer = yield* signUp("walker")
      const project = yield* makeProject(developer)
      const missing: Array<string> = []
      for (const endpoint of changing.filter((it) => !(nameOf(it) in exempt))) {
        const make = sampleOf(endpoint)
        if (make === undefined) {
          missing.push(`${nameOf(endpoint)}: no sample of a change`)
          continue
        }
        const sample = yield* make(project, developer)
        const before = new Set((yield* newest).map((row) => row["id"]))
        const params = { projectId: project.projectId, env: "development", ...sample.params }
        const headers =
          endpoint.access === "secret"
            ? { "x-svc-key": project.development.secretKey }
            : developer.headers
        const answer = yield* request(`${url}${fill(endpoint.path, params)}`, {
          method: endpoint.method,
          headers,
          ...(sample.body === undefined ? {} : { body: sample.body })
        })
        const entries = (yield* newest).filter((row) => !before.has(row["id"]))
        const logged = entries.map(
          (row) => `${String(row["action"])} by ${String(row["actorKind"])}`
        )
        const actor = endpoint.access === "secret" ? "key" : "developer"
        const isExpected = logged.length === 1 && logged[0] === `${sample.action} by ${actor}`
        if (!isExpected || answer.status >= 300) {
          missing.push(
            `${nameOf(endpoint)}: ${answer.status}, logged: ${logged.join() || "nothing"}`
          )
        }
      }
      assert.deepStrictEqual(missing, [])
      const all = JSON.stringify(yield* newest)
      assert.notMatch(all, secretForm)
      assert.include(all, text(developer, "id"))
    })
  )

  it.effect("lists only existing endpoints among those that add an audit entry or are exempt", () =>
    Effect.sync(() => {
      const names = new Set(changing.map(nameOf))
      const mounted = Object.keys(operating).map((name) => {
        const [method = "", path = ""] = name.split(" ")
        return mounts.map((mount) => `${method} ${mount}${path}`)
      })
      const single = [...Object.keys(others), ...Object.keys(exempt)].map((name) => [name])
      for (const either of [...mounted, ...single]) {
        assert.isTrue(
          either.some((name) => names.has(name)),
          either.join()
        )
      }
    })
  )
})
