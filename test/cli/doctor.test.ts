/** `svc doctor`: a service that is well, and each fault with what to do about it. */
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { clockCheck, diskCheck, isAtLeast, nodeCheck } from "#cli/doctor-checks"
import { parseIceUrl } from "#cli/ice-servers"
import { TestApp } from "#testing/app"
import { at, configure, request } from "#testing/players"
import manifest from "../../package.json" with { type: "json" }
import { fakeService } from "../support/cli/fake-service.ts"
import { type Folder, makeFolder } from "../support/cli/svc.ts"
import { DatabaseLive } from "../support/service.ts"
import { TurnServer, turnSecret } from "../support/turn-server.ts"

/** A service with a TURN server, and one whose TURN server has another secret. */
const nodeOf = (secret: string) =>
  Layer.unwrap(
    Effect.map(TurnServer, ({ port }) =>
      TestApp.layerWith({
        SVC_TURN_URLS: `turn:127.0.0.1:${port},stun:127.0.0.1:${port}`,
        SVC_TURN_SECRET: secret
      })
    )
  ).pipe(Layer.provide(DatabaseLive), Layer.provide(TurnServer.layerLoopback))

const peerConfig = {
  features: { multiplayer: true },
  multiplayer: {
    modes: [{ key: "duel", maxPlayers: 2, transport: "p2p", p2p: { relayOnly: false } }]
  }
}

const setUp = Effect.gen(function* () {
  const { publishableKey, secretKey, url } = yield* TestApp
  const development = { url, publishableKey, secretKey }
  const folder = yield* makeFolder({ SVC_DATA_DIR: "." })
  const keys = { baseUrl: url, project: "p", development, production: development }
  yield* folder.write("dev-keys.json", keys)
  yield* folder.write("svc.config.json", peerConfig)
  yield* configure(development, {})
  return { url, development, folder }
})

/** Runs `svc doctor` and returns its checks by name. */
const diagnose = Effect.fnUntraced(function* (
  folder: Folder,
  env: Readonly<Record<string, string>> = {}
) {
  const { code, stderr, stdout } = yield* folder.svc("doctor --json", { env })
  assert.strictEqual(stderr, "")
  const report: unknown = JSON.parse(stdout)
  const checks = at(report, "checks")
  if (!Array.isArray(checks)) return assert.fail("no checks")
  assert.strictEqual(at(report, "ok"), code === 0)
  const of = (name: string): unknown => checks.find((check) => at(check, "name") === name)
  const status = (name: string) => at(of(name), "status")
  return { code, checks, of, status }
})

const statusesOf = (checks: ReadonlyArray<unknown>) =>
  checks.map((check) => `${String(at(check, "status"))} ${String(at(check, "name"))}`)

layer(nodeOf(turnSecret), { excludeTestServices: true })("svc doctor", (it) => {
  it.effect("finds a service well, asks TURN for a relay as a guest, and deletes the guest", () =>
    Effect.gen(function* () {
      const { development, folder, url } = yield* setUp
      yield* configure(development, peerConfig)
      const { checks, code } = yield* diagnose(folder)
      assert.strictEqual(code, 0, JSON.stringify(checks, null, 2))
      assert.deepStrictEqual(
        statusesOf(checks).map((line) => line.replace(/\d{4,}/, "PORT")),
        [
          "ok node",
          "ok service",
          "ok ready",
          "ok clock",
          "ok svc version",
          "ok key",
          "ok config file",
          "ok features",
          "ok player",
          "ok turn stun:127.0.0.1:PORT",
          "ok turn turn:127.0.0.1:PORT",
          "ok disk"
        ]
      )
      const headers = { "x-svc-key": development.publishableKey }
      const rooms = yield* request(`${url}/v1/rooms`, { headers })
      assert.deepStrictEqual(at(rooms.body, "rooms"), [])
      const shown = yield* folder.svc("doctor")
      assert.include(shown.stdout, "All is well.")
    })
  )

  it.effect(
    "says how a config file differs, and that TURN needs a publishable key",
    () =>
      Effect.gen(function* () {
        const { development, folder, url } = yield* setUp
        const differs = yield* diagnose(folder)
        assert.strictEqual(differs.code, 0)
        assert.strictEqual(differs.status("config file"), "warning")
        yield* configure(development, peerConfig)
        yield* folder.write("svc.config.json", { features: { multiplayers: true } })
        const invalid = yield* diagnose(folder, { DATABASE_URL: "postgres://127.0.0.1:2/svc" })
        assert.strictEqual(invalid.code, 1)
        assert.strictEqual(invalid.status("config file"), "failed")
        assert.strictEqual(invalid.status("database"), "failed")
        const env = {
          SVC_URL: url,
          SVC_SECRET_KEY: development.secretKey,
          SVC_DATA_DIR: "elsewhere"
        }
        const keyed = yield* diagnose(folder, env)
        assert.strictEqual(keyed.status("turn"), "skipped")
        assert.match(String(at(keyed.of("turn"), "remedy")), /SVC_PUBLISHABLE_KEY/)
        const wrongKey = yield* diagnose(folder, { ...env, SVC_SECRET_KEY: "sk_dev_wrong" })
        assert.strictEqual(wrongKey.code, 1)
        assert.strictEqual(wrongKey.status("key"), "failed")
        const swapped = { ...env, SVC_SECRET_KEY: development.publishableKey }
        assert.strictEqual((yield* diagnose(folder, swapped)).status("key"), "failed")
      }),
    { tags: "long" }
  )
})

layer(nodeOf("another-shared-secret"), { excludeTestServices: true })("svc doctor", (it) => {
  it.effect("names the setting when the TURN server refuses the credentials", () =>
    Effect.gen(function* () {
      const { development, folder } = yield* setUp
      yield* configure(development, peerConfig)
      const { checks, code } = yield* diagnose(folder)
      assert.strictEqual(code, 1)
      const turn = checks.find((check) => at(check, "status") === "failed")
      assert.match(String(at(turn, "detail")), /refuses the credentials/)
      assert.match(String(at(turn, "remedy")), /SVC_TURN_SECRET/)
    })
  )
})

const info = { version: manifest.version }
const readiness = { ready: true, database: true, shards: true, draining: false }

const answers = (
  ready: Partial<typeof readiness>,
  { date, version = info.version }: { readonly date?: string; readonly version?: string } = {}
) =>
  fakeService({
    "GET /v1/platform/info": {
      body: { version },
      ...(date === undefined ? {} : { headers: { date } })
    },
    "GET /readyz": { body: { ...readiness, ...ready } },
    "GET /v1/config": { body: {}, headers: { etag: '"1"' } },
    "GET /v1/admin/features": {
      body: {
        features: [
          {
            key: "voice",
            title: "Voice",
            configPath: "features.voice",
            source: "config",
            enabled: true,
            offered: false
          }
        ]
      }
    }
  })

const checkFake = Effect.fnUntraced(function* (...given: Parameters<typeof answers>) {
  const { url } = yield* answers(...given)
  const folder = yield* makeFolder({ SVC_URL: url, SVC_SECRET_KEY: "sk_1" })
  return yield* diagnose(folder)
})

describe("svc doctor", () => {
  it.live(
    "finds other versions, a wrong clock, features that are not offered, and no database",
    () =>
      Effect.gen(function* () {
        const date = "Thu, 01 Jan 2026 00:00:00 GMT"
        const ill = yield* checkFake({ ready: false, database: false }, { date, version: "9.0.0" })
        assert.strictEqual(ill.code, 1)
        assert.deepStrictEqual(statusesOf(ill.checks), [
          "ok node",
          "ok service",
          "failed ready",
          "failed clock",
          "warning svc version",
          "ok key",
          "skipped config file",
          "failed features",
          "skipped turn"
        ])
        assert.match(String(at(ill.of("ready"), "remedy")), /DATABASE_URL/)
        assert.match(String(at(ill.of("svc version"), "remedy")), /cli@9\.0\.0$/)
        const draining = yield* checkFake({ ready: false, draining: true })
        assert.match(String(at(draining.of("ready"), "detail")), /shuts down/)
      }).pipe(Effect.scoped)
  )

  it.live("says how to begin without a service, and what an unreachable one may be", () =>
    Effect.gen(function* () {
      const folder = yield* makeFolder()
      const none = yield* diagnose(folder)
      assert.strictEqual(none.code, 1)
      assert.match(String(at(none.of("service"), "remedy")), /svc link/)
      const away = yield* diagnose(folder, { SVC_URL: "http://127.0.0.1:2" })
      assert.match(String(at(away.of("service"), "detail")), /no service listens at this address/)
    }).pipe(Effect.scoped)
  )

  it("compares versions, clocks and disks", () => {
    assert.isTrue(isAtLeast("v24.0.0", "22.19.0"))
    assert.isFalse(isAtLeast("22.9.1", "22.19.0"))
    assert.deepStrictEqual(
      ["24.1.0", "22.20.0", "20.0.0"].map((version) => nodeCheck(version).status),
      ["ok", "warning", "failed"]
    )
    assert.deepStrictEqual(
      [-1.4, 6, -30, 90].map((ahead) => clockCheck(ahead, 1.5).status),
      ["ok", "ok", "warning", "failed"]
    )
    assert.strictEqual(clockCheck(-30, 1).detail, "30 s behind the service")
    assert.deepStrictEqual(
      [1e7, 1e9, 1e10].map((bytes) => diskCheck("/data", bytes).status),
      ["failed", "warning", "ok"]
    )
  })

  it("reads the addresses of STUN and TURN servers", () => {
    assert.deepStrictEqual(parseIceUrl("turns:turn.example.com"), {
      scheme: "turns",
      host: "turn.example.com",
      port: 5349,
      transport: "tcp"
    })
    assert.deepStrictEqual(parseIceUrl("turn:[::1]:3479?transport=udp"), {
      scheme: "turn",
      host: "::1",
      port: 3479,
      transport: "udp"
    })
    assert.isUndefined(parseIceUrl("http://turn.example.com"))
  })
})
