/**
 * The environment config over HTTP (spec section 4.7, decisions 3.5): the raw document goes in and
 * out, so that `pull` and `push` round-trip; the document itself is `./config/document.ts`.
 */
import { Schema, SchemaTransformation } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { PublishableKey, Requests, SecretKey } from "./auth.ts"
import { Definitions } from "./config-document/definitions.ts"
import {
  ConfigConflict,
  FeatureUnavailable,
  InvalidConfig,
  Issue,
  NotFound,
  wire
} from "./errors/codes.ts"
import { exceedsDepth } from "./json.ts"
import { config, http } from "./limits.ts"
import { keyParams, type MountParams, projectParams, underKey, underProject } from "./mounts.ts"

/** The answer of a push: the version in force and what the push changed. */
export const ConfigPushed = Schema.Struct({
  configVersion: Schema.Int,
  changed: Schema.Array(Schema.String),
  warnings: Schema.Array(Issue)
})
export type ConfigPushed = typeof ConfigPushed.Type

/** A document as a push brings it: JSON whose rules are looked at later, but not without a bottom. */
const Pushed = Schema.Unknown.check(
  Schema.makeFilter((document) =>
    exceedsDepth(document, config.documentDepthMax)
      ? `Expected at most ${config.documentDepthMax} levels`
      : undefined
  )
).pipe(Schema.decodeTo(Schema.Json))

/** A version that was pushed: by a key (its id), a developer or `system`, at an ISO 8601 time. */
export const ConfigVersion = Schema.Struct({
  configVersion: Schema.Int,
  pushedBy: Schema.String,
  createdAt: Schema.String
})

const VersionText = Schema.String.check(Schema.isPattern(/^\d{1,9}$/)).pipe(
  Schema.decodeTo(Schema.Int, SchemaTransformation.numberFromString)
)

const Limit = Schema.FiniteFromString.check(
  Schema.isInt(),
  Schema.isBetween({ minimum: 1, maximum: http.pageMax })
)

const documents = <Id extends string, P extends MountParams>(id: Id, params: P) =>
  HttpApiGroup.make(id).add(
    HttpApiEndpoint.get("read", "/config", {
      params,
      success: HttpApiSchema.WithHeaders(Schema.Json, { etag: Schema.String })
    }).annotate(OpenApi.Summary, "The config document in force"),
    HttpApiEndpoint.put("push", "/config", {
      params,
      headers: { "if-match": Schema.optionalKey(Schema.String) },
      payload: Pushed,
      success: ConfigPushed,
      error: [wire(InvalidConfig), wire(ConfigConflict), wire(FeatureUnavailable)]
    }).annotate(OpenApi.Summary, "Validate a whole config document and put it in force"),
    HttpApiEndpoint.get("versions", "/config/versions", {
      params,
      query: { limit: Schema.optionalKey(Limit), cursor: Schema.optionalKey(VersionText) },
      success: Schema.Struct({
        versions: Schema.Array(ConfigVersion),
        nextCursor: Schema.NullOr(Schema.String)
      })
    }).annotate(OpenApi.Summary, "The versions that were pushed, newest first"),
    HttpApiEndpoint.get("version", "/config/versions/:version", {
      params: { ...params, version: VersionText },
      success: Schema.Json,
      error: wire(NotFound)
    }).annotate(OpenApi.Summary, "The config document of a version")
  )

/** `/v1/config`: master data of the key's environment, and every version of it. */
export class ConfigApi extends documents("config", keyParams)
  .prefix("/v1")
  .middleware(Requests)
  .middleware(SecretKey) {}

/** The same for the developers of the project. */
export class ProjectConfigApi extends underProject(documents("projectConfig", projectParams)) {}

/**
 * A feature of an environment. `source` says what turns it on: the config's switch at `configPath`,
 * or an endpoint (then there is no path). What is not `offered` by this deployment cannot be on.
 */
export const FeatureState = Schema.Struct({
  key: Schema.String,
  title: Schema.String,
  configPath: Schema.NullOr(Schema.String),
  source: Schema.Literals(["config", "endpoint"]),
  enabled: Schema.Boolean,
  offered: Schema.Boolean
})
export type FeatureState = typeof FeatureState.Type

const features = <Id extends string, P extends MountParams>(id: Id, params: P) =>
  HttpApiGroup.make(id).add(
    HttpApiEndpoint.get("list", "/features", {
      params,
      success: Schema.Struct({ features: Schema.Array(FeatureState) })
    }).annotate(OpenApi.Summary, "Every feature, and whether it is on")
  )

/** `/v1/admin/features`: every feature of the key's environment (spec section 4.7, decisions 3.5.5). */
export class FeaturesApi extends underKey(features("features", keyParams)) {}

/** The same for the developers of the project. */
export class ProjectFeaturesApi extends underProject(features("projectFeatures", projectParams)) {}

/**
 * `/v1/gamedata/definitions`: the public part of the config, for pages and apps (spec section 4.3).
 * May be kept for a minute; with `If-None-Match` an unchanged one is 304 without a body.
 */
export class DefinitionsApi extends HttpApiGroup.make("definitions")
  .add(
    HttpApiEndpoint.get("read", "/definitions", {
      headers: { "if-none-match": Schema.optionalKey(Schema.String) },
      success: [
        HttpApiSchema.WithHeaders(Definitions, {
          etag: Schema.String,
          "cache-control": Schema.String
        }),
        HttpApiSchema.Empty(304)
      ]
    }).annotate(OpenApi.Summary, "The public part of the config")
  )
  .prefix("/v1/gamedata")
  .middleware(Requests)
  .middleware(PublishableKey) {}
