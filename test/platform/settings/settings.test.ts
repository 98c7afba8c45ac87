/** Settings: defaults, decoding of environment variables, and errors that name every wrong one. */
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Redacted } from "effect"
import { Settings, variables } from "#server/platform/settings/settings"

const read = (env: Readonly<Record<string, string>>) =>
  Effect.service(Settings).pipe(
    Effect.provide(Settings.layer),
    Effect.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env: { ...env } })))
  )

const masterKey = Buffer.from("0123456789abcdefghijklmnopqrstuv").toString("base64")

/** Settings without which a production service would lose data. */
const lossless = {
  DATABASE_URL: "postgres://svc_app:secret@db.example.com/svc?sslmode=require",
  SVC_BLOBS_URL: "folder",
  SMTP_URL: "smtps://user:secret@smtp.example.com:465"
}

describe("settings", () => {
  it.effect("defaults to a development service in an empty environment", () =>
    Effect.gen(function* () {
      const { features, trustedProxies, ...settings } = yield* read({})
      assert.deepStrictEqual(settings, {
        production: false,
        port: 8080,
        host: "0.0.0.0",
        maxConnections: 60_000,
        connectionsPerAddress: 1000,
        databaseUrl: undefined,
        databaseConnections: 10,
        lockDatabaseUrl: undefined,
        dataDir: ".svc",
        baseUrl: "http://localhost:8080",
        masterKey: undefined,
        olderMasterKeys: [],
        runner: undefined,
        mail: { smtpUrl: undefined, from: "no-reply@localhost" },
        throttles: true,
        demoGames: true,
        signups: "closed",
        dashboard: "on",
        setupToken: undefined,
        warnings: [],
        turn: { urls: [], secret: undefined, port: 3478 },
        voice: { ports: [40_500], publicIp: undefined },
        developerClients: { google: undefined, github: undefined },
        saves: {
          maxBytes: 1_048_576,
          perPlayer: 100,
          guestBytes: 16_777_216,
          environmentBytes: 53_687_091_200
        },
        functions: {
          processes: 32,
          memoryBytes: 256 * 1024 * 1024,
          storageBytes: 1024 * 1024 * 1024,
          diskReserveBytes: 512 * 1024 * 1024,
          cpuMillisPerMinute: 30_000,
          cpuMillisMax: 30_000,
          callsMax: 1000,
          snapshotSeconds: 10
        },
        hosting: {
          domain: "localhost",
          environmentBytes: 10_737_418_240,
          nameServers: undefined,
          retentionDays: 90,
          staleDays: 7,
          s3: undefined
        },
        money: { enabled: false, prices: {}, stripe: undefined },
        guestExpiryDays: 30,
        metricsToken: undefined,
        logs: { level: "Info", format: "pretty", requests: "failed" },
        traces: undefined
      })
      assert.isEmpty(trustedProxies)
      assert.include([...features], "multiplayer")
    })
  )

  it.effect("refuses a misspelt NODE_ENV, which would start a development service", () =>
    Effect.gen(function* () {
      for (const NODE_ENV of ["prod", "Production", "live"]) {
        assert.match((yield* Effect.flip(read({ NODE_ENV }))).message, /NODE_ENV: .*"production"/)
      }
      for (const NODE_ENV of ["development", "test"]) {
        assert.isFalse((yield* read({ NODE_ENV })).production)
      }
    })
  )

  it.effect("warns of settings that do not exist, with the name that was probably meant", () =>
    Effect.gen(function* () {
      const { warnings } = yield* read({
        SVC_TROTTLES: "off",
        SVC_SOMETHING_ELSE_ENTIRELY: "1",
        SVC_DATA_DIR: ".svc",
        OTHER_NAME: "1"
      })
      assert.deepStrictEqual(warnings, [
        "SVC_SOMETHING_ELSE_ENTIRELY is no setting of this service and has no effect.",
        "SVC_TROTTLES is no setting of this service and has no effect; did you mean SVC_THROTTLES?"
      ])
    })
  )

  it.effect("refuses a master key in production that is no random one", () =>
    Effect.gen(function* () {
      for (const bytes of [Buffer.alloc(32), Buffer.alloc(32, 7), Buffer.from("ab".repeat(16))]) {
        const env = { NODE_ENV: "production", SVC_MASTER_KEY: bytes.toString("base64") }
        const { message } = yield* Effect.flip(read(env))
        assert.match(message, /SVC_MASTER_KEY: is not random.*openssl rand -base64 32/)
        const older = { SVC_MASTER_KEY: masterKey, SVC_OLDER_MASTER_KEYS: env.SVC_MASTER_KEY }
        assert.lengthOf((yield* read({ ...env, ...older })).olderMasterKeys, 1)
      }
    })
  )

  it.effect("treats an empty variable as absent, and trims values", () =>
    Effect.gen(function* () {
      const settings = yield* read({
        DATABASE_URL: "",
        PORT: " ",
        SVC_BASE_URL: " https://a.test/ "
      })
      assert.isUndefined(settings.databaseUrl)
      assert.strictEqual(settings.port, 8080)
      assert.strictEqual(settings.baseUrl, "https://a.test")
    })
  )

  it.effect("takes the three files of TLS between runners together or not at all", () =>
    Effect.gen(function* () {
      const runner = { SVC_RUNNER_HOST: "a", SVC_RUNNER_PORT: "1", SVC_RUNNER_TLS_CERT: "cert.pem" }
      const { issues } = yield* Effect.flip(read({ ...runner, SVC_RUNNER_TLS_KEY: "key.pem" }))
      assert.deepStrictEqual(issues, [
        "SVC_RUNNER_TLS_CA: must be set together with SVC_RUNNER_TLS_CERT and SVC_RUNNER_TLS_KEY"
      ])
      const files = { SVC_RUNNER_TLS_KEY: "key.pem", SVC_RUNNER_TLS_CA: "ca.pem" }
      assert.deepStrictEqual((yield* read({ ...runner, ...files })).runner?.tls, {
        cert: "cert.pem",
        key: "key.pem",
        ca: "ca.pem"
      })
    })
  )

  it.effect("reads the settings of a runner in a cluster", () =>
    Effect.gen(function* () {
      const settings = yield* read({
        NODE_ENV: "production",
        SVC_MASTER_KEY: masterKey,
        SVC_RUNNER_HOST: "10.0.0.4",
        SVC_RUNNER_PORT: "34431",
        SVC_TRUSTED_PROXIES: "10.0.7.0/24,::1",
        SVC_FEATURES: "multiplayer"
      })
      assert.isTrue(settings.production)
      assert.deepStrictEqual(settings.runner, {
        host: "10.0.0.4",
        port: 34_431,
        tls: undefined
      })
      assert.lengthOf(settings.trustedProxies, 2)
      assert.deepStrictEqual(settings.features, new Set(["multiplayer"]))
      assert.lengthOf(
        settings.masterKey === undefined ? [] : Redacted.value(settings.masterKey),
        32
      )
    })
  )

  it.effect("names the free port in the base URL when PORT is 0", () =>
    Effect.gen(function* () {
      const { baseUrl, port } = yield* read({ PORT: "0" })
      assert.isAbove(port, 0)
      assert.strictEqual(baseUrl, `http://localhost:${port}`)
      const behindProxy = yield* read({ PORT: "0", SVC_BASE_URL: "https://play.test/" })
      assert.strictEqual(behindProxy.port, 0)
      assert.strictEqual(behindProxy.baseUrl, "https://play.test")
      const { issues } = yield* Effect.flip(read({ PORT: "0", HOST: "192.0.2.1" }))
      assert.match(issues.join(), /^Failed to find a free port on 192\.0\.2\.1: .*EADDRNOTAVAIL/)
    })
  )

  it.effect("sends mail from the host of the base URL unless SVC_MAIL_FROM is set", () =>
    Effect.gen(function* () {
      const { mail } = yield* read({ SVC_BASE_URL: "https://play.test:8443/api" })
      assert.strictEqual(mail.from, "no-reply@play.test")
      const explicit = yield* read({
        SVC_MAIL_FROM: "game@example.com",
        SMTP_URL: "smtps://mailer:hunter2@mail.example.com:465"
      })
      assert.strictEqual(explicit.mail.from, "game@example.com")
      assert.notInclude(String(explicit.mail.smtpUrl), "hunter2")
    })
  )

  it.effect("refuses production without a master key", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(read({ NODE_ENV: "production" }))
      assert.strictEqual(
        error.message,
        "SVC_MASTER_KEY: is required in production; make one with: openssl rand -base64 32"
      )
    })
  )

  it.effect("names every wrong variable, and no secret", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(
        read({
          PORT: "http",
          SVC_BASE_URL: "play.example.com",
          SVC_MASTER_KEY: "hunter2",
          SMTP_URL: "https://mailer:hunter2@mail.example.com",
          SVC_MAIL_FROM: "Game <game@example.com>",
          SVC_TRUSTED_PROXIES: "10.0.0.0/33",
          SVC_THROTTLES: "maybe",
          SVC_FEATURES: "multiplayer,teleport"
        })
      )
      for (const name of [
        "PORT: Expected a whole number from 0 to 65535",
        "SVC_BASE_URL",
        "SVC_MASTER_KEY: Expected 32 bytes in base64",
        "SMTP_URL: Expected smtp://",
        "SVC_MAIL_FROM",
        "SVC_TRUSTED_PROXIES.0",
        "SVC_THROTTLES",
        "SVC_FEATURES.1"
      ]) {
        assert.include(error.message, name)
      }
      assert.notInclude(error.message, "hunter2")
      const alone = yield* Effect.flip(read({ SVC_RUNNER_PORT: "34431" }))
      assert.include(alone.message, "SVC_RUNNER_HOST")
    })
  )

  it.effect("refuses a public base URL outside production unless a setting allows it", () =>
    Effect.gen(function* () {
      const urls = ["https://play.example.com", "http://9.9.9.9:8080", "http://[2606:4700::1111]"]
      for (const SVC_BASE_URL of urls) {
        const { issues } = yield* Effect.flip(read({ SVC_BASE_URL }))
        assert.match(issues.join(), /^SVC_BASE_URL: is public, .*SVC_ALLOW_PUBLIC_DEVELOPMENT=on/)
        yield* read({ SVC_BASE_URL, SVC_ALLOW_PUBLIC_DEVELOPMENT: "on" })
        yield* read({ SVC_BASE_URL, NODE_ENV: "production", SVC_MASTER_KEY: masterKey })
      }
      const own =
        "localhost app.localhost 127.0.0.1 [::1] 192.168.1.7 [fd00::1] laptop laptop.local"
      for (const host of own.split(" ")) yield* read({ SVC_BASE_URL: `http://${host}:8080` })
    })
  )

  it.effect("refuses to trust a large part of the internet as proxies", () =>
    Effect.gen(function* () {
      for (const network of ["0.0.0.0/0", "::/0", "0.0.0.0/1", "8.0.0.0/8", "2000::/3"]) {
        const { issues } = yield* Effect.flip(read({ SVC_TRUSTED_PROXIES: `10.0.0.1,${network}` }))
        assert.match(issues.join(), /^SVC_TRUSTED_PROXIES\.1: Expected .*load balancers/, network)
      }
    })
  )

  it.effect("warns of trusted proxies that hold more than a load balancer", () =>
    Effect.gen(function* () {
      const wide = ["10.0.0.0/8", "172.16.0.0/12", "fc00::/7", "104.16.0.0/13", "192.0.2.0/28"]
      for (const network of wide) {
        const { warnings } = yield* read({ SVC_TRUSTED_PROXIES: network })
        assert.lengthOf(warnings, 1, network)
        assert.include(warnings[0], `SVC_TRUSTED_PROXIES trusts ${network}: `)
      }
      const narrow = "10.0.7.0/24,192.168.0.0/16,127.0.0.0/8,::1,fd00:1:2::/48,203.0.113.7"
      assert.isEmpty((yield* read({ SVC_TRUSTED_PROXIES: narrow })).warnings)
    })
  )

  it.effect("warns in production of a base URL that is absent or not https", () =>
    Effect.gen(function* () {
      const production = { NODE_ENV: "production", SVC_MASTER_KEY: masterKey, ...lossless }
      const absent = (yield* read(production)).warnings
      assert.match(absent.join(), /^SVC_BASE_URL is not set: .*http:\/\/localhost:8080/)
      const plain = (yield* read({ ...production, SVC_BASE_URL: "http://play.example.com" }))
        .warnings
      assert.match(plain.join(), /^SVC_BASE_URL is not https: /)
      for (const SVC_BASE_URL of ["https://play.example.com", "http://localhost:8080"]) {
        assert.isEmpty((yield* read({ ...production, SVC_BASE_URL })).warnings)
      }
      assert.isEmpty((yield* read({})).warnings)
    })
  )

  it.effect(
    "warns in production of each setting that loses data, and of none where all keep it",
    () =>
      Effect.gen(function* () {
        const production = {
          NODE_ENV: "production",
          SVC_MASTER_KEY: masterKey,
          SVC_BASE_URL: "https://play.example.com",
          SVC_RUNNER_HOST: "10.0.0.4",
          SVC_RUNNER_PORT: "34431",
          ...lossless
        }
        assert.isEmpty((yield* read(production)).warnings)
        const without = (name: string) =>
          Effect.map(read({ ...production, [name]: "" }), ({ warnings }) => warnings)
        for (const name of Object.keys(lossless)) {
          const [warning = "", ...others] = yield* without(name)
          assert.isEmpty(others, name)
          assert.match(warning, new RegExp(`^${name} is not set: .*(?:lost).* [Ss]et `), name)
        }
        const functions = yield* read({ ...production, SVC_FUNCTIONS_SNAPSHOT_SECONDS: "0" })
        assert.match(functions.warnings.join("|"), /^SVC_FUNCTIONS_SNAPSHOT_SECONDS is 0: [^|]*$/)
        const features = "saves,stats"
        const few = yield* read({
          ...production,
          SVC_FEATURES: features,
          SMTP_URL: "",
          SVC_BLOBS_URL: ""
        })
        assert.isEmpty(few.warnings, "without hosting and email sign-in")
      })
  )

  it.effect("requires sslmode in production for a database on another host", () =>
    Effect.gen(function* () {
      const production = { NODE_ENV: "production", SVC_MASTER_KEY: masterKey }
      const remote = "postgres://svc:hunter2@db.example.com/svc"
      for (const name of ["DATABASE_URL", "SVC_LOCK_DATABASE_URL"]) {
        const { issues } = yield* Effect.flip(read({ ...production, [name]: remote }))
        assert.match(issues.join(), new RegExp(`^${name}: names another host without sslmode`))
        assert.notInclude(issues.join(), "hunter2")
        yield* read({ [name]: remote })
        for (const mode of ["require", "disable"]) {
          yield* read({ ...production, [name]: `${remote}?sslmode=${mode}` })
        }
        const own = "//svc@localhost/svc //svc@127.0.0.1/svc //svc@[::1]/svc ///svc?host=/run/pg"
        for (const address of own.split(" ")) {
          yield* read({ ...production, [name]: `postgres:${address}` })
        }
      }
    })
  )

  it.effect("refuses the URL of a database that is none, at once", () =>
    Effect.gen(function* () {
      const wrong = ["db", "mysql://a@b/c", "postgres://a@b/c?sslmode=on", "postgres://a@b:0x/c"]
      for (const url of wrong) {
        const { issues } = yield* Effect.flip(read({ DATABASE_URL: url }))
        assert.match(issues.join(), /^DATABASE_URL: Expected /, url)
      }
    })
  )

  it("describes every environment variable of the settings", () => {
    for (const [name, { meaning }] of Object.entries(variables)) {
      assert.match(meaning, /^[A-Za-z0-9`].*[.)]$/s, name)
    }
  })
})
