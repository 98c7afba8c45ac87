/** Health, readiness and the public token keys of the process. No key is needed. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Requests } from "./auth.ts"

/** Whether the process can serve players, and the checks behind it. */
const readiness = <const Ready extends boolean>(ready: Ready) =>
  Schema.Struct({
    /** The id of the process, new at each start. */
    node: Schema.String,
    ready: Schema.Literal(ready),
    database: Schema.Boolean,
    shards: Schema.Boolean,
    draining: Schema.Boolean
  }).annotate({ identifier: ready ? "Ready" : "NotReady" })

/** The public keys that verify access tokens (RFC 7517). */
const JsonWebKeySet = Schema.Struct({
  keys: Schema.Array(Schema.Record(Schema.String, Schema.Json))
}).annotate({ identifier: "JsonWebKeySet" })

export class SystemApi extends HttpApiGroup.make("system")
  .add(
    HttpApiEndpoint.get("health", "/healthz", {
      success: Schema.Struct({ status: Schema.Literal("ok") }).annotate({ identifier: "Health" })
    }).annotate(OpenApi.Summary, "The process is up"),
    HttpApiEndpoint.get("ready", "/readyz", {
      success: [readiness(true), readiness(false).pipe(HttpApiSchema.status(503))]
    }).annotate(OpenApi.Summary, "Database reachable, shards assigned, not draining"),
    HttpApiEndpoint.get("jwks", "/.well-known/jwks.json", {
      success: HttpApiSchema.WithHeaders(JsonWebKeySet, { "cache-control": Schema.String })
    }).annotate(OpenApi.Summary, "Public keys of the access tokens")
  )
  .middleware(Requests) {}
