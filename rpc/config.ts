/**
 * The environment config over HTTP (spec section 4.7, decisions 3.5): the raw document goes in and
 * out, so that `pull` and `push` round-trip; the document itself is `./config/document.ts`.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Requests, SecretKey } from "./auth.ts"
import { ConfigConflict, FeatureUnavailable, InvalidConfig, Issue, wire } from "./errors.ts"

/** The answer of a push: the version in force and what the push changed. */
export const ConfigPushed = Schema.Struct({
  configVersion: Schema.Int,
  changed: Schema.Array(Schema.String),
  warnings: Schema.Array(Issue)
})
export type ConfigPushed = typeof ConfigPushed.Type

/** `/v1/config`: master data of the key's environment. */
export class ConfigApi extends HttpApiGroup.make("config")
  .add(
    HttpApiEndpoint.get("read", "/config", {
      success: HttpApiSchema.WithHeaders(Schema.Json, { etag: Schema.String })
    }).annotate(OpenApi.Summary, "The config document in force"),
    HttpApiEndpoint.put("push", "/config", {
      headers: { "if-match": Schema.optionalKey(Schema.String) },
      payload: Schema.Json,
      success: ConfigPushed,
      error: [wire(InvalidConfig), wire(ConfigConflict), wire(FeatureUnavailable)]
    }).annotate(OpenApi.Summary, "Validate a whole config document and put it in force")
  )
  .prefix("/v1")
  .middleware(Requests)
  .middleware(SecretKey) {}
