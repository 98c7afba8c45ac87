/**
 * Numbers for Prometheus. What changes with every frame is a plain number of whoever counts it, and is
 * read when somebody asks (a reading); only what is rare, a request or a statement, is a Metric that is
 * told. Labels have few values: never a player, a room or a project.
 *
 * `GET /metrics` answers in the Prometheus text format: in development everybody, in production whoever
 * brings `SVC_METRICS_TOKEN`; without one it is not there.
 */
import { createHash, timingSafeEqual } from "node:crypto"
import { Context, Effect, Layer, Metric, Redacted } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { PrometheusMetrics } from "effect/observability"
import { NotFound, Unauthorized } from "#rpc/errors/codes"
import { paths } from "#rpc/paths"
import { Settings } from "#server/platform/settings/settings"
import { errorResponse } from "#server/http/errors"

type Registry = Metric.MetricRegistry

/** The metrics of this service alone: several may run in one process. */
export const RegistryLive = Layer.sync(Metric.MetricRegistry, (): Registry => new Map())

/** What the library says of the cluster, under our names. */
const ofCluster: Readonly<Record<string, readonly [name: string, description: string]>> = {
  effect_cluster_entities: ["svc_cluster_entities", "Entities that live on this node, by type."],
  effect_cluster_entity_mailbox_size_max: [
    "svc_cluster_mailbox_messages_max",
    "Messages in the fullest mailbox of an entity of the type."
  ],
  effect_cluster_runners_healthy: [
    "svc_cluster_healthy",
    "1 while this runner is one of those that live, as far as it knows; else 0."
  ],
  effect_cluster_shards: ["svc_cluster_shards", "Shards that this node holds."],
  effect_cluster_shards_releasing: [
    "svc_cluster_shards_releasing",
    "Shards that this node hands over right now."
  ]
}

/** Ours, and those of the library that it keeps for the whole process, each with its description. */
const registryOf = (context: Context.Context<never>): Registry => {
  const own = Context.get(context, Metric.MetricRegistry)
  const shared = Context.get(Context.empty(), Metric.MetricRegistry)
  const entries = Array.from(new Map([...shared, ...own])).flatMap(([key, metric]) => {
    const [id, description] = ofCluster[metric.id] ?? [metric.id, metric.description]
    return id.startsWith("effect_") ? [] : [[key, { ...metric, id, description }] as const]
  })
  return new Map(entries)
}

/** All metrics as Prometheus reads them. */
export const exposition = Effect.map(Effect.context<never>(), (context) =>
  PrometheusMetrics.formatUnsafe(Context.make(Metric.MetricRegistry, registryOf(context)))
)

const hashOf = (text: string) => createHash("sha256").update(text).digest()

/** Whether a request may read: compared by hash, in constant time. */
const mayRead = (token: Redacted.Redacted, authorization: string | undefined): boolean =>
  timingSafeEqual(hashOf(`Bearer ${Redacted.value(token)}`), hashOf(authorization ?? ""))

/** `GET /metrics`. */
export const MetricsRoute = HttpRouter.use(
  Effect.fnUntraced(function* (router) {
    const { metricsToken, production } = yield* Settings
    const context = yield* Effect.context<never>()
    const answer = Effect.map(Effect.provideContext(exposition, context), (text) =>
      HttpServerResponse.text(text, { contentType: "text/plain; version=0.0.4; charset=utf-8" })
    )
    yield* router.add(
      "GET",
      paths.metrics,
      Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers }) => {
        if (metricsToken === undefined) {
          return production ? Effect.succeed(errorResponse(NotFound, new NotFound())) : answer
        }
        return mayRead(metricsToken, headers["authorization"])
          ? answer
          : Effect.succeed(errorResponse(Unauthorized, new Unauthorized()))
      })
    )
  })
)
