/** Health, readiness and the public token keys of the process. The endpoints need no key. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiSchema, OpenApi } from "effect/http-api"
import { Requests } from "./auth.ts"
import { feature, group } from "./feature.ts"
import { mapMember, refTo } from "./openapi/json.ts"

/** Whether the process can serve players, and the checks behind it. */
const readiness = <const Ready extends boolean>(ready: Ready) =>
  Schema.Struct({
    /** The id of the process, new at each start. */
    node: Schema.String,
    ready: Schema.Literal(ready),
    database: Schema.Boolean,
    shards: Schema.Boolean,
    draining: Schema.Boolean
  }).annotate({
    identifier: ready ? "Ready" : "NotReady",
    description: `The process can${ready ? "" : "not"} serve players, and the checks behind that.`
  })

/** Effect lets the error of a status replace the success response of the same status: adds the latter. */
const withNotReady = (operation: Record<string, unknown>): Record<string, unknown> => ({
  ...operation,
  responses: mapMember(operation["responses"], "503", (response) =>
    mapMember(response, "content", (content) =>
      mapMember(content, "application/json", (media) =>
        mapMember(media, "schema", (schema) => ({ anyOf: [refTo("NotReady"), schema] }))
      )
    )
  )
})

/** The public keys that verify access tokens (RFC 7517). */
const JsonWebKeySet = Schema.Struct({
  keys: Schema.Array(Schema.Record(Schema.String, Schema.Json))
}).annotate({
  identifier: "JsonWebKeySet",
  description: "The public keys that verify access tokens (RFC 7517)."
})

export class SystemApi extends group(
  "system",
  "developers",
  "System",
  "Liveness, readiness, and the public keys (JWKS) that verify access tokens."
)
  .add(
    HttpApiEndpoint.get("health", "/healthz", {
      success: Schema.Struct({
        status: Schema.Literal("ok"),
        /** Absent with a Postgres of your own. */
        embeddedPostgres: Schema.optionalKey(Schema.Literals(["running", "restarting"]))
      }).annotate({
        identifier: "Health",
        description: "The process is up."
      })
    }).annotate(OpenApi.Summary, "The process is up"),
    HttpApiEndpoint.get("ready", "/readyz", {
      success: [readiness(true), readiness(false).pipe(HttpApiSchema.status(503))]
    })
      .annotate(OpenApi.Summary, "Database reachable, shards assigned, not draining")
      .annotate(OpenApi.Transform, withNotReady),
    HttpApiEndpoint.get("jwks", "/.well-known/jwks.json", {
      success: HttpApiSchema.WithHeaders(JsonWebKeySet, { "cache-control": Schema.String })
    }).annotate(OpenApi.Summary, "Public keys of the access tokens")
  )
  .middleware(Requests) {}

export const systemFeature = feature({
  word: "system",
  groups: [SystemApi]
})
