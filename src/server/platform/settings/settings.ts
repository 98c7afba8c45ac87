/**
 * Settings of the process, decoded from environment variables by their tables; the defaults suit a laptop.
 * Effect's Config reads them, so a test provides them as a record.
 */
import { Config, Context, Effect, Layer, Record, Schema, SchemaIssue } from "effect"
import { accountIssues, accounts, developerClientsOf, developerOAuth, mail } from "./accounts.ts"
import { cluster, clusterIssues, runnerOf } from "./cluster.ts"
import { database, databaseIssues, guests, saves } from "./data.ts"
import { baseUrlWarnings, lossWarnings, proxyWarnings } from "./deployment.ts"
import { freePort } from "./free-port.ts"
import { functionBounds, functionProcesses } from "./functions.ts"
import { apps, bucket, deployments, hostingIssues, hostingOf } from "./hosting.ts"
import { turn, turnIssues, voice } from "./media.ts"
import { money, moneyIssues, moneyOf } from "./money.ts"
import { network, networkIssues } from "./network.ts"
import { offered, throttling } from "./offer.ts"
import { fieldsOf, settingsIn, textOf, valuesOf } from "./table.ts"
import { logs, logsOf, metrics, mode, traces, tracesOf } from "./telemetry.ts"
import { unknownNames, unknownWarning } from "./unknown-names.ts"
import { withoutSlash } from "./values.ts"

/** Environment variables that the service cannot start with, each with the expected value. */
export class SettingsError extends Schema.TaggedError<SettingsError>()("SettingsError", {
  /** Issues, such as `SVC_RUNNER_PORT: must be set together with SVC_RUNNER_HOST`. */
  issues: Schema.Array(Schema.String)
}) {
  override get message(): string {
    return this.issues.join("; ")
  }
}

/** The tables of each section of the page that lists the settings. */
export const sections = {
  Network: [network],
  Data: [database, saves, guests, deployments, functionProcesses, bucket, functionBounds],
  Cluster: [cluster],
  "Accounts and mail": [mail, accounts, developerOAuth],
  Money: [money],
  Features: [offered, apps, throttling, turn, voice],
  "Logs, metrics, traces": [metrics, logs, traces, mode]
} as const

const all = settingsIn(Object.values(sections).flat())

/** All settings, by their environment variables. */
export const variables = Record.fromIterableBy(all, ({ variable }) => variable)

const Environment = Schema.Struct(fieldsOf(all)).check(
  Schema.makeFilter((env) => [
    ...networkIssues(env),
    ...databaseIssues(env),
    ...clusterIssues(env),
    ...accountIssues(env),
    ...moneyIssues(env),
    ...hostingIssues(env),
    ...turnIssues(env)
  ])
)
type Environment = typeof Environment.Type

const decode = Schema.decodeUnknownEffect(Environment, { errors: "all" })

const format = SchemaIssue.makeFormatterStandardSchemaV1()

const warningsOf = (
  env: Environment,
  baseUrl: string,
  unknown: ReadonlyArray<string>
): ReadonlyArray<string> => [
  ...unknown.map((name) => unknownWarning(name, Object.keys(variables))),
  ...proxyWarnings(env.SVC_TRUSTED_PROXIES),
  ...(env.NODE_ENV === "production"
    ? [...baseUrlWarnings(env.SVC_BASE_URL, baseUrl), ...lossWarnings(env)]
    : [])
]

/**
 * The port to listen on. Without a base URL, links and tokens name this port: then 0 becomes a free one
 * here, before the server listens.
 */
const portOf = ({ HOST, PORT, SVC_BASE_URL }: Environment) =>
  PORT !== 0 || SVC_BASE_URL !== undefined ? Effect.succeed(PORT) : freePort(HOST)

const settingsOf = (env: Environment, port: number, unknown: ReadonlyArray<string>) => {
  const production = env.NODE_ENV === "production"
  const baseUrl = withoutSlash(env.SVC_BASE_URL) ?? `http://localhost:${port}`
  const { connectionsPerAddress, host, maxConnections, trustedProxies } = valuesOf(network, env)
  const { demoGames, features } = valuesOf(offered, env)
  const { throttles } = valuesOf(throttling, env)
  const { from = `no-reply@${new URL(baseUrl).hostname}`, smtpUrl } = valuesOf(mail, env)
  return {
    production,
    /** Base URL without a trailing slash. */
    baseUrl,
    port,
    host,
    maxConnections,
    connectionsPerAddress: throttles ? connectionsPerAddress : Number.POSITIVE_INFINITY,
    trustedProxies,
    ...valuesOf(database, env),
    saves: valuesOf(saves, env),
    ...valuesOf(guests, env),
    hosting: hostingOf(env),
    functions: { ...valuesOf(functionProcesses, env), ...valuesOf(functionBounds, env) },
    runner: runnerOf(env),
    mail: { from, smtpUrl },
    ...valuesOf(accounts, env),
    developerClients: developerClientsOf(env),
    money: moneyOf(env),
    demoGames: demoGames && !production,
    features: new Set(features),
    throttles,
    turn: valuesOf(turn, env),
    voice: valuesOf(voice, env),
    ...valuesOf(metrics, env),
    logs: logsOf(env),
    traces: tracesOf(env),
    /** Warnings about unsafe settings of this deployment, for the operator. */
    warnings: warningsOf(env, baseUrl, unknown)
  }
}

/** The settings of this process. Their tables say what each is for. */
export class Settings extends Context.Service<Settings, ReturnType<typeof settingsOf>>()(
  "server/platform/settings/settings/Settings"
) {
  static readonly layer: Layer.Layer<Settings, SettingsError> = Layer.effect(
    Settings,
    Effect.gen(function* () {
      const texts = yield* Config.all(Record.map(variables, textOf))
      const env = yield* decode(Record.filter(texts, (text) => text !== undefined))
      const unknown = yield* unknownNames(Object.keys(variables))
      return Settings.of(settingsOf(env, yield* portOf(env), unknown))
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
