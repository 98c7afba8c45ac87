/** Settings of logs, metrics and traces, and of the mode of the process. */
import { Schema } from "effect"
import { type EnvironmentOf, optional, setting, valuesOf } from "./table.ts"
import { LogLevel, MetricsToken, metricsTokenMinCharacters, Ratio } from "./values.ts"

export const metrics = {
  metricsToken: optional("SVC_METRICS_TOKEN", MetricsToken)`
    The bearer token for \`GET /metrics\`, ${metricsTokenMinCharacters} characters or more. Absent: programs on this
    machine read in development, nobody in production.`
}

export const logs = {
  level: setting("SVC_LOG_LEVEL", LogLevel, "info")`
    The lowest level that is logged: \`debug\`, \`info\`, \`warning\`, \`error\`.`,
  format: optional("SVC_LOG_FORMAT", Schema.Literals(["json", "pretty"]))`
    \`json\` (one line per event; default in production) or \`pretty\` (default in development).`,
  requests: setting("SVC_LOG_REQUESTS", Schema.Literals(["failed", "all"]), "failed")`
    The requests that are logged: \`failed\` (5xx) or \`all\`.`
}

export const traces = {
  endpoint: optional("OTEL_EXPORTER_OTLP_ENDPOINT", Schema.URLFromString)`
    The OTLP/HTTP collector for traces, \`http://localhost:4318\`. Absent: no traces.`,
  protocol: setting(
    "OTEL_EXPORTER_OTLP_PROTOCOL",
    Schema.Literals(["http/protobuf", "http/json"]),
    "http/protobuf"
  )`
    The encoding of traces: \`http/protobuf\` or \`http/json\`.`,
  serviceName: setting("OTEL_SERVICE_NAME", Schema.String, "player-backend")`
    The name of the service in traces.`,
  ratio: setting("OTEL_TRACES_SAMPLER_ARG", Ratio, 1)`
    The share of traces that is recorded, from 0 to 1.`
}

export const mode = {
  mode: setting("NODE_ENV", Schema.Literals(["production", "development", "test"]), "development")`
    \`production\` seeds no demo project, has no development pages and requires \`SVC_MASTER_KEY\`. \`test\` is the
    same as \`development\`.`
}

interface LogEnvironment extends EnvironmentOf<typeof logs> {
  readonly NODE_ENV: string
}

export const logsOf = (env: LogEnvironment) => {
  const { format, level, requests } = valuesOf(logs, env)
  const usual = env.NODE_ENV === "production" ? ("json" as const) : ("pretty" as const)
  return { level, format: format ?? usual, requests }
}

/** Export of traces; undefined: there is none. */
export const tracesOf = (env: EnvironmentOf<typeof traces>) => {
  const { endpoint, protocol, ratio, serviceName } = valuesOf(traces, env)
  return endpoint === undefined ? undefined : { protocol, serviceName, ratio }
}
