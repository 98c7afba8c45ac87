/** The committed OpenAPI document: up to date, with every endpoint, its callers and its errors. */
import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { openapiText } from "#server/http/openapi"
import { at } from "#testing/players"

const committed = readFileSync(new URL("../../rpc/openapi.json", import.meta.url), "utf8")
const document: unknown = JSON.parse(committed)

const entriesOf = (value: unknown): ReadonlyArray<[string, unknown]> =>
  Object.entries(Object(value))

/** Kinds of callers and their security schemes. */
const callers = {
  player: ["playerToken", "publishableKey"],
  pk: ["publishableKey"],
  link: ["publishableKeyInQuery"],
  key: ["anyKey"],
  sk: ["secretKey"],
  dev: ["developerSession"],
  none: []
} as const

/** An operating endpoint under both mounts: for a secret key, and for a developer of the project. */
const operating = <const Method extends string, const Path extends string>(
  method: Method,
  path: Path
) =>
  [
    [method, `/v1/admin/${path}`, "sk"],
    [method, `/v1/projects/{projectId}/environments/{env}/${path}`, "dev"]
  ] as const

/** Every endpoint of the API. */
const endpoints = [
  ["post", "/v1/auth/guest", "pk"],
  ["post", "/v1/auth/refresh", "pk"],
  ["post", "/v1/auth/logout", "pk"],
  ["post", "/v1/auth/oauth/{provider}/start", "pk"],
  ["get", "/v1/auth/oauth/{provider}/start", "link"],
  ["get", "/v1/auth/oauth/{provider}/callback", "none"],
  ["post", "/v1/auth/oauth/{provider}/callback", "none"],
  ["post", "/v1/auth/oauth/exchange", "pk"],
  ["post", "/v1/auth/oauth/{provider}/native", "pk"],
  ["post", "/v1/auth/email/signup", "pk"],
  ["post", "/v1/auth/email/login", "pk"],
  ["post", "/v1/auth/email/verify", "pk"],
  ["post", "/v1/auth/email/disown", "pk"],
  ["post", "/v1/auth/email/resend", "player"],
  ["post", "/v1/auth/password/forgot", "pk"],
  ["post", "/v1/auth/password/reset", "pk"],
  ["post", "/v1/auth/password/change", "player"],
  ["post", "/v1/auth/link/email", "player"],
  ["get", "/v1/players/me", "player"],
  ["patch", "/v1/players/me", "player"],
  ["delete", "/v1/players/me", "player"],
  ["get", "/v1/players/me/export", "player"],
  ["get", "/v1/players/me/identities", "player"],
  ["delete", "/v1/players/me/identities/{provider}", "player"],
  ["post", "/v1/players/me/age-signal", "player"],
  ["get", "/v1/social/profile", "player"],
  ["put", "/v1/social/age", "player"],
  ["get", "/v1/social/blocks", "player"],
  ["put", "/v1/social/blocks/{playerId}", "player"],
  ["delete", "/v1/social/blocks/{playerId}", "player"],
  ["post", "/v1/auth/transfer", "player"],
  ["post", "/v1/auth/transfer/redeem", "pk"],
  ["get", "/v1/news/opt-in", "pk"],
  ["put", "/v1/news/opt-in", "player"],
  ["post", "/v1/share/links", "player"],
  ["get", "/v1/share/links/{shareId}", "pk"],
  ["post", "/v1/share/visits", "pk"],
  ["get", "/v1/share/tags", "key"],
  ["get", "/v1/key", "key"],
  ["get", "/v1/share/images/{label}/card.png", "none"],
  ["get", "/v1/share/images/{label}/{shareId}.png", "none"],
  ...operating("get", "share/stats"),
  ...operating("post", "share/links"),
  ...operating("get", "share/tags"),
  ["get", "/v1/players/me/x-profile", "player"],
  ["put", "/v1/players/me/x-profile", "player"],
  ["get", "/v1/players/x-profiles", "pk"],
  ["get", "/v1/players/me/sanctions", "player"],
  ["post", "/v1/players/me/sanctions/{sanctionId}/appeal", "player"],
  ["post", "/v1/auth/appeal", "pk"],
  ...operating("post", "players/{playerId}/ban"),
  ...operating("post", "players/{playerId}/unban"),
  ...operating("put", "players/{playerId}/age"),
  ...operating("post", "players/{playerId}/export"),
  ...operating("post", "players/{playerId}/delete"),
  ...operating("post", "players/verify-token"),
  ...operating("get", "appeals"),
  ...operating("post", "appeals/{appealId}/resolve"),
  ["get", "/v1/rooms", "pk"],
  ["put", "/v1/realtime/channels/{name}", "sk"],
  ["get", "/v1/realtime/channels/{name}", "sk"],
  ["delete", "/v1/realtime/channels/{name}", "sk"],
  ["post", "/v1/realtime/channels/{name}/messages", "sk"],
  ["post", "/v1/realtime/channels/{name}/moderate", "sk"],
  ["get", "/v1/saves", "player"],
  ["get", "/v1/saves/{key}", "player"],
  ["put", "/v1/saves/{key}", "player"],
  ["delete", "/v1/saves/{key}", "player"],
  ["get", "/v1/stats", "player"],
  ["post", "/v1/stats", "player"],
  ["get", "/v1/admin/players/{playerId}/saves", "sk"],
  ["get", "/v1/admin/players/{playerId}/saves/{key}", "sk"],
  ["put", "/v1/admin/players/{playerId}/saves/{key}", "sk"],
  ["delete", "/v1/admin/players/{playerId}/saves/{key}", "sk"],
  ["get", "/v1/admin/players/{playerId}/stats", "sk"],
  ["post", "/v1/admin/players/{playerId}/stats", "sk"],
  ["get", "/v1/admin/integrity/webhook-secret", "sk"],
  ["post", "/v1/admin/integrity/webhook-secret", "sk"],
  ["get", "/v1/projects/{projectId}/environments/{env}/integrity/webhook-secret", "dev"],
  ["post", "/v1/projects/{projectId}/environments/{env}/integrity/webhook-secret", "dev"],
  ["get", "/v1/gamedata/definitions", "pk"],
  ["get", "/v1/money/prepaid", "dev"],
  ["get", "/v1/money/prepaid/ledger", "dev"],
  ["post", "/v1/money/prepaid/checkout", "dev"],
  ["get", "/v1/money/prepaid/checkouts/{checkoutId}", "dev"],
  ["get", "/v1/money/usage", "dev"],
  ["post", "/v1/payments/stripe", "none"],
  ["get", "/v1/admin/functions", "sk"],
  ["get", "/v1/projects/{projectId}/environments/{env}/functions", "dev"],
  ["post", "/v1/admin/functions/enable", "sk"],
  ["post", "/v1/projects/{projectId}/environments/{env}/functions/enable", "dev"],
  ["post", "/v1/admin/functions/disable", "sk"],
  ["post", "/v1/projects/{projectId}/environments/{env}/functions/disable", "dev"],
  ["put", "/v1/admin/functions/limits", "sk"],
  ["put", "/v1/projects/{projectId}/environments/{env}/functions/limits", "dev"],
  ["post", "/v1/admin/functions/deployments", "sk"],
  ["post", "/v1/projects/{projectId}/environments/{env}/functions/deployments", "dev"],
  ["get", "/v1/admin/functions/deployments", "sk"],
  ["get", "/v1/projects/{projectId}/environments/{env}/functions/deployments", "dev"],
  ["post", "/v1/admin/functions/deployments/{version}/activate", "sk"],
  [
    "post",
    "/v1/projects/{projectId}/environments/{env}/functions/deployments/{version}/activate",
    "dev"
  ],
  ["delete", "/v1/admin/functions", "sk"],
  ["delete", "/v1/projects/{projectId}/environments/{env}/functions", "dev"],
  ["get", "/v1/admin/functions/secrets", "sk"],
  ["get", "/v1/projects/{projectId}/environments/{env}/functions/secrets", "dev"],
  ["put", "/v1/admin/functions/secrets/{name}", "sk"],
  ["put", "/v1/projects/{projectId}/environments/{env}/functions/secrets/{name}", "dev"],
  ["delete", "/v1/admin/functions/secrets/{name}", "sk"],
  ["delete", "/v1/projects/{projectId}/environments/{env}/functions/secrets/{name}", "dev"],
  ["post", "/v1/admin/functions/db/{binding}/query", "sk"],
  ["post", "/v1/projects/{projectId}/environments/{env}/functions/db/{binding}/query", "dev"],
  ["post", "/v1/admin/functions/db/{binding}/migrate", "sk"],
  ["post", "/v1/projects/{projectId}/environments/{env}/functions/db/{binding}/migrate", "dev"],
  ["get", "/v1/admin/functions/kv/{binding}", "sk"],
  ["get", "/v1/projects/{projectId}/environments/{env}/functions/kv/{binding}", "dev"],
  ["delete", "/v1/admin/functions/kv/{binding}", "sk"],
  ["delete", "/v1/projects/{projectId}/environments/{env}/functions/kv/{binding}", "dev"],
  ["get", "/v1/admin/functions/files/{binding}", "sk"],
  ["get", "/v1/projects/{projectId}/environments/{env}/functions/files/{binding}", "dev"],
  ["delete", "/v1/admin/functions/files/{binding}", "sk"],
  ["delete", "/v1/projects/{projectId}/environments/{env}/functions/files/{binding}", "dev"],
  ["get", "/v1/admin/functions/dead-letters", "sk"],
  ["get", "/v1/projects/{projectId}/environments/{env}/functions/dead-letters", "dev"],
  ["post", "/v1/admin/functions/dead-letters/{id}/retry", "sk"],
  ["post", "/v1/projects/{projectId}/environments/{env}/functions/dead-letters/{id}/retry", "dev"],
  ["delete", "/v1/admin/functions/dead-letters/{id}", "sk"],
  ["delete", "/v1/projects/{projectId}/environments/{env}/functions/dead-letters/{id}", "dev"],
  ["get", "/v1/admin/functions/logs", "sk"],
  ["get", "/v1/projects/{projectId}/environments/{env}/functions/logs", "dev"],
  ["post", "/v1/deployments", "sk"],
  ["put", "/v1/blobs/{sha256}", "sk"],
  ["post", "/v1/deployments/{ref}/finalize", "sk"],
  ["post", "/v1/deployments/{ref}/activate", "sk"],
  ["get", "/v1/deployments", "sk"],
  ["get", "/v1/deployments/{ref}", "sk"],
  ["get", "/v1/hosting", "sk"],
  ["get", "/v1/hosting/domains", "sk"],
  ["post", "/v1/hosting/domains", "sk"],
  ["post", "/v1/hosting/domains/{domain}/verify", "sk"],
  ["delete", "/v1/hosting/domains/{domain}", "sk"],
  ["post", "/v1/projects/{projectId}/environments/{env}/deployments", "dev"],
  ["put", "/v1/projects/{projectId}/environments/{env}/blobs/{sha256}", "dev"],
  ["post", "/v1/projects/{projectId}/environments/{env}/deployments/{ref}/finalize", "dev"],
  ["post", "/v1/projects/{projectId}/environments/{env}/deployments/{ref}/activate", "dev"],
  ["get", "/v1/projects/{projectId}/environments/{env}/deployments", "dev"],
  ["get", "/v1/projects/{projectId}/environments/{env}/deployments/{ref}", "dev"],
  ["get", "/v1/projects/{projectId}/environments/{env}/hosting", "dev"],
  ["get", "/v1/projects/{projectId}/environments/{env}/hosting/domains", "dev"],
  ["post", "/v1/projects/{projectId}/environments/{env}/hosting/domains", "dev"],
  ["post", "/v1/projects/{projectId}/environments/{env}/hosting/domains/{domain}/verify", "dev"],
  ["delete", "/v1/projects/{projectId}/environments/{env}/hosting/domains/{domain}", "dev"],
  ["get", "/v1/admin/features", "sk"],
  ["get", "/v1/config", "sk"],
  ["put", "/v1/config", "sk"],
  ["get", "/v1/config/versions", "sk"],
  ["get", "/v1/config/versions/{version}", "sk"],
  ["get", "/v1/projects/{projectId}/environments/{env}/features", "dev"],
  ["get", "/v1/projects/{projectId}/environments/{env}/config", "dev"],
  ["put", "/v1/projects/{projectId}/environments/{env}/config", "dev"],
  ["get", "/v1/projects/{projectId}/environments/{env}/config/versions", "dev"],
  ["get", "/v1/projects/{projectId}/environments/{env}/config/versions/{version}", "dev"],
  ["get", "/v1/admin/auth/providers/{provider}", "sk"],
  ["put", "/v1/admin/auth/providers/{provider}", "sk"],
  ["delete", "/v1/admin/auth/providers/{provider}", "sk"],
  ["put", "/v1/admin/auth/providers/apple", "sk"],
  ["get", "/v1/projects/{projectId}/environments/{env}/auth/providers/{provider}", "dev"],
  ["put", "/v1/projects/{projectId}/environments/{env}/auth/providers/{provider}", "dev"],
  ["delete", "/v1/projects/{projectId}/environments/{env}/auth/providers/{provider}", "dev"],
  ["put", "/v1/projects/{projectId}/environments/{env}/auth/providers/apple", "dev"],
  ["get", "/v1/projects/{projectId}/audit", "dev"],
  ["post", "/v1/developers/signup", "none"],
  ["post", "/v1/developers/login", "none"],
  ["post", "/v1/developers/oauth/{provider}/start", "none"],
  ["get", "/v1/developers/oauth/{provider}/callback", "none"],
  ["post", "/v1/developers/oauth/exchange", "none"],
  ["post", "/v1/developers/email/verify", "none"],
  ["post", "/v1/developers/me/email/verification", "dev"],
  ["post", "/v1/developers/me/invite-code", "dev"],
  ["post", "/v1/developers/logout", "dev"],
  ["get", "/v1/developers/me", "dev"],
  ["post", "/v1/developers/me/password", "dev"],
  ["get", "/v1/developers/me/identities", "dev"],
  ["delete", "/v1/developers/me/identities/{provider}", "dev"],
  ["get", "/v1/platform/info", "none"],
  ["get", "/v1/projects", "dev"],
  ["post", "/v1/projects", "dev"],
  ["post", "/v1/projects/{projectId}/restore", "dev"],
  ["get", "/v1/projects/{projectId}", "dev"],
  ["patch", "/v1/projects/{projectId}", "dev"],
  ["delete", "/v1/projects/{projectId}", "dev"],
  ["delete", "/v1/projects/{projectId}/keys/{keyId}", "dev"],
  ["post", "/v1/projects/{projectId}/environments/{env}/keys", "dev"],
  ["get", "/v1/projects/{projectId}/environments/{env}/overview", "dev"],
  ["get", "/v1/projects/{projectId}/environments/{env}/players", "dev"],
  ["get", "/v1/projects/{projectId}/environments/{env}/players/{playerId}", "dev"],
  ["get", "/v1/projects/{projectId}/environments/{env}/realtime", "dev"],
  ["get", "/v1/projects/{projectId}/environments/{env}/realtime/rooms/{roomId}", "dev"],
  ["get", "/v1/projects/{projectId}/environments/{env}/realtime/calls", "dev"],
  ["get", "/v1/projects/{projectId}/environments/{env}/realtime/runners", "dev"],
  ["get", "/healthz", "none"],
  ["get", "/readyz", "none"],
  ["get", "/.well-known/jwks.json", "none"]
] as const satisfies ReadonlyArray<readonly [string, string, keyof typeof callers]>

const documented = entriesOf(at(document, "paths")).flatMap(([path, methods]) =>
  entriesOf(methods).map(([method, operation]) => ({ method, path, operation }))
)

describe("rpc/openapi.json", () => {
  it("commits the OpenAPI document that the definitions generate (otherwise: npm run generate)", () => {
    assert.strictEqual(committed, openapiText())
  })

  it("lists each endpoint in rpc/openapi.json with method, path and kind of caller, and no other", () => {
    const found = documented.map(({ method, operation, path }) => {
      const schemes = entriesOf(at(operation, "security")).flatMap(([, it]) =>
        Object.keys(Object(it))
      )
      return `${method} ${path} ${schemes.toSorted().join("+")}`
    })
    const expected = endpoints.map(([method, path, caller]) =>
      [method, path, callers[caller].join("+")].join(" ")
    )
    assert.sameMembers(found, expected)
  })

  it("summarizes each endpoint, and gives every error response the same shape", () => {
    for (const { operation, path } of documented) {
      assert.isString(at(operation, "summary"), path)
      for (const [status, response] of entriesOf(at(operation, "responses"))) {
        if (Number(status) < 400 || path === "/readyz") continue
        const schema = at(response, "content", "application/json", "schema")
        const either = entriesOf(at(schema, "anyOf")).map(([, one]) => at(one, "$ref"))
        for (const ref of either.length === 0 ? [at(schema, "$ref")] : either) {
          const name = String(ref).replace("#/components/schemas/", "")
          const error = at(document, "components", "schemas", name)
          assert.deepStrictEqual(at(error, "required"), ["error"], `${path} ${status} ${name}`)
        }
      }
    }
  })

  it("names the schema of every response with fields, each name once", () => {
    const unnamed = documented.flatMap(({ method, operation, path }) =>
      entriesOf(at(operation, "responses")).flatMap(([, response]) => {
        const schema = at(response, "content", "application/json", "schema")
        return at(schema, "properties") === undefined ? [] : [`${method} ${path}`]
      })
    )
    assert.deepStrictEqual(unnamed, [])
    // A second schema with the same identifier would get a number.
    const names = Object.keys(Object(at(document, "components", "schemas")))
    assert.deepStrictEqual(
      names.filter((name) => /\d$/.test(name)),
      []
    )
    assert.includeMembers(names, [
      "Session",
      "Player",
      "SaveItem",
      "AuditEntry",
      "SavesWriteRequest"
    ])
  })

  it("describes every tag and lists it in exactly one section", () => {
    const tags = entriesOf(at(document, "tags")).map(([, tag]) => tag)
    for (const tag of tags) assert.isString(at(tag, "description"), String(at(tag, "name")))
    const sections = entriesOf(at(document, "x-tagGroups")).flatMap(([, section]) =>
      entriesOf(at(section, "tags")).map(([, name]) => name)
    )
    assert.sameMembers(
      sections,
      tags.map((tag) => at(tag, "name"))
    )
  })

  it("closes the objects of requests, and leaves those of responses open", () => {
    const closed = '"additionalProperties":false'
    for (const { operation, path } of documented) {
      assert.notInclude(JSON.stringify(at(operation, "responses")), closed, path)
    }
    const schemas = entriesOf(at(document, "components", "schemas"))
    const [bodies, others] = [true, false].map((isBody) =>
      schemas.filter(([name]) => name.endsWith("Request") === isBody)
    )
    for (const [name, schema] of others ?? []) {
      assert.notInclude(JSON.stringify(schema), closed, name)
    }
    assert.isNotEmpty(bodies)
    for (const [name, schema] of bodies ?? []) {
      assert.include(JSON.stringify(schema), closed, name)
    }
  })

  it("refers only to schemas that it defines", () => {
    const names = new Set(Object.keys(Object(at(document, "components", "schemas"))))
    const refs = Array.from(
      committed.matchAll(/"#\/components\/schemas\/([^"]+)"/g),
      ([, name]) => name
    )
    assert.isNotEmpty(refs)
    for (const name of refs) assert.isTrue(names.has(name ?? ""), name)
  })
})
