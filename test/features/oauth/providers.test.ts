/** Provider credentials: written by operators, sealed in the database, audited without secrets. */
import { generateKeyPairSync } from "node:crypto"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Option } from "effect"
import { SqlClient } from "effect/sql"
import { ProviderRepository } from "#sql/oauth/providers"
import { Providers } from "#server/features/oauth/providers"
import { at, request } from "#testing/players"
import {
  addressOfNode,
  configure,
  makeDeveloper,
  makeTenantsOf,
  nodeWith,
  SharedDatabase
} from "../../support/http-stack.ts"

const Node = Providers.layer.pipe(
  Layer.provide(ProviderRepository.layer),
  Layer.provideMerge(nodeWith()),
  Layer.provideMerge(SharedDatabase.layer)
)

const setUp = Effect.gen(function* () {
  const url = yield* addressOfNode
  const developer = yield* makeDeveloper
  const tenants = yield* makeTenantsOf(developer.developerId)
  const project = `${url}/v1/projects/${tenants.projectId}`
  const asMember = (method: string, provider: string, body?: unknown) =>
    request(`${project}/environments/development/auth/providers/${provider}`, {
      method,
      body,
      ...developer
    })
  const asServer = (method: string, provider: string, body?: unknown) =>
    request(`${url}/v1/admin/auth/providers/${provider}`, {
      method,
      body,
      headers: { "x-svc-key": tenants.development.secretKey }
    })
  const log = Effect.map(request(`${project}/audit`, developer), ({ body }) => at(body, "entries"))
  return { asMember, asServer, log, ...tenants }
})

const pem = (curve: string) =>
  generateKeyPairSync("ec", { namedCurve: curve }).privateKey.export({
    type: "pkcs8",
    format: "pem"
  })

const apple = () => ({
  servicesId: "com.example.game",
  teamId: "ABCDE12345",
  keyId: "FGHIJ67890",
  privateKey: String(pem("prime256v1"))
})

const client = { clientId: "client-1", clientSecret: "sesame-9f2c" }

layer(Node)("provider credentials", (it) => {
  it.effect("writes credentials, reads them without secret and deletes them on both mounts", () =>
    Effect.gen(function* () {
      const { asMember, asServer, development } = yield* setUp
      const empty = {
        provider: "google",
        configured: false,
        enabled: false,
        callbackUrl: "https://play.example.com/v1/auth/oauth/google/callback",
        clientId: null
      }
      assert.deepStrictEqual((yield* asMember("GET", "google")).body, empty)
      const put = yield* asMember("PUT", "google", client)
      const configured = { ...empty, configured: true, clientId: "client-1" }
      assert.deepStrictEqual(put.body, configured)
      yield* configure(development, { auth: { providers: { google: { enabled: true } } } })
      const read = yield* asServer("GET", "google")
      assert.deepStrictEqual(read.body, { ...configured, enabled: true })
      const replaced = yield* asServer("PUT", "google", { ...client, clientId: "client-2" })
      assert.strictEqual(at(replaced.body, "clientId"), "client-2")
      assert.deepStrictEqual((yield* asServer("GET", "discord")).status, 200)
      assert.strictEqual(at((yield* asServer("GET", "discord")).body, "configured"), false)
      const gone = yield* asServer("DELETE", "google")
      assert.deepStrictEqual(gone.body, { ...empty, enabled: true })
      assert.strictEqual((yield* asServer("DELETE", "google")).status, 200)
    })
  )

  it.effect("seals credentials in the database and opens them for the service", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const providers = yield* Providers
      const { asMember, development, production } = yield* setUp
      const { environmentId } = development
      const key = apple()
      yield* asMember("PUT", "apple", key)
      yield* asMember("PUT", "x", client)
      const rows = yield* sql`
        select * from provider_credentials where environment_id = ${environmentId}`
      assert.lengthOf(rows, 2)
      assert.notInclude(JSON.stringify(rows), client.clientSecret)
      assert.notInclude(JSON.stringify(rows), key.privateKey.slice(30, 60))
      assert.deepStrictEqual(yield* providers.credentials(environmentId, "apple"), Option.some(key))
      assert.deepStrictEqual(yield* providers.credentials(environmentId, "x"), Option.some(client))
      const { environmentId: other } = production
      assert.isTrue(Option.isNone(yield* providers.credentials(other, "x")))
    })
  )

  it.effect("refuses credentials with the path of the invalid field", () =>
    Effect.gen(function* () {
      const { asMember, log } = yield* setUp
      const wrong = [
        ["google", { clientId: "a" }, "clientSecret"],
        ["google", { ...client, clientId: "two words" }, "clientId"],
        ["google", { ...client, clientSecret: "" }, "clientSecret"],
        ["github", client, "params.provider"],
        ["apple", client, "servicesId"],
        ["apple", { ...apple(), teamId: "short" }, "teamId"],
        ["apple", { ...apple(), privateKey: "not a key" }, "privateKey"],
        ["apple", { ...apple(), privateKey: String(pem("secp384r1")) }, "privateKey"]
      ] as const
      for (const [provider, body, path] of wrong) {
        const answer = yield* asMember("PUT", provider, body)
        assert.strictEqual(answer.status, 400, path)
        const issues = at(answer.body, "error", "details", "issues")
        const paths = Array.isArray(issues) ? issues.map((issue) => at(issue, "path")) : []
        assert.include(paths, path)
      }
      assert.deepStrictEqual(yield* log, [])
    })
  )

  it.effect("names credentials in the audit log by client id, never by secret", () =>
    Effect.gen(function* () {
      const { asMember, asServer, log } = yield* setUp
      const key = apple()
      yield* asMember("PUT", "discord", client)
      yield* asServer("PUT", "apple", key)
      yield* asServer("DELETE", "discord")
      yield* asServer("DELETE", "discord")
      const entries = yield* log
      const changes = Array.isArray(entries)
        ? entries.map((entry) => [
            at(entry, "action"),
            at(entry, "target", "id"),
            at(entry, "details")
          ])
        : []
      assert.sameDeepMembers(changes, [
        ["provider.put", "discord", { clientId: { before: null, after: "client-1" } }],
        ["provider.put", "apple", { clientId: { before: null, after: "com.example.game" } }],
        ["provider.delete", "discord", { clientId: { before: "client-1", after: null } }]
      ])
      const text = JSON.stringify(entries)
      assert.notInclude(text, client.clientSecret)
      assert.notInclude(text, key.privateKey.slice(30, 60))
    })
  )
})
