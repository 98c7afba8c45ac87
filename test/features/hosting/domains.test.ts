/** Custom domains: proof by DNS, on every runner, and for nobody else. */
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Fiber, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { at, configure, request } from "#testing/players"
import { call, deploy, visit } from "../../support/hosting.ts"
import {
  addressOfNode,
  buildAnother,
  makeDeveloper,
  makeTenants,
  makeTenantsOf,
  nodeWith,
  SharedDatabase
} from "../../support/http-stack.ts"
import { textRecordServer } from "../../support/name-server.ts"
import { dataFolder } from "../../support/data-folder.ts"

interface Machine {
  readonly folder: string
  readonly nameServer: string
  readonly records: Map<string, ReadonlyArray<string> | undefined>
}

/** The folder of the blobs and the name server, which all runners share. */
const Shared = Context.Service<Machine>("test/features/hosting/domains/Shared")

const SharedLive = Layer.effect(
  Shared,
  Effect.gen(function* () {
    const folder = yield* dataFolder("svc-domains-")
    const records = new Map<string, ReadonlyArray<string> | undefined>()
    return { folder, records, nameServer: (yield* textRecordServer(records)).at }
  })
)

const runner = ({ folder, nameServer }: Machine) =>
  nodeWith({
    SVC_DATA_DIR: folder,
    SVC_BASE_URL: "https://api.example.net",
    SVC_HOSTING_DOMAIN: "apps.example.net",
    SVC_NAME_SERVERS: nameServer,
    SVC_THROTTLES: "off"
  })

const Node = Layer.unwrap(Effect.map(Shared, runner)).pipe(
  Layer.provideMerge(SharedDatabase.layer),
  Layer.provideMerge(SharedLive)
)

/** Starts another runner; returns its base URL. */
const another = Effect.gen(function* () {
  const node = yield* buildAnother(runner(yield* Shared))
  return yield* Effect.provideContext(addressOfNode, node)
})

const setUp = Effect.gen(function* () {
  const url = yield* addressOfNode
  const { records } = yield* Shared
  const { development, production } = yield* makeTenants
  const live = { url, ...production }
  const preview = { url, ...development }
  yield* configure(live, { features: { hosting: true } })
  yield* configure(preview, { features: { hosting: true } })
  yield* deploy(live, { "index.html": "<p>Live" })
  yield* deploy(preview, { "index.html": "<p>Preview" })
  const domain = `play-${crypto.randomUUID().slice(0, 8)}.example.com`
  return { url, records, live, preview, domain }
})

type Target = Effect.Success<typeof setUp>["live"]

const add = (target: Target, domain: string) => call(target, "POST", "hosting/domains", { domain })
const verify = (target: Target, domain: string) =>
  call(target, "POST", `hosting/domains/${domain}/verify`)

/** What the audit log says of a domain, in any order: the clock of a test stands still. */
const actionsOn = (domain: string) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.map(sql`select action from audit where target_id = ${domain} `, (rows) =>
      rows.map((row) => row["action"])
    )
  )

/** Adds a domain, publishes its record and verifies it. */
const prove = Effect.fnUntraced(function* (target: Target, domain: string) {
  const { body } = yield* add(target, domain)
  const { records } = yield* Shared
  const name = String(at(body, "record", "name"))
  records.set(name, [...(records.get(name) ?? []), String(at(body, "record", "value"))])
  return yield* verify(target, domain)
})

layer(Node, { timeout: "60 seconds" })("a custom domain", (it) => {
  it.effect("serves a custom domain on every runner once its TXT record is there", () =>
    Effect.gen(function* () {
      const { domain, live, records, url } = yield* setUp
      const other = yield* another
      const added = yield* add(live, domain)
      assert.strictEqual(added.status, 200, JSON.stringify(added.body))
      assert.strictEqual(at(added.body, "status"), "pending")
      const record = {
        name: String(at(added.body, "record", "name")),
        value: String(at(added.body, "record", "value"))
      }
      assert.strictEqual(record.name, `_svc.${domain}`)
      assert.deepStrictEqual(yield* add(live, domain), added)

      const early = yield* verify(live, domain)
      assert.strictEqual(early.status, 409)
      assert.strictEqual(at(early.body, "error", "code"), "domain_not_verified")
      records.set(record.name, ["v=spf1 -all"])
      const wrong = yield* verify(live, domain)
      assert.deepStrictEqual(at(wrong.body, "error", "details"), {
        ...record,
        found: ["v=spf1 -all"]
      })
      assert.notInclude((yield* visit(url, domain, "/")).body.toString(), "Live")

      records.set(record.name, ["v=spf1 -all", record.value])
      const verified = yield* verify(live, domain)
      assert.strictEqual(verified.status, 200, JSON.stringify(verified.body))
      assert.strictEqual(at(verified.body, "url"), `https://${domain}/`)
      for (const base of [url, other]) {
        const page = yield* visit(base, domain, "/")
        assert.deepStrictEqual([page.status, page.body.toString()], [200, "<p>Live"])
        // The API never answers under the host of an app.
        assert.strictEqual((yield* visit(base, domain, "/v1/config")).status, 404)
        assert.strictEqual((yield* visit(base, domain, "/healthz")).status, 404)
      }
      yield* deploy(live, { "index.html": "<p>Second" })
      for (const base of [url, other]) {
        assert.strictEqual((yield* visit(base, domain, "/")).body.toString(), "<p>Second")
      }

      const removed = yield* call(live, "DELETE", `hosting/domains/${domain}`)
      assert.deepStrictEqual(removed.body, { deleted: true })
      for (const base of [url, other]) {
        assert.notInclude((yield* visit(base, domain, "/")).body.toString(), "Second")
      }
      const again = yield* call(live, "DELETE", `hosting/domains/${domain}`)
      assert.strictEqual(again.status, 404)
      assert.sameMembers(yield* actionsOn(domain), ["domain.add", "domain.verify", "domain.remove"])
    })
  )

  it.effect("gives a custom domain to the environment that proved it last", () =>
    Effect.gen(function* () {
      const { domain, live, preview, url } = yield* setUp
      const other = yield* another
      yield* prove(live, domain)
      // A claim without a proof changes nothing, and reveals nothing of the other environment.
      const claimed = yield* add(preview, domain)
      assert.strictEqual(at(claimed.body, "status"), "pending")
      assert.strictEqual((yield* verify(preview, domain)).status, 409)
      assert.strictEqual((yield* visit(url, domain, "/")).body.toString(), "<p>Live")

      assert.strictEqual((yield* prove(preview, domain)).status, 200)
      for (const base of [url, other]) {
        assert.strictEqual((yield* visit(base, domain, "/")).body.toString(), "<p>Preview")
      }
      const lost = yield* call(live, "GET", "hosting/domains")
      assert.strictEqual(at(lost.body, "domains", 0, "status"), "pending")
      assert.include(yield* actionsOn(domain), "domain.lose")
    })
  )

  it.effect("gives a custom domain to only one of two environments that prove it at once", () =>
    Effect.gen(function* () {
      const { domain, live, preview, records } = yield* setUp
      const sql = yield* SqlClient.SqlClient
      yield* add(live, domain)
      const claimed = yield* add(preview, domain)
      records.set(`_svc.${domain}`, [String(at(claimed.body, "record", "value"))])
      const isAwaited = sql`
        select from pg_locks
        where not granted and pg_backend_pid() = any (pg_blocking_pids(pid))`
      // The first environment has proved the domain, and its transaction has not ended.
      const second = yield* sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`
            update hosted_domains set verified_at = now()
            where domain = ${domain} and environment_id = ${live.environmentId}`
          const fiber = yield* Effect.forkDetach(verify(preview, domain))
          yield* Effect.repeat(isAwaited, { until: (rows) => rows.length > 0 })
          return fiber
        })
      )
      const answer = yield* Fiber.join(second)
      assert.strictEqual(answer.status, 200, JSON.stringify(answer.body))
      const lost = yield* call(live, "GET", "hosting/domains")
      assert.strictEqual(at(lost.body, "domains", 0, "status"), "pending")
    })
  )

  it.effect("serves a custom domain again when its deleted project is restored", () =>
    Effect.gen(function* () {
      const { domain, live, url } = yield* setUp
      const { developerId, headers } = yield* makeDeveloper
      const { production, projectId } = yield* makeTenantsOf(developerId)
      const owned = { url, ...production }
      yield* configure(owned, { features: { hosting: true } })
      yield* deploy(owned, { "index.html": "<p>Owned" })
      yield* prove(owned, domain)
      const shown = Effect.map(visit(url, domain, "/"), ({ body }) => body.toString())
      assert.strictEqual(yield* shown, "<p>Owned")
      const project = `${url}/v1/projects/${projectId}`
      yield* request(project, { method: "DELETE", headers })
      yield* Effect.repeat(shown, { until: (page) => !page.includes("Owned") })
      // Every change makes the runners read all domains again.
      yield* prove(live, `other.${domain}`)
      yield* request(`${project}/restore`, { method: "POST", headers })
      yield* Effect.repeat(shown, { until: (page) => page === "<p>Owned" })
    })
  )

  it.effect("accepts a custom domain as an origin of its own environment only", () =>
    Effect.gen(function* () {
      const { domain, live, preview } = yield* setUp
      yield* prove(live, domain)
      const origin = `https://${domain}`
      yield* configure(live, {
        features: { hosting: true },
        web: { allowedOrigins: ["https://other.example"] }
      })
      yield* configure(preview, {
        features: { hosting: true },
        web: { allowedOrigins: ["https://other.example"] }
      })
      const signIn = (target: Target) =>
        request(`${target.url}/v1/auth/guest`, {
          method: "POST",
          headers: { "x-svc-key": target.publishableKey, origin },
          body: {}
        })
      assert.strictEqual((yield* signIn(live)).status, 200)
      const refused = yield* signIn(preview)
      assert.strictEqual(at(refused.body, "error", "code"), "origin_not_allowed")
    })
  )

  it.effect("says for which hosts a proxy may get certificates", () =>
    Effect.gen(function* () {
      const { domain, live, url } = yield* setUp
      const ask = (host: string) =>
        Effect.promise(() =>
          fetch(`${url}/-/served-host?domain=${encodeURIComponent(host)}`).then((it) => it.status)
        )
      assert.strictEqual(yield* ask(domain), 404)
      yield* prove(live, domain)
      assert.strictEqual(yield* ask(domain), 200)
      assert.strictEqual(yield* ask(domain.toUpperCase()), 200)
      const { body } = yield* call(live, "GET", "hosting")
      const preview = new URL(String(at(body, "previewUrl")).replace("{version}", "1")).hostname
      assert.strictEqual(yield* ask(preview), 200)
      assert.strictEqual(yield* ask(preview.replace(/^v1/, "v2")), 404)
      for (const host of ["nobody.apps.example.net", "api.example.net", "", "a b", "\0"]) {
        assert.strictEqual(yield* ask(host), 404, host)
      }
    })
  )

  it.effect("refuses a custom domain that is no domain, one of the service, or one too many", () =>
    Effect.gen(function* () {
      const { live } = yield* setUp
      for (const domain of [
        "localhost",
        "127.0.0.1",
        "Play.example.com",
        "play.example.com.",
        "play_.example.com",
        "*.example.com",
        "a..example.com",
        "https://play.example.com",
        `${"a".repeat(64)}.example.com`,
        "x.apps.example.net",
        "apps.example.net",
        "api.example.net"
      ]) {
        const { body, status } = yield* add(live, domain)
        assert.deepStrictEqual(
          [status, at(body, "error", "code")],
          [400, "invalid_request"],
          domain
        )
      }
      for (let i = 0; i < 10; i++) {
        assert.strictEqual((yield* add(live, `p${i}.example.com`)).status, 200)
      }
      const { body, status } = yield* add(live, "p10.example.com")
      assert.deepStrictEqual([status, at(body, "error", "code")], [409, "too_many_domains"])
      assert.deepStrictEqual(at(body, "error", "details"), { limit: 10 })
      for (const unknown of ["unknown.example.com", "a%00b", "%20"]) {
        assert.strictEqual((yield* verify(live, unknown)).status, 404, unknown)
        const gone = yield* call(live, "DELETE", `hosting/domains/${unknown}`)
        assert.strictEqual(gone.status, 404, unknown)
      }
    })
  )

  it.effect(
    "answers 503 to the proof of a custom domain while no name server answers",
    () =>
      Effect.gen(function* () {
        const { domain, live, records } = yield* setUp
        yield* add(live, domain)
        records.set(`_svc.${domain}`, undefined)
        const { body, status } = yield* verify(live, domain)
        assert.deepStrictEqual([status, at(body, "error", "code")], [503, "unavailable"])
      }),
    { tags: "long" }
  )
})
