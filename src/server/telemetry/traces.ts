/**
 * Traces for OpenTelemetry, over OTLP/HTTP, when `OTEL_EXPORTER_OTLP_ENDPOINT` says where to; else there
 * are no spans, and nothing is paid for them. A trace begins with a request, or with a frame that moves
 * a player, or goes on where a `traceparent` header says; entities and statements are its parts. What the
 * service does by itself is not traced.
 *
 * Statements are told without their parameters, URLs without the values of their queries.
 */
import { ConfigProvider, Effect, Layer, Option, References, Tracer } from "effect"
import { FetchHttpClient, HttpMiddleware, UrlParams } from "effect/http"
import { OtlpSerialization, OtlpTracer } from "effect/observability"
import { paths } from "#rpc/paths"
import { Settings } from "#server/platform/settings/settings"
import { routeOf } from "#server/http/routes"

type Traces = NonNullable<Settings["Service"]["traces"]>

const idShareDigits = 8

/** Whether the id of a trace is in the share that is recorded: the same on every node. */
const isChosen = (traceId: string, ratio: number): boolean =>
  Number.parseInt(traceId.slice(-idShareDigits), 16) < ratio * 16 ** idShareDigits

/** Records the share of traces, whoever began them; one begins with what comes from outside. */
const sampled = (tracer: Tracer.Tracer, ratio: number): Tracer.Tracer =>
  Tracer.make({
    span: (options) => {
      const span = tracer.span(options)
      const { kind, parent } = options
      if (!options.sampled || (Option.isSome(parent) && parent.value._tag === "Span")) return span
      const begins = Option.isSome(parent) || kind === "server"
      if (begins && isChosen(span.traceId, ratio)) return span
      return tracer.span({ ...options, sampled: false })
    }
  })

/** The library reads the usual variables, and wants this one to begin. */
const variables = ConfigProvider.layerAdd(
  ConfigProvider.fromEnv({ env: { OTEL_TRACES_EXPORTER: "otlp" } })
)

/** What watches the service would be most of the traces. */
const watching: ReadonlySet<string | undefined> = new Set(["/healthz", "/readyz", paths.metrics])

/** Requests by their route; whatever is in a query may be a secret. */
const requestSpans = Layer.mergeAll(
  Layer.succeed(
    HttpMiddleware.SpanNameGenerator,
    ({ method, url }) => `${method} ${routeOf(method, url) ?? "(no route)"}`
  ),
  Layer.succeed(HttpMiddleware.TracerDisabledWhen, ({ method, url }) =>
    watching.has(routeOf(method, url))
  ),
  Layer.succeed(UrlParams.CurrentRedactedNames, [/(?:)/])
)

const on = ({ protocol, ratio, serviceName }: Traces) => {
  const otlp = OtlpTracer.layerFromConfig({ resource: { serviceName } }).pipe(
    Layer.provide(
      protocol === "http/json" ? OtlpSerialization.layerJson : OtlpSerialization.layerProtobuf
    ),
    Layer.provide(FetchHttpClient.layer),
    Layer.provide(variables)
  )
  const tracer = Layer.effect(
    Tracer.Tracer,
    Effect.map(Tracer.Tracer, (tracer) => sampled(tracer, ratio))
  )
  return Layer.merge(tracer.pipe(Layer.provide(otlp)), requestSpans)
}

const off = Layer.succeed(References.TracerEnabled, false)

/** Traces as the settings want them. */
export const TracesLive = Layer.unwrap(
  Effect.map(Settings, ({ traces }): Layer.Layer<never> =>
    traces === undefined ? off : on(traces)
  )
)
