/**
 * Prometheus metrics. A value that changes with every frame is a plain number in its module, read
 * on each scrape. Only rare events, such as a request or a statement, update an Effect Metric.
 * Labels have few values: never a player, a room or a project.
 *
 * `GET /metrics` requires `SVC_METRICS_TOKEN`. Without that setting, programs on this machine may
 * read in development, and all others get 404.
 */
import { createHash, timingSafeEqual } from "node:crypto"
import { Context, Effect, Layer, Metric, Redacted } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { PrometheusMetrics } from "effect/observability"
import { NotFound, Unauthorized } from "#rpc/errors/codes"
import { paths } from "#rpc/paths"
import { Settings } from "#server/platform/settings/settings"
import { errorResponse } from "#server/http/errors"
import { isLocalRequest } from "#server/http/local-request"

type Registry = Metric.MetricRegistry

/** Metrics of this service only: several services may run in one process. */
export const RegistryLive = Layer.sync(Metric.MetricRegistry, (): Registry => new Map())

/** Effect Cluster's metrics, renamed. */
const ofCluster: Readonly<Record<string, readonly [name: string, description: string]>> = {
  effect_cluster_entities: ["svc_cluster_entities", "Entities on this node, by type."],
  effect_cluster_entity_mailbox_size_max: [
    "svc_cluster_mailbox_messages_max",
    "Messages in the fullest mailbox of an entity of the type."
  ],
  effect_cluster_runners_healthy: [
    "svc_cluster_healthy",
    "1 while this runner considers itself healthy, else 0."
  ],
  effect_cluster_shards: ["svc_cluster_shards", "Shards that this node holds."],
  effect_cluster_shards_releasing: [
    "svc_cluster_shards_releasing",
    "Shards that this node is releasing."
  ]
}

/** The service's own metrics, and Effect's process-wide ones that are renamed above. */
const registryOf = (context: Context.Context<never>): Registry => {
  const own = Context.get(context, Metric.MetricRegistry)
  const shared = Context.get(Context.empty(), Metric.MetricRegistry)
  const entries = Array.from(new Map([...shared, ...own])).flatMap(([key, metric]) => {
    const [id, description] = ofCluster[metric.id] ?? [metric.id, metric.description]
    return id.startsWith("effect_") ? [] : [[key, { ...metric, id, description }] as const]
  })
  return new Map(entries)
}

/** Returns all metrics in the Prometheus text format. */
export const exposition = Effect.map(Effect.context<never>(), (context) =>
  PrometheusMetrics.formatUnsafe(Context.make(Metric.MetricRegistry, registryOf(context)))
)

const hashOf = (text: string) => createHash("sha256").update(text).digest()

/** Whether the token matches: compares hashes, in constant time. */
const mayRead = (token: Redacted.Redacted, authorization: string | undefined): boolean =>
  timingSafeEqual(hashOf(`Bearer ${Redacted.value(token)}`), hashOf(authorization ?? ""))

/** `GET /metrics`. */
export const MetricsRoute = HttpRouter.use(
  Effect.fnUntraced(function* (router) {
    const { metricsToken, production } = yield* Settings
    const context = yield* Effect.context<never>()
    const page = Effect.map(Effect.provideContext(exposition, context), (text) =>
      HttpServerResponse.text(text, { contentType: "text/plain; version=0.0.4; charset=utf-8" })
    )
    yield* router.add(
      "GET",
      paths.metrics,
      Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) => {
        if (metricsToken === undefined) {
          const isOpen = !production && isLocalRequest(request)
          return isOpen ? page : Effect.succeed(errorResponse(NotFound, new NotFound()))
        }
        return mayRead(metricsToken, request.headers["authorization"])
          ? page
          : Effect.succeed(errorResponse(Unauthorized, new Unauthorized()))
      })
    )
  })
)
