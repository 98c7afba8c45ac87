/**
 * Context of requests: what layers set for all work, such as loggers. Effect copies it for each request, so
 * it has no services; handlers and routes take theirs when they are built.
 */
import {
  Clock,
  ConfigProvider,
  Console,
  Context,
  Effect,
  Layer,
  Logger,
  Metric,
  Random,
  References,
  Scheduler,
  Scope,
  Tracer
} from "effect"
import { HttpMiddleware, HttpServer, UrlParams } from "effect/http"
import { ConnectionShares } from "#sql/connection-shares"

/** The references that layers of the service, or of tests, set and that work of a request may read. */
const references = [
  Clock.Clock,
  ConfigProvider.ConfigProvider,
  ConnectionShares,
  Console.Console,
  HttpMiddleware.SpanNameGenerator,
  HttpMiddleware.TracerDisabledWhen,
  HttpMiddleware.TracerHeaderFilter,
  Logger.CurrentLoggers,
  Metric.MetricRegistry,
  Random.Random,
  References.CurrentLogAnnotations,
  References.MinimumLogLevel,
  References.TracerEnabled,
  Scheduler.Scheduler,
  Tracer.MinimumTraceLevel,
  Tracer.Tracer,
  UrlParams.CurrentRedactedNames
] as const

/** The same server, whose requests have no services in their context. */
export const ServerWithSmallContext = Layer.effect(
  HttpServer.HttpServer,
  Effect.map(HttpServer.HttpServer, (server) =>
    HttpServer.make({
      address: server.address,
      serve: (handler) =>
        Effect.updateContext(server.serve(handler), (context: Context.Context<Scope.Scope>) =>
          Context.pick(Scope.Scope, ...references)(context)
        )
    })
  )
)
