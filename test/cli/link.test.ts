/** Target and key of `svc`: link, login, logout, environment variables, and the errors of each. */
import { mkdir, stat } from "node:fs/promises"
import { join } from "node:path"
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { at, request } from "#testing/players"
import { freePort } from "#testing/runners"
import { fakeService } from "../support/cli/fake-service.ts"
import { makeFolder } from "../support/cli/svc.ts"
import {
  addressOfNode,
  configure,
  makeTenants,
  nodeWith,
  SharedDatabase
} from "../support/http-stack.ts"

const Node = nodeWith().pipe(Layer.provideMerge(SharedDatabase.layer))

const json = (text: string): unknown => JSON.parse(text)

layer(Node)("svc link and login", (it) => {
  it.effect("links a folder, stores its key outside of it, and deletes the key", () =>
    Effect.gen(function* () {
      const url = yield* addressOfNode
      const { development } = yield* makeTenants
      yield* configure(development, { audience: "kids" })
      const folder = yield* makeFolder()
      const linked = yield* folder.svc(`link ${url}/ --project duel`)
      assert.strictEqual(linked.code, 0)
      assert.deepStrictEqual(json(yield* folder.read("svc.link.json")), { url, project: "duel" })

      const before = yield* folder.svc("config pull -")
      assert.strictEqual(before.code, 3)
      assert.match(before.stderr, /svc login --env development/)
      const login = yield* folder.svc("login --key -", { stdin: `${development.secretKey}\n` })
      assert.strictEqual(login.code, 0)
      assert.notInclude(login.stdout + login.stderr, development.secretKey)
      assert.include(yield* folder.read("user/credentials.json"), development.secretKey)
      const { mode } = yield* Effect.promise(() =>
        stat(join(folder.path, "user", "credentials.json"))
      )
      assert.strictEqual(mode & 0o777, 0o600)

      const pulled = yield* folder.svc("config pull -")
      assert.deepStrictEqual(json(pulled.stdout), { audience: "kids" })
      yield* folder.svc("logout")
      assert.notInclude(yield* folder.read("user/credentials.json"), development.secretKey)
      assert.strictEqual((yield* folder.svc("config pull -")).code, 3)
    })
  )

  it.effect(
    "stores one key for each environment, and refuses the key of the other one",
    () =>
      Effect.gen(function* () {
        const url = yield* addressOfNode
        const { development, production } = yield* makeTenants
        yield* configure(production, { audience: "kids" })
        const folder = yield* makeFolder()
        yield* folder.write("svc.link.json", { url, project: "duel" })
        yield* folder.svc("login --key -", { stdin: development.secretKey })
        const same = yield* folder.svc("login --env production --key -", {
          stdin: development.secretKey
        })
        assert.strictEqual(same.code, 3)
        assert.match(same.stderr, /opens development of test, not production/)
        yield* folder.svc("login --env production --key -", { stdin: production.secretKey })
        const other = yield* folder.svc("config pull - --env production")
        assert.deepStrictEqual(json(other.stdout), { audience: "kids" })
      }),
    { tags: "long" }
  )

  it.effect(
    "refuses keys that the service refuses, publishable keys and keys on the command line",
    () =>
      Effect.gen(function* () {
        const url = yield* addressOfNode
        const { development } = yield* makeTenants
        const folder = yield* makeFolder()
        yield* folder.svc(`link ${url}`)
        const unknown = yield* folder.svc("login --key -", { stdin: "sk_nobody" })
        assert.strictEqual(unknown.code, 3)
        assert.match(unknown.stderr, /invalid_key[^]*The key came from svc login/)
        const publishable = yield* folder.svc("login --key -", {
          stdin: development.publishableKey
        })
        assert.strictEqual(publishable.code, 2)
        const shown = yield* folder.svc(`login --key ${development.secretKey}`)
        assert.strictEqual(shown.code, 2)
        assert.match(shown.stderr, /standard input/)
        const asked = yield* folder.svc("login")
        assert.strictEqual(asked.code, 2)
        assert.match(asked.stderr, /no terminal/)
        assert.strictEqual((yield* folder.svc("config pull -")).code, 3)
      }),
    { tags: "long" }
  )

  it.effect("refuses at login and at every command a key of another environment or project", () =>
    Effect.gen(function* () {
      const url = yield* addressOfNode
      const { development, production } = yield* makeTenants
      const foreign = yield* makeTenants
      const folder = yield* makeFolder()
      yield* folder.write("svc.link.json", { url, project: "duel" })
      const swapped = yield* folder.svc("login --env development --key -", {
        stdin: production.secretKey
      })
      assert.strictEqual(swapped.code, 3)
      assert.match(swapped.stderr, /opens production of test, not development/)
      assert.strictEqual((yield* folder.svc("config pull -")).code, 3)

      yield* folder.svc("login --key -", { stdin: development.secretKey })
      const other = yield* folder.svc("login --env production --key -", {
        stdin: foreign.production.secretKey
      })
      assert.strictEqual(other.code, 3)
      assert.match(other.stderr, /development that is stored for duel opens/)

      const stored = { duel: { development: { secretKey: production.secretKey } } }
      yield* folder.write("user/credentials.json", { services: { [url]: { projects: stored } } })
      for (const command of ["config pull -", "features", "deploy .", "mcp", "functions logs"]) {
        const refused = yield* folder.svc(command)
        assert.strictEqual(refused.code, 3, command)
        assert.match(refused.stderr, /opens production of test, not development/, command)
      }
    })
  )

  it.effect("takes the environment from SVC_SECRET_KEY, and refuses another one in --env", () =>
    Effect.gen(function* () {
      const url = yield* addressOfNode
      const { production } = yield* makeTenants
      const ci = yield* makeFolder({ SVC_URL: url, SVC_SECRET_KEY: production.secretKey })
      const switched = yield* ci.svc("feature on saves --json")
      assert.strictEqual(at(json(switched.stdout), "environment"), "production")
      const refused = yield* ci.svc("feature off saves --env development")
      assert.strictEqual(refused.code, 3)
      assert.match(refused.stderr, /SVC_SECRET_KEY opens production of test, not development/)
      const publishable = yield* ci.svc("features", {
        env: { SVC_SECRET_KEY: production.publishableKey }
      })
      assert.strictEqual(publishable.code, 3)
      assert.match(publishable.stderr, /is publishable, not secret/)
    })
  )

  it.effect("pulls a config without svc link by SVC_SECRET_KEY, or from a local service", () =>
    Effect.gen(function* () {
      const url = yield* addressOfNode
      const { development, production, projectId } = yield* makeTenants
      yield* configure(development, { audience: "mixed" })
      const ci = yield* makeFolder({ SVC_URL: url, SVC_SECRET_KEY: development.secretKey })
      const read = yield* ci.svc("config pull -")
      assert.deepStrictEqual(json(read.stdout), { audience: "mixed" })
      // A link never chooses the address for a key from SVC_SECRET_KEY.
      yield* ci.write("svc.link.json", { url, project: "duel" })
      assert.strictEqual((yield* ci.svc("config pull -", { env: { SVC_URL: "" } })).code, 2)
      const local = yield* makeFolder({ SVC_DATA_DIR: "user" })
      yield* Effect.promise(() => mkdir(join(local.path, "user")))
      const keys = { baseUrl: url, project: projectId, development, production }
      yield* local.write("user/dev-keys.json", keys)
      const found = yield* local.svc("config pull -", { cwd: "user" })
      assert.deepStrictEqual(json(found.stdout), { audience: "mixed" })
    })
  )

  it.effect(
    "lists features in a table, and as JSON",
    () =>
      Effect.gen(function* () {
        const url = yield* addressOfNode
        const { development } = yield* makeTenants
        yield* configure(development, { features: { saves: true } })
        const folder = yield* makeFolder({ SVC_URL: url, SVC_SECRET_KEY: development.secretKey })
        const text = yield* folder.svc("features --env development")
        assert.deepStrictEqual([text.code, text.stderr], [0, ""])
        const rows = text.stdout.split("\n").map((line) => line.trim().split(/ {2,}/))
        const rowOf = (key: string) => rows.find(([first]) => first === key)
        assert.deepStrictEqual(rows[0], ["FEATURE", "STATE", "SWITCH", "TITLE"])
        assert.deepStrictEqual(rowOf("saves"), ["saves", "on", "features.saves", "Cloud saves"])
        assert.deepStrictEqual(rowOf("stats"), ["stats", "off", "features.stats", "Stats"])
        const functions = ["functions", "off", "functions/enable", "Functions"]
        assert.deepStrictEqual(rowOf("functions"), functions)
        const machine = yield* folder.svc("features --json")
        const answer = yield* request(`${url}/v1/admin/features`, {
          headers: { "x-svc-key": development.secretKey }
        })
        assert.deepStrictEqual(at(json(machine.stdout), "features"), at(answer.body, "features"))
      }),
    { tags: "long" }
  )
})

describe("svc", () => {
  it.effect("hints at svc link in a folder without a link", () =>
    Effect.gen(function* () {
      const folder = yield* makeFolder()
      const run = yield* folder.svc("features")
      assert.deepStrictEqual([run.code, run.stdout], [2, ""])
      assert.match(run.stderr, /svc link/)
      const machine = yield* folder.svc("features --json")
      assert.strictEqual(at(json(machine.stderr), "error", "code"), "usage")
    })
  )

  it.effect(
    "exits with 4 for a redirect, a foreign server and an unreachable service",
    () =>
      Effect.gen(function* () {
        const elsewhere = yield* fakeService({
          "GET /v1/config": { status: 302, headers: { location: "http://127.0.0.1:1/stolen" } },
          "GET /v1/admin/features": { body: "hello" }
        })
        const there = yield* makeFolder({ SVC_URL: elsewhere.url, SVC_SECRET_KEY: "sk_1" })
        const redirected = yield* there.svc("config pull -")
        assert.strictEqual(redirected.code, 4)
        assert.match(redirected.stderr, /redirects to/)
        assert.strictEqual((yield* there.svc("features")).code, 4)
        assert.strictEqual((yield* there.svc("link")).code, 4)
        const nobody = yield* makeFolder({
          SVC_URL: `http://127.0.0.1:${yield* freePort}`,
          SVC_SECRET_KEY: "sk_1"
        })
        const refused = yield* nobody.svc("config pull -")
        assert.strictEqual(refused.code, 4)
        assert.match(refused.stderr, /no service listens at this address/)
        const wrong = yield* nobody.svc("config pull -", { env: { SVC_URL: "play.example.com" } })
        assert.strictEqual(wrong.code, 2)
      }),
    { tags: "long" }
  )

  it.effect(
    "exits with 2 for an invalid command line, with the usage on standard error",
    () =>
      Effect.gen(function* () {
        const folder = yield* makeFolder()
        for (const args of ["config psh", "config push --env prod", "features --frobnicate"]) {
          const run = yield* folder.svc(args)
          assert.deepStrictEqual([run.code, run.stdout], [2, ""], args)
          assert.match(run.stderr, /--help/)
        }
        const help = yield* folder.svc("--help")
        assert.strictEqual(help.code, 0)
        assert.match(help.stdout, /EXIT CODES/)
        assert.match((yield* folder.svc("--completions bash")).stdout, /svc/)
      }),
    { tags: "long" }
  )

  it.effect("starts the Node of the package under a Node without TypeScript support", () =>
    Effect.gen(function* () {
      const folder = yield* makeFolder()
      const old = yield* folder.svc("--version", { node: ["--no-experimental-strip-types"] })
      assert.match(old.stdout, /^svc v\d+\.\d+\.\d+\n$/)
      const failed = yield* folder.svc("config validate", {
        node: ["--no-experimental-strip-types"]
      })
      assert.strictEqual(failed.code, 2)
    })
  )
})
