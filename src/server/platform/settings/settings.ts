/**
 * Settings of the process, decoded from environment variables; the defaults suit a laptop. Effect's
 * Config reads them, so a test provides them as a record.
 */
import {
  Config,
  Context,
  Effect,
  Layer,
  Option,
  Record,
  Redacted,
  Schema,
  SchemaIssue
} from "effect"
import type { IpNetwork } from "effect/net"
import { type FeatureName, featureTable } from "#rpc/config-document/features"
import { Email } from "#rpc/email"
import {
  baseUrlWarnings,
  databaseUrlIssue,
  isPublicHost,
  lossWarnings,
  proxyWarnings
} from "./deployment.ts"
import { freePort } from "./free-port.ts"
import { type FunctionSettings, functionsOf, functionVariables } from "./functions.ts"
import { hostingIssue, hostingOf, type HostingSettings, hostingVariables } from "./hosting.ts"
import { mediaIssue, mediaOf, type MediaSettings, mediaVariables } from "./media.ts"
import { moneyIssue, moneyOf, type MoneySettings, moneyVariables } from "./money.ts"
import { oauthIssue, oauthOf, type OAuthSettings, oauthVariables } from "./oauth.ts"
import { unknownNames, unknownWarning } from "./unknown-names.ts"
import {
  DashboardPlace,
  isWeakKey,
  listOf,
  type LogLevel,
  logLevels,
  MasterKey,
  MetricsToken,
  Ratio,
  SetupToken,
  SmtpUrl,
  TrustedNetwork,
  whole,
  withoutSlash
} from "./values.ts"
import { type Variable, variables } from "./variables.ts"

/** Environment variables that the service cannot start with, each with the expected value. */
export class SettingsError extends Schema.TaggedError<SettingsError>()("SettingsError", {
  /** Issues, such as `SVC_RUNNER_PORT: must be set together with SVC_RUNNER_HOST`. */
  issues: Schema.Array(Schema.String)
}) {
  override get message(): string {
    return this.issues.join("; ")
  }
}

const Environment = Schema.Struct({
  PORT: whole(0, 65_535),
  HOST: Schema.String,
  SVC_MAX_CONNECTIONS: whole(6, 1_000_000),
  SVC_CONNECTIONS_PER_ADDRESS: whole(1, 1_000_000),
  DATABASE_URL: Schema.optionalKey(Schema.RedactedFromValue(Schema.String)),
  SVC_DATABASE_CONNECTIONS: whole(1, 1000),
  SVC_LOCK_DATABASE_URL: Schema.optionalKey(Schema.RedactedFromValue(Schema.String)),
  SVC_DATA_DIR: Schema.String,
  SVC_BASE_URL: Schema.optionalKey(Schema.URLFromString),
  SVC_ALLOW_PUBLIC_DEVELOPMENT: Schema.Literals(["on", "off"]),
  SVC_MASTER_KEY: Schema.optionalKey(Schema.RedactedFromValue(MasterKey)),
  SVC_OLDER_MASTER_KEYS: listOf(Schema.RedactedFromValue(MasterKey)),
  SVC_RUNNER_HOST: Schema.optionalKey(Schema.String),
  SVC_RUNNER_PORT: Schema.optionalKey(whole(1, 65_535)),
  SVC_RUNNER_TLS_CERT: Schema.optionalKey(Schema.String),
  SVC_RUNNER_TLS_KEY: Schema.optionalKey(Schema.String),
  SVC_RUNNER_TLS_CA: Schema.optionalKey(Schema.String),
  SMTP_URL: Schema.optionalKey(Schema.RedactedFromValue(SmtpUrl)),
  SVC_MAIL_FROM: Schema.optionalKey(Email),
  SVC_THROTTLES: Schema.Literals(["on", "off"]),
  SVC_DEMO_GAMES: Schema.Literals(["on", "off"]),
  SVC_SIGNUPS: Schema.Literals(["closed", "invite", "open"]),
  SVC_SETUP_TOKEN: Schema.optionalKey(SetupToken),
  SVC_DASHBOARD: DashboardPlace,
  SVC_TRUSTED_PROXIES: listOf(TrustedNetwork),
  ...mediaVariables,
  ...oauthVariables,
  SVC_FEATURES: listOf(Schema.Literals(Record.keys(featureTable))),
  SVC_SAVE_MAX_BYTES: whole(1, 64 * 1024 * 1024),
  SVC_SAVES_PER_PLAYER: whole(0, 100_000),
  SVC_GUEST_SAVE_BYTES: whole(0, 2 ** 50),
  SVC_ENVIRONMENT_SAVE_BYTES: whole(0, 2 ** 50),
  ...hostingVariables,
  ...functionVariables,
  ...moneyVariables,
  SVC_GUEST_EXPIRY_DAYS: whole(0, 36_500),
  SVC_METRICS_TOKEN: Schema.optionalKey(MetricsToken),
  SVC_LOG_LEVEL: Schema.Literals(["debug", "info", "warning", "error"]),
  SVC_LOG_FORMAT: Schema.optionalKey(Schema.Literals(["json", "pretty"])),
  SVC_LOG_REQUESTS: Schema.Literals(["failed", "all"]),
  OTEL_EXPORTER_OTLP_ENDPOINT: Schema.optionalKey(Schema.URLFromString),
  OTEL_EXPORTER_OTLP_PROTOCOL: Schema.Literals(["http/protobuf", "http/json"]),
  OTEL_SERVICE_NAME: Schema.String,
  OTEL_TRACES_SAMPLER_ARG: Ratio,
  NODE_ENV: Schema.Literals(["production", "development", "test"])
}).check(
  Schema.makeFilter((env) =>
    (env.SVC_RUNNER_HOST === undefined) === (env.SVC_RUNNER_PORT === undefined)
      ? undefined
      : { path: ["SVC_RUNNER_PORT"], issue: "must be set together with SVC_RUNNER_HOST" }
  ),
  Schema.makeFilter((env) => {
    const names = ["SVC_RUNNER_TLS_CERT", "SVC_RUNNER_TLS_KEY", "SVC_RUNNER_TLS_CA"] as const
    const absent = names.find((name) => env[name] === undefined)
    return absent === undefined || names.every((name) => env[name] === undefined)
      ? undefined
      : { path: [absent], issue: `must be set together with the other two: ${names.join(", ")}` }
  }),
  Schema.makeFilter(mediaIssue),
  Schema.makeFilter((env) =>
    env.NODE_ENV === "production" && env.SVC_MASTER_KEY === undefined
      ? {
          path: ["SVC_MASTER_KEY"],
          issue: "is required in production; make one with: openssl rand -base64 32"
        }
      : undefined
  ),
  Schema.makeFilter((env) =>
    env.NODE_ENV === "production" &&
    env.SVC_MASTER_KEY !== undefined &&
    isWeakKey(Redacted.value(env.SVC_MASTER_KEY))
      ? {
          path: ["SVC_MASTER_KEY"],
          issue:
            "is not random: anybody can guess it. Make one with: openssl rand -base64 32. If it has " +
            "encrypted secrets already, move it to SVC_OLDER_MASTER_KEYS"
        }
      : undefined
  ),
  Schema.makeFilter((env) =>
    env.NODE_ENV !== "production" &&
    env.SVC_ALLOW_PUBLIC_DEVELOPMENT === "off" &&
    isPublicHost(env.SVC_BASE_URL?.hostname ?? "localhost")
      ? {
          path: ["SVC_BASE_URL"],
          issue:
            "is public, but outside production the service stores mails instead of sending them and " +
            "seeds a demo project. Set NODE_ENV=production, or SVC_ALLOW_PUBLIC_DEVELOPMENT=on to " +
            "start nevertheless"
        }
      : undefined
  ),
  Schema.makeFilter(hostingIssue),
  Schema.makeFilter(oauthIssue),
  Schema.makeFilter(moneyIssue),
  Schema.makeFilter((env) =>
    (["DATABASE_URL", "SVC_LOCK_DATABASE_URL"] as const).flatMap((name) => {
      const url = env[name]
      if (url === undefined) return []
      const issue = databaseUrlIssue(Redacted.value(url), env.NODE_ENV === "production")
      return issue === undefined ? [] : [{ path: [name], issue }]
    })
  )
)

const warningsOf = (
  env: typeof Environment.Type,
  baseUrl: string,
  unknown: ReadonlyArray<string>
): ReadonlyArray<string> => [
  ...unknown.map((name) => unknownWarning(name, Object.keys(variables))),
  ...proxyWarnings(env.SVC_TRUSTED_PROXIES),
  ...(env.NODE_ENV === "production"
    ? [...baseUrlWarnings(env.SVC_BASE_URL, baseUrl), ...lossWarnings(env)]
    : [])
]

const decode = Schema.decodeUnknownEffect(Environment, { errors: "all" })

const format = SchemaIssue.makeFormatterStandardSchemaV1()

/** The variables as text, with defaults applied; an empty variable counts as absent. */
const environment = Config.all(
  Record.map(variables, (variable: Variable, name) =>
    Config.map(Config.option(Config.String(name)), (value) => {
      const text = Option.getOrElse(value, () => "").trim()
      return text === "" ? variable.default : text
    })
  )
)

const tlsFiles = ({
  SVC_RUNNER_TLS_CERT: cert,
  SVC_RUNNER_TLS_KEY: key,
  SVC_RUNNER_TLS_CA: ca
}: typeof Environment.Type) =>
  cert === undefined || key === undefined || ca === undefined ? undefined : { cert, key, ca }

/**
 * The port to listen on. Without a base URL, links and tokens name this port: then 0 becomes a free one
 * here, before the server listens.
 */
const portOf = ({ HOST, PORT, SVC_BASE_URL }: typeof Environment.Type) =>
  PORT !== 0 || SVC_BASE_URL !== undefined ? Effect.succeed(PORT) : freePort(HOST)

/** The settings of this process. */
export class Settings extends Context.Service<
  Settings,
  OAuthSettings & {
    readonly production: boolean
    readonly port: number
    readonly host: string
    /** Most open connections, including WebSockets. */
    readonly maxConnections: number
    /** Most open connections of one client address; infinite without throttles. */
    readonly connectionsPerAddress: number
    /** URL of the database; undefined if the service runs its own Postgres in `dataDir`. */
    readonly databaseUrl: Redacted.Redacted | undefined
    readonly databaseConnections: number
    /**
     * URL of the lock database; undefined if runner list and shard locks are in the database of
     * `databaseUrl`.
     */
    readonly lockDatabaseUrl: Redacted.Redacted | undefined
    readonly dataDir: string
    /** Base URL without a trailing slash. */
    readonly baseUrl: string
    readonly masterKey: Redacted.Redacted<Uint8Array> | undefined
    /** Replaced master keys: they still decrypt, and encrypt nothing new. */
    readonly olderMasterKeys: ReadonlyArray<Redacted.Redacted<Uint8Array>>
    /** Address of this runner in a cluster; undefined for a single process. */
    readonly runner:
      | {
          readonly host: string
          readonly port: number
          /** Files in PEM for mutual TLS between runners. */
          readonly tls:
            | { readonly cert: string; readonly key: string; readonly ca: string }
            | undefined
        }
      | undefined
    /** Mail settings. Without `smtpUrl` the service sends no mail. */
    readonly mail: { readonly smtpUrl: Redacted.Redacted | undefined; readonly from: string }
    readonly throttles: boolean
    /** Whether the service deploys the demo games; never in production. */
    readonly demoGames: boolean
    /** Policy for the sign-up of developers. */
    readonly signups: "closed" | "invite" | "open"
    /**
     * Token for the first developer account in production. Without it the first start generates
     * one.
     */
    readonly setupToken: Redacted.Redacted | undefined
    /** Place of the dashboard: on the port of the service, nowhere, or on a port of its own. */
    readonly dashboard: "on" | "off" | number
    readonly trustedProxies: ReadonlyArray<IpNetwork.IpNetwork>
    /** Warnings about unsafe settings of this deployment, for the operator. */
    readonly warnings: ReadonlyArray<string>
    readonly voice: MediaSettings["voice"]
    readonly turn: MediaSettings["turn"]
    readonly features: ReadonlySet<FeatureName>
    readonly saves: {
      readonly maxBytes: number
      readonly perPlayer: number
      /** Most bytes of all saves of a guest. */
      readonly guestBytes: number
      /** Most bytes of all saves of an environment. */
      readonly environmentBytes: number
    }
    readonly hosting: HostingSettings
    readonly functions: FunctionSettings
    readonly money: MoneySettings
    /** Days after which a guest whose sessions have expired is deleted; 0: never. */
    readonly guestExpiryDays: number
    /** Bearer token for `GET /metrics`; undefined: this machine reads in development, nobody in production. */
    readonly metricsToken: Redacted.Redacted | undefined
    readonly logs: {
      readonly level: LogLevel
      readonly format: "json" | "pretty"
      readonly requests: "failed" | "all"
    }
    /** Export of traces; undefined: no tracing. */
    readonly traces:
      | {
          readonly protocol: "http/protobuf" | "http/json"
          readonly serviceName: string
          readonly ratio: number
        }
      | undefined
  }
>()("server/platform/settings/settings/Settings") {
  static readonly layer: Layer.Layer<Settings, SettingsError> = Layer.effect(
    Settings,
    Effect.gen(function* () {
      const env = yield* decode(Record.filter(yield* environment, (text) => text !== undefined))
      const port = yield* portOf(env)
      const { SVC_RUNNER_HOST: runnerHost, SVC_RUNNER_PORT: runnerPort } = env
      const baseUrl = withoutSlash(env.SVC_BASE_URL) ?? `http://localhost:${port}`
      return Settings.of({
        production: env.NODE_ENV === "production",
        port,
        host: env.HOST,
        maxConnections: env.SVC_MAX_CONNECTIONS,
        connectionsPerAddress:
          env.SVC_THROTTLES === "on" ? env.SVC_CONNECTIONS_PER_ADDRESS : Number.POSITIVE_INFINITY,
        databaseUrl: env.DATABASE_URL,
        databaseConnections: env.SVC_DATABASE_CONNECTIONS,
        lockDatabaseUrl: env.SVC_LOCK_DATABASE_URL,
        dataDir: env.SVC_DATA_DIR,
        baseUrl,
        masterKey: env.SVC_MASTER_KEY,
        olderMasterKeys: env.SVC_OLDER_MASTER_KEYS,
        runner:
          runnerHost === undefined || runnerPort === undefined
            ? undefined
            : { host: runnerHost, port: runnerPort, tls: tlsFiles(env) },
        mail: {
          smtpUrl: env.SMTP_URL,
          from: env.SVC_MAIL_FROM ?? `no-reply@${new URL(baseUrl).hostname}`
        },
        throttles: env.SVC_THROTTLES === "on",
        demoGames: env.SVC_DEMO_GAMES === "on" && env.NODE_ENV !== "production",
        signups: env.SVC_SIGNUPS,
        setupToken: env.SVC_SETUP_TOKEN,
        dashboard: env.SVC_DASHBOARD,
        trustedProxies: env.SVC_TRUSTED_PROXIES,
        warnings: warningsOf(env, baseUrl, yield* unknownNames(Object.keys(variables))),
        ...mediaOf(env),
        ...oauthOf(env),
        features: new Set(env.SVC_FEATURES),
        saves: {
          maxBytes: env.SVC_SAVE_MAX_BYTES,
          perPlayer: env.SVC_SAVES_PER_PLAYER,
          guestBytes: env.SVC_GUEST_SAVE_BYTES,
          environmentBytes: env.SVC_ENVIRONMENT_SAVE_BYTES
        },
        hosting: hostingOf(env),
        functions: functionsOf(env),
        money: moneyOf(env),
        guestExpiryDays: env.SVC_GUEST_EXPIRY_DAYS,
        metricsToken: env.SVC_METRICS_TOKEN,
        logs: {
          level: logLevels[env.SVC_LOG_LEVEL],
          format: env.SVC_LOG_FORMAT ?? (env.NODE_ENV === "production" ? "json" : "pretty"),
          requests: env.SVC_LOG_REQUESTS
        },
        traces:
          env.OTEL_EXPORTER_OTLP_ENDPOINT === undefined
            ? undefined
            : {
                protocol: env.OTEL_EXPORTER_OTLP_PROTOCOL,
                serviceName: env.OTEL_SERVICE_NAME,
                ratio: env.OTEL_TRACES_SAMPLER_ARG
              }
      })
    }).pipe(
      Effect.mapError((error) =>
        error._tag !== "SchemaError"
          ? new SettingsError({ issues: [error.message] })
          : new SettingsError({
              issues: format(error.issue).issues.map(
                ({ path = [], message }) => `${path.map(String).join(".")}: ${message}`
              )
            })
      )
    )
  )
}
