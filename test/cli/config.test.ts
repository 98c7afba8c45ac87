/** `svc config` against a real service: pull, push, diff and validate, for people and in CI. */
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { configJsonSchemaText } from "#rpc/config-document/json-schema"
import { at, request } from "#testing/players"
import { fakeService } from "../support/cli/fake-service.ts"
import { makeFolder } from "../support/cli/svc.ts"
import {
  addressOfNode,
  configure,
  makeTenants,
  nodeWith,
  SharedDatabase
} from "../support/http-stack.ts"

const Node = nodeWith({ SVC_FEATURES: "multiplayer,saves,stats" }).pipe(
  Layer.provideMerge(SharedDatabase.layer)
)

/** A folder with a local service: the CLI finds its keys in `dev-keys.json`. */
const newProject = Effect.gen(function* () {
  const url = yield* addressOfNode
  const { development, production, projectId } = yield* makeTenants
  const folder = yield* makeFolder({ SVC_DATA_DIR: "." })
  yield* folder.write("dev-keys.json", {
    baseUrl: url,
    project: projectId,
    development,
    production
  })
  const currentConfig = (secretKey: string) =>
    Effect.map(
      request(`${url}/v1/config`, { headers: { "x-svc-key": secretKey } }),
      ({ body }) => body
    )
  return { url, development, production, folder, currentConfig }
})

const json = (text: string): unknown => JSON.parse(text)

layer(Node)("svc config", (it) => {
  it.effect("pulls the current config with its schema, and pushes it without a change", () =>
    Effect.gen(function* () {
      const { development, folder } = yield* newProject
      yield* configure(development, { version: 1, features: { saves: true } })
      const pulled = yield* folder.svc("config pull")
      assert.deepStrictEqual([pulled.code, pulled.stderr], [0, ""])
      assert.strictEqual(
        yield* folder.read("svc.config.json"),
        `${JSON.stringify(
          { $schema: "./svc.config.schema.json", version: 1, features: { saves: true } },
          null,
          2
        )}\n`
      )
      assert.strictEqual(yield* folder.read("svc.config.schema.json"), configJsonSchemaText())
      assert.strictEqual((yield* folder.svc("config diff --exit-code")).code, 0)
      const pushed = yield* folder.svc("config push --json")
      assert.strictEqual(at(json(pushed.stdout), "configVersion"), 1)
      assert.deepStrictEqual(at(json(pushed.stdout), "changed"), [])
    })
  )

  it.effect("pushes a file, lists the changed paths, and prints warnings with line numbers", () =>
    Effect.gen(function* () {
      const { development, folder, currentConfig, production } = yield* newProject
      yield* folder.write("game.json", '{\n  "share": { "tags": {\n    "enabled": true\n  } }\n}')
      const dry = yield* folder.svc("config push game.json --dry-run")
      assert.include(dry.stdout, "share.tags.enabled")
      assert.deepStrictEqual(yield* currentConfig(development.secretKey), {})
      const pushed = yield* folder.svc("config push game.json")
      assert.strictEqual(pushed.code, 0)
      assert.include(pushed.stdout, "the current version is 1")
      assert.match(pushed.stderr, /^game\.json:3:5 {2}warning {2}share\.tags\.enabled: /)
      assert.deepStrictEqual(yield* currentConfig(development.secretKey), {
        share: { tags: { enabled: true } }
      })
      assert.deepStrictEqual(yield* currentConfig(production.secretKey), {})
      const production1 = yield* folder.svc("config push game.json --env production --json")
      assert.strictEqual(at(json(production1.stdout), "warnings", 0, "line"), 3)
      assert.notDeepEqual(yield* currentConfig(production.secretKey), {})
    })
  )

  it.effect("never sends $schema, which is for editors", () =>
    Effect.gen(function* () {
      const { development, folder, currentConfig } = yield* newProject
      yield* folder.write("svc.config.json", { $schema: "./mine.json", features: { saves: true } })
      assert.strictEqual((yield* folder.svc("config push")).code, 0)
      assert.deepStrictEqual(yield* currentConfig(development.secretKey), {
        features: { saves: true }
      })
      yield* configure(development, { features: { saves: false } })
      assert.strictEqual((yield* folder.svc("config pull")).code, 0)
      assert.deepStrictEqual(json(yield* folder.read("svc.config.json")), {
        $schema: "./mine.json",
        features: { saves: false }
      })
    })
  )

  it.effect(
    "refuses a push over a config change that the user has not seen",
    () =>
      Effect.gen(function* () {
        const { development, folder, currentConfig } = yield* newProject
        yield* configure(development, { features: { saves: true } })
        yield* folder.svc("config pull")
        yield* configure(development, { features: { saves: true, stats: true } })
        yield* folder.write("svc.config.json", { features: { saves: false } })
        const refused = yield* folder.svc("config push")
        assert.strictEqual(refused.code, 1)
        assert.match(refused.stderr, /the current version is 2, you last saw 1/)
        assert.match(refused.stderr, /features\.stats/)
        assert.deepStrictEqual(yield* currentConfig(development.secretKey), {
          features: { saves: true, stats: true }
        })
        // A diff or --force allows the push.
        assert.strictEqual((yield* folder.svc("config diff")).code, 0)
        assert.strictEqual((yield* folder.svc("config push")).code, 0)
        yield* configure(development, { features: { saves: true } })
        assert.strictEqual((yield* folder.svc("config push")).code, 1)
        assert.strictEqual((yield* folder.svc("config push --force")).code, 0)
        assert.deepStrictEqual(yield* currentConfig(development.secretKey), {
          features: { saves: false }
        })
      }),
    { tags: "long" }
  )

  it.effect(
    "refuses a pull over edits that were never pushed",
    () =>
      Effect.gen(function* () {
        const { development, folder } = yield* newProject
        yield* folder.svc("config pull")
        yield* configure(development, { features: { saves: true } })
        // The file is unchanged since the last pull, so a pull replaces it.
        assert.strictEqual((yield* folder.svc("config pull")).code, 0)
        yield* folder.write("svc.config.json", { features: { stats: true } })
        const refused = yield* folder.svc("config pull")
        assert.strictEqual(refused.code, 1)
        assert.deepStrictEqual(json(yield* folder.read("svc.config.json")), {
          features: { stats: true }
        })
        assert.strictEqual((yield* folder.svc("config pull --force")).code, 0)
        assert.strictEqual(
          at(json(yield* folder.read("svc.config.json")), "features", "saves"),
          true
        )
      }),
    { tags: "long" }
  )

  it.effect("prints the position in the file for each problem that the service reports", () =>
    Effect.gen(function* () {
      const { folder } = yield* newProject
      yield* folder.write("svc.config.json", '{\n  "features": {\n    "hosting": true\n  }\n}')
      const refused = yield* folder.svc("config push")
      assert.strictEqual(refused.code, 1)
      assert.match(
        refused.stderr,
        /^svc\.config\.json:3:5 {2}error {2}features\.hosting: is not offered/
      )
    })
  )

  it.effect(
    "ignores the order of names in a diff",
    () =>
      Effect.gen(function* () {
        const { development, folder } = yield* newProject
        yield* configure(development, { features: { saves: true, stats: true }, audience: "kids" })
        yield* folder.write("svc.config.json", {
          audience: "kids",
          features: { stats: true, saves: true }
        })
        const same = yield* folder.svc("config diff --exit-code")
        assert.deepStrictEqual([same.code, same.stdout], [0, ""])
        yield* folder.write("svc.config.json", {
          audience: "mixed",
          features: { stats: true, saves: true }
        })
        const other = yield* folder.svc("config diff")
        assert.strictEqual(other.code, 0)
        assert.deepStrictEqual(
          other.stdout.split("\n").filter((line) => /^[-+] /.test(line)),
          ['-  "audience": "kids",', '+  "audience": "mixed",']
        )
        assert.strictEqual((yield* folder.svc("config diff --exit-code")).code, 1)
        const machine = yield* folder.svc("config diff --json")
        assert.deepStrictEqual(at(json(machine.stdout), "changed"), ["audience"])
      }),
    { tags: "long" }
  )

  it.effect("reads the same schema that the service publishes without a key", () =>
    Effect.gen(function* () {
      const answer = yield* request(`${yield* addressOfNode}/v1/config/schema.json`)
      assert.strictEqual(answer.status, 200)
      assert.deepStrictEqual(answer.body, json(configJsonSchemaText()))
      assert.include(answer.headers.get("cache-control"), "public")
    })
  )
})

describe("svc config push", () => {
  it.effect("fails when the config changes between its read and its write", () =>
    Effect.gen(function* () {
      const error = {
        code: "config_conflict",
        message: "The config has changed since you read it.",
        details: { currentVersion: 8 }
      }
      const { sent, url } = yield* fakeService({
        "GET /v1/config": { headers: { etag: '"7"' }, body: {} },
        "PUT /v1/config": { status: 412, body: { error } }
      })
      const folder = yield* makeFolder({ SVC_URL: url, SVC_SECRET_KEY: "sk_1" })
      yield* folder.write("svc.config.json", { features: { saves: true } })
      const run = yield* folder.svc("config push")
      assert.deepStrictEqual([run.code, run.stdout], [1, ""])
      assert.match(run.stderr, /the current version is 8, you last saw 7/)
      yield* folder.svc("config push --force")
      assert.deepStrictEqual(
        sent.map((headers) => headers["if-match"]),
        [undefined, undefined, '"7"', undefined, undefined, undefined]
      )
    })
  )

  it.effect("reports in a dry run the features that the deployment does not offer", () =>
    Effect.gen(function* () {
      const voice = {
        key: "voice",
        title: "Voice",
        configPath: "features.voice",
        source: "config",
        enabled: false,
        offered: false
      }
      const { url } = yield* fakeService({
        "GET /v1/config": { headers: { etag: '"7"' }, body: {} },
        "GET /v1/admin/features": { body: { features: [voice] } }
      })
      const folder = yield* makeFolder({ SVC_URL: url, SVC_SECRET_KEY: "sk_1" })
      const features = { realtimeChannels: true, voice: true }
      yield* folder.write("svc.config.json", { features })
      const refused = yield* folder.svc("config push --dry-run")
      assert.strictEqual(refused.code, 1)
      assert.match(
        refused.stderr,
        /^svc\.config\.json:4:5 {2}error {2}features\.voice: is not offered/
      )
      yield* folder.write("svc.config.json", { features: { ...features, voice: false } })
      const fine = yield* folder.svc("config push --dry-run")
      assert.deepStrictEqual([fine.code, fine.stderr], [0, ""])
      assert.match(fine.stdout, /^A push would change in development/)
    })
  )
})

describe("svc config validate", () => {
  it.effect(
    "finds every problem without a service, with its position in the file",
    () =>
      Effect.gen(function* () {
        const folder = yield* makeFolder()
        yield* folder.write(
          "svc.config.json",
          '{\n  "features": { "tortoise": true },\n  "multiplayer": { "modes": [\n' +
            '    { "key": "duel", "minPlayers": 9, "maxPlayers": 2 },\n    { "title": "No key" }\n  ] }\n}\n'
        )
        const text = yield* folder.svc("config validate")
        assert.deepStrictEqual([text.code, text.stdout], [1, ""])
        assert.match(
          text.stderr,
          /^svc\.config\.json:2:17 {2}error {2}features\.tortoise: unknown feature/
        )
        assert.match(
          text.stderr,
          /^svc\.config\.json:5:5 {2}error {2}.*modes\[1\]\.key: is required$/m
        )
        const machine = yield* folder.svc("--json config validate")
        assert.deepStrictEqual([machine.code, machine.stderr], [1, ""])
        assert.strictEqual(at(json(machine.stdout), "issues", 0, "path"), "features.tortoise")
        yield* folder.write("svc.config.json", { features: { saves: true } })
        const valid = yield* folder.svc("config validate")
        assert.deepStrictEqual([valid.code, valid.stdout], [0, "svc.config.json is valid.\n"])
      }),
    { tags: "long" }
  )

  it.effect("reports malformed JSON, and a missing file", () =>
    Effect.gen(function* () {
      const folder = yield* makeFolder()
      yield* folder.write("svc.config.json", '{\n  "features": { "saves": true, }\n}')
      const malformed = yield* folder.svc("config validate")
      assert.strictEqual(malformed.code, 1)
      assert.match(malformed.stderr, /^svc\.config\.json:2:\d+ {2}error {2}is not JSON: /)
      const missing = yield* folder.svc("config validate other.json")
      assert.strictEqual(missing.code, 2)
      assert.match(missing.stderr, /other\.json does not exist/)
    })
  )
})
