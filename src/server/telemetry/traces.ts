/**
 * OpenTelemetry traces over OTLP/HTTP, if `OTEL_EXPORTER_OTLP_ENDPOINT` is set; else there are no spans,
 * at no cost. A trace begins with a request or with a frame that moves a player, or continues that of a
 * `traceparent` header. Entity calls and statements are its child spans. Background work is not traced.
 *
 * Spans contain no statement parameters, and no query values of URLs.
 */
import { Config, ConfigProvider, Effect, Layer, Option, References, Tracer } from "effect"
import { SecureRandom } from "effect/crypto"
import { FetchHttpClient, HttpMiddleware, UrlParams } from "effect/http"
import { OtlpSerialization, OtlpTracer } from "effect/observability"
import { paths } from "#rpc/paths"
import { Settings } from "#server/platform/settings/settings"
import { routeOf } from "#server/http/routes"

type Traces = NonNullable<Settings["Service"]["traces"]>

const idShareDigits = 8

/** Whether a trace is sampled: by its id, so every node decides the same. */
const isChosen = (traceId: string, ratio: number): boolean =>
  Number.parseInt(traceId.slice(-idShareDigits), 16) < ratio * 16 ** idShareDigits

/** Samples by ratio, also traces that a caller began. Only external requests begin a trace. */
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

/** Effect reads the standard variables; it exports only with this one. */
const variables = ConfigProvider.layerAdd(
  ConfigProvider.fromEnv({ env: { OTEL_TRACES_EXPORTER: "otlp" } })
)

/** Probes and scrapes would be most of the traces. */
const untraced: ReadonlySet<string | undefined> = new Set(["/healthz", "/readyz", paths.metrics])

/** Names spans by route, and redacts query values, which may be secrets. */
const requestSpans = Layer.mergeAll(
  Layer.succeed(
    HttpMiddleware.SpanNameGenerator,
    ({ method, url }) => `${method} ${routeOf(method, url) ?? "(no route)"}`
  ),
  Layer.succeed(HttpMiddleware.TracerDisabledWhen, ({ method, url }) =>
    untraced.has(routeOf(method, url))
  ),
  Layer.succeed(UrlParams.CurrentRedactedNames, [/(?:)/])
)

/** Id of this process, unless the standard variable names one. */
const instance = Effect.gen(function* () {
  const given = yield* Config.String("OTEL_RESOURCE_ATTRIBUTES").pipe(Config.withDefault(""))
  if (/(?:^|,)\s*service\.instance\.id=/.test(given)) return {}
  return { "service.instance.id": yield* (yield* SecureRandom.SecureRandom).uuidV4() }
}).pipe(Effect.orDie, Effect.provide(SecureRandom.layerWebCrypto))

const on = ({ protocol, ratio, serviceName }: Traces) => {
  const otlp = Layer.unwrap(
    Effect.map(instance, (attributes) =>
      OtlpTracer.layerFromConfig({ resource: { serviceName, attributes } })
    )
  ).pipe(
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

/** Tracing as the settings say. */
export const TracesLive = Layer.unwrap(
  Effect.map(Settings, ({ traces }): Layer.Layer<never> =>
    traces === undefined ? off : on(traces)
  )
)
