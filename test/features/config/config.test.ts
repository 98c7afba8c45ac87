/** Pushing and reading the config of an environment over HTTP. */
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber, Layer, Stream } from "effect"
import { SqlClient } from "effect/sql"
import { Configs } from "#server/features/config/service"
import { at, request } from "#testing/players"
import {
  buildAnother,
  addressOfNode,
  configure,
  makeTenants,
  nodeWith,
  SharedDatabase,
  type Tenant
} from "../../support/http-stack.ts"

const Node = nodeWith({ SVC_FEATURES: "multiplayer,saves,stats" }).pipe(
  Layer.provideMerge(SharedDatabase.layer)
)

/** `GET` and `PUT /v1/config` of a fresh environment. */
const newEnvironment = Effect.gen(function* () {
  const url = `${yield* addressOfNode}/v1/config`
  const { development: tenant } = yield* makeTenants
  const secret = { "x-svc-key": tenant.secretKey }
  return {
    tenant,
    ask: (path: string) => request(`${url}${path}`, { headers: secret }),
    pull: request(url, { headers: secret }),
    push: (body: unknown, headers: Readonly<Record<string, string>> = {}) =>
      request(url, { method: "PUT", headers: { ...secret, ...headers }, body })
  }
})

const versionsOf = Effect.fnUntraced(function* (tenant: Tenant) {
  const sql = yield* SqlClient.SqlClient
  return yield* sql`
    select version, pushed_by from configs where environment_id = ${tenant.environmentId}
    order by version`
})

layer(Node)("config", (it) => {
  it.effect("starts with the empty config as version 0", () =>
    Effect.gen(function* () {
      const { pull } = yield* newEnvironment
      const answer = yield* pull
      assert.strictEqual(answer.status, 200)
      assert.deepStrictEqual(answer.body, {})
      assert.strictEqual(answer.headers.get("etag"), '"0"')
    })
  )

  it.effect("returns the pushed document unchanged, with its version as the ETag", () =>
    Effect.gen(function* () {
      const { pull, push, tenant } = yield* newEnvironment
      const document = {
        $schema: "https://example.com/config.schema.json",
        version: 1,
        multiplayer: { modes: [{ key: "duel", maxPlayers: 2 }] },
        features: { saves: true }
      }
      const pushed = yield* push(document)
      assert.strictEqual(pushed.status, 200)
      assert.strictEqual(at(pushed.body, "configVersion"), 1)
      assert.include(at(pushed.body, "changed"), "features.saves")
      const pulled = yield* pull
      // The key order is preserved too.
      assert.strictEqual(JSON.stringify(pulled.body), JSON.stringify(document))
      assert.strictEqual(pulled.headers.get("etag"), '"1"')
      const again = yield* push(document)
      assert.deepStrictEqual(again.body, { configVersion: 1, changed: [], warnings: [] })
      const versions = yield* versionsOf(tenant)
      assert.strictEqual(versions.length, 1)
      assert.match(String(at(versions, 0, "pushedBy")), /^key_/)
    })
  )

  it.effect(
    "takes a webhook of http://localhost in development, and refuses it in production",
    () =>
      Effect.gen(function* () {
        const url = `${yield* addressOfNode}/v1/config`
        const tenants = yield* makeTenants
        const body = { integrity: { stats: { webhook: { url: "http://localhost:9000/verify" } } } }
        const push = ({ secretKey }: Tenant) =>
          request(url, { method: "PUT", headers: { "x-svc-key": secretKey }, body })
        const development = yield* push(tenants.development)
        assert.strictEqual(development.status, 200)
        assert.strictEqual(
          at(development.body, "warnings", 0, "path"),
          "integrity.stats.webhook.url"
        )
        const production = yield* push(tenants.production)
        assert.strictEqual(production.status, 400)
        assert.deepStrictEqual(at(production.body, "error", "details", "issues"), [
          {
            path: "integrity.stats.webhook.url",
            message:
              "must be an https URL in production: http://localhost works in development only"
          }
        ])
      })
  )

  it.effect("keeps a stored document in force that a later rule refuses", () =>
    Effect.gen(function* () {
      const url = yield* addressOfNode
      const sql = yield* SqlClient.SqlClient
      const { production: tenant } = yield* makeTenants
      const document = {
        features: { saves: true, statsVerification: true },
        multiplayer: { modes: [{ key: "a", minPlayers: 4, maxPlayers: 2 }, { key: "a" }] },
        share: { tags: { title: "Game" } },
        integrity: { stats: { webhook: { url: "http://localhost:9000" } } }
      }
      yield* sql`
        insert into configs (environment_id, version, document, pushed_by, created_at)
        values (${tenant.environmentId}, 1, ${JSON.stringify(document)}, 'test', now())`
      const secret = { "x-svc-key": tenant.secretKey }
      const pulled = yield* request(`${url}/v1/config`, { headers: secret })
      assert.deepStrictEqual(pulled.body, document)
      const headers = { "x-svc-key": tenant.publishableKey }
      const definitions = yield* request(`${url}/v1/gamedata/definitions`, { headers })
      assert.strictEqual(at(definitions.body, "features", "saves"), true)
      const again = yield* request(`${url}/v1/config`, {
        method: "PUT",
        headers: secret,
        body: document
      })
      assert.strictEqual(at(again.body, "error", "code"), "invalid_config")
    })
  )

  it.effect("names features that are not offered beside the other issues", () =>
    Effect.gen(function* () {
      const { push } = yield* newEnvironment
      const { body } = yield* push({ features: { hosting: true, vioce: true } })
      assert.deepStrictEqual(at(body, "error", "details", "issues"), [
        { path: "features.vioce", message: 'unknown feature; did you mean "voice"?' },
        {
          path: "features.hosting",
          message: "is not offered by this deployment: remove it, or set it to false"
        }
      ])
    })
  )

  it.effect("keeps every version with its author and time", () =>
    Effect.gen(function* () {
      const { ask, push } = yield* newEnvironment
      const documents = [{ audience: "kids" }, {}, { audience: "mixed" }]
      for (const document of documents) yield* push(document)
      const all = yield* ask("/versions")
      assert.deepStrictEqual(
        Array.from(Object(at(all.body, "versions")), (version) => at(version, "configVersion")),
        [3, 2, 1]
      )
      assert.match(String(at(all.body, "versions", 0, "pushedBy")), /^key_/)
      assert.strictEqual(at(all.body, "versions", 0, "createdAt"), "1970-01-01T00:00:00.000Z")
      assert.isNull(at(all.body, "nextCursor"))
      const first = yield* ask("/versions?limit=2")
      const rest = yield* ask(`/versions?limit=2&cursor=${at(first.body, "nextCursor")}`)
      assert.deepStrictEqual(at(rest.body, "versions", 0, "configVersion"), 1)
      for (const [index, document] of documents.entries()) {
        assert.deepStrictEqual((yield* ask(`/versions/${index + 1}`)).body, document)
      }
      assert.strictEqual((yield* ask("/versions/4")).status, 404)
      assert.strictEqual((yield* ask("/versions/x")).status, 400)
      const { ask: others } = yield* newEnvironment
      assert.strictEqual((yield* others("/versions/1")).status, 404)
      assert.deepStrictEqual((yield* others("/versions")).body, { versions: [], nextCursor: null })
    })
  )

  it.effect("rejects a document that is nested too deeply", () =>
    Effect.gen(function* () {
      const { push } = yield* newEnvironment
      for (const depth of [33, 5000, 100_000]) {
        for (const [open, close] of [
          ["[", "]"],
          ['{"features":', "}"]
        ] as const) {
          const answer = yield* push(`${open.repeat(depth)}1${close.repeat(depth)}`)
          assert.strictEqual(answer.status, 400)
          assert.strictEqual(at(answer.body, "error", "code"), "invalid_request")
        }
      }
      assert.strictEqual((yield* push('{"features":1e999}')).status, 400)
    })
  )

  it.effect("returns changed paths, and warnings for settings without effect", () =>
    Effect.gen(function* () {
      const { push } = yield* newEnvironment
      yield* push({ features: { saves: true, stats: true } })
      const answer = yield* push({
        features: { saves: false, stats: true },
        share: { tags: { enabled: true } }
      })
      assert.deepStrictEqual(at(answer.body, "changed"), ["features.saves", "share.tags.enabled"])
      assert.strictEqual(at(answer.body, "warnings", 0, "path"), "share.tags.enabled")
    })
  )

  it.effect("stores nothing and reports all issues of an invalid document", () =>
    Effect.gen(function* () {
      const { pull, push, tenant } = yield* newEnvironment
      yield* push({ features: { saves: true } })
      const answer = yield* push({
        features: { saves: false, tortoise: true },
        multiplayer: { modes: [{ key: "duel", minPlayers: 9, maxPlayers: 2 }] }
      })
      assert.strictEqual(answer.status, 400)
      assert.strictEqual(at(answer.body, "error", "code"), "invalid_config")
      assert.match(String(at(answer.body, "error", "message")), /features\.tortoise: .*; /)
      assert.lengthOf(Object(at(answer.body, "error", "details", "issues")), 2)
      assert.deepStrictEqual((yield* pull).body, { features: { saves: true } })
      assert.lengthOf(yield* versionsOf(tenant), 1)
    })
  )

  it.effect("rejects a push whose If-Match names another version", () =>
    Effect.gen(function* () {
      const { push } = yield* newEnvironment
      yield* push({ features: { saves: true } })
      const stale = yield* push({}, { "if-match": '"0"' })
      assert.strictEqual(stale.status, 412)
      assert.strictEqual(at(stale.body, "error", "code"), "config_conflict")
      assert.deepStrictEqual(at(stale.body, "error", "details"), { currentVersion: 1 })
      for (const [tag, version] of [
        ['"1"', 2],
        ['W/"7", "2"', 3],
        ["*", 4]
      ] as const) {
        const answer = yield* push({ features: { saves: version % 2 === 1 } }, { "if-match": tag })
        assert.strictEqual(at(answer.body, "configVersion"), version)
      }
      assert.strictEqual((yield* push({}, { "if-match": "4" })).status, 412)
    })
  )

  it.effect("stores concurrent pushes as separate versions", () =>
    Effect.gen(function* () {
      const { push, tenant } = yield* newEnvironment
      const answers = yield* Effect.forEach(
        Array.from({ length: 20 }, (_, index) => index),
        (index) => push({ integrity: { stats: { maxSubmitsPerMinute: index + 1 } } }),
        { concurrency: "unbounded" }
      )
      const versions = answers.map(({ body }) => Number(at(body, "configVersion")))
      assert.deepStrictEqual(
        versions.toSorted((a, b) => a - b),
        Array.from({ length: 20 }, (_, index) => index + 1)
      )
      assert.lengthOf(yield* versionsOf(tenant), 20)
      const races = yield* Effect.forEach(
        Array.from({ length: 10 }),
        (_, index) =>
          push(
            { integrity: { stats: { maxSubmitsPerMinute: 100 + index } } },
            { "if-match": '"20"' }
          ),
        { concurrency: "unbounded" }
      )
      assert.lengthOf(
        races.filter(({ status }) => status === 200),
        1
      )
    })
  )

  it.effect("rejects a feature that the deployment does not offer", () =>
    Effect.gen(function* () {
      const { push, tenant } = yield* newEnvironment
      const answer = yield* push({ features: { hosting: true, emailLogin: true, saves: true } })
      assert.strictEqual(answer.status, 403)
      assert.strictEqual(at(answer.body, "error", "code"), "feature_unavailable")
      assert.sameMembers(Object(at(answer.body, "error", "details", "features")), [
        "emailLogin",
        "hosting"
      ])
      assert.strictEqual((yield* push({ features: { hosting: false } })).status, 200)
      assert.lengthOf(yield* versionsOf(tenant), 1)
    })
  )

  it.effect("limits a document to 256 KiB", () =>
    Effect.gen(function* () {
      const { push } = yield* newEnvironment
      const answer = yield* push({ $schema: "x".repeat(256 * 1024) })
      assert.strictEqual(answer.status, 413)
      assert.deepStrictEqual(at(answer.body, "error", "details"), { limit: 262_144 })
    })
  )

  it.effect("requires a secret key to read a config", () =>
    Effect.gen(function* () {
      const url = `${yield* addressOfNode}/v1/config`
      const { development } = yield* makeTenants
      const publishable = { "x-svc-key": development.publishableKey }
      const answer = yield* request(url, { headers: publishable })
      assert.strictEqual(answer.status, 401)
      assert.strictEqual(at(answer.body, "error", "code"), "invalid_key")
      assert.strictEqual((yield* request(url)).status, 401)
    })
  )

  it.effect("applies a pushed config on all nodes, and notifies their subscribers", () =>
    Effect.gen(function* () {
      const { development: tenant } = yield* makeTenants
      const { environmentId } = tenant
      const other = yield* buildAnother(nodeWith())
      const onOther = <A, E>(effect: Effect.Effect<A, E, Configs>) =>
        Effect.provideContext(effect, other)
      const there = yield* onOther(Configs)
      const here = yield* Configs
      assert.strictEqual((yield* there.current(environmentId)).version, 0)
      const awaitChange = (configs: Configs["Service"]) =>
        configs.changes.pipe(
          Stream.filter((changed) => changed === environmentId),
          Stream.runHead,
          Effect.forkChild({ startImmediately: true })
        )
      const notifications = [yield* awaitChange(here), yield* awaitChange(there)]
      yield* configure(tenant, { features: { saves: true } })
      assert.isTrue((yield* here.current(environmentId)).config.features.saves)
      yield* Fiber.joinAll(notifications)
      assert.strictEqual((yield* there.current(environmentId)).version, 1)
    })
  )
})
