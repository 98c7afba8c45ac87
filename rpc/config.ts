/**
 * Environment config over HTTP. The endpoints exchange the raw document, so that `pull` and `push`
 * round-trip; `rpc/config-document/document.ts` defines its schema.
 */
import { Schema, SchemaTransformation } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import {
  BodyMaxBytes,
  type CallerLimit,
  CallerRate,
  PublishableKey,
  Requests,
  SecretKey
} from "./auth.ts"
import { Definitions } from "./config-document/definitions.ts"
import { configLimits } from "./config-document/limits.ts"
import {
  ConfigConflict,
  FeatureUnavailable,
  InvalidConfig,
  Issue,
  NotFound,
  wire
} from "./errors/codes.ts"
import { feature, group, tagMount } from "./feature.ts"
import { exceedsDepth } from "./json.ts"
import { keyParams, type MountParams, projectParams, underKey, underProject } from "./mounts.ts"
import { operation, type OperationFacts } from "./operations.ts"
import { PageLimit } from "./pages.ts"
import { Timestamp } from "./text.ts"

/** Response of a push: the current version, the changed paths and the warnings. */
export const ConfigPushed = Schema.Struct({
  configVersion: Schema.Int,
  changed: Schema.Array(Schema.String),
  warnings: Schema.Array(Issue)
}).annotate({
  identifier: "ConfigPushed",
  description: "The current version, the changed paths and the warnings."
})
export type ConfigPushed = typeof ConfigPushed.Type

/** Payload of a push: JSON of bounded depth. The service checks the schema of the config later. */
const Pushed = Schema.Unknown.check(
  Schema.makeFilter((document) =>
    exceedsDepth(document, configLimits.documentDepthMax)
      ? `Expected at most ${configLimits.documentDepthMax} levels of nesting`
      : undefined
  )
).pipe(Schema.decodeTo(Schema.Json))

/** A pushed version. `pushedBy` is the id of a key or a developer, or `system`; `createdAt` is ISO 8601. */
export const ConfigVersion = Schema.Struct({
  configVersion: Schema.Int,
  pushedBy: Schema.String,
  createdAt: Timestamp
}).annotate({
  identifier: "ConfigVersion",
  description:
    "A pushed version of the config. `pushedBy` is the id of a key or a developer, or `system`."
})

const ConfigVersionPage = Schema.Struct({
  versions: Schema.Array(ConfigVersion),
  nextCursor: Schema.NullOr(Schema.String)
}).annotate({
  identifier: "ConfigVersionPage",
  description: "A page of config versions, newest first."
})

const VersionText = Schema.String.check(
  Schema.isPattern(/^\d{1,9}$/, { message: "Expected the number of a version" })
).pipe(Schema.decodeTo(Schema.Int, SchemaTransformation.numberFromString))

/** Validations of documents: a large one blocks the process for a moment. */
const pushRate: CallerLimit = { burst: 30, seconds: 60, name: "config-push", per: "environment" }

/** The operations on the document, for agents. */
const operations = {
  push: { audit: "config.push" },
  versions: { tool: { name: "config_versions", effect: "reads" } },
  version: { tool: { name: "config_version_read", effect: "reads" } }
} as const satisfies Record<string, OperationFacts>

const documents = <Id extends string, P extends MountParams>(id: Id, params: P) =>
  group(
    id,
    "server",
    "Config",
    "Reading and replacing the environment's config, and its versions."
  ).add(
    HttpApiEndpoint.get("read", "/config", {
      params,
      success: HttpApiSchema.WithHeaders(Schema.Json, { etag: Schema.String })
    }).annotate(OpenApi.Summary, "Read the current config document"),
    HttpApiEndpoint.put("push", "/config", {
      params,
      headers: { "if-match": Schema.optionalKey(Schema.String) },
      payload: Pushed,
      success: ConfigPushed,
      error: [wire(InvalidConfig), wire(ConfigConflict), wire(FeatureUnavailable)]
    })
      .annotateMerge(operation("Validate a whole config document and apply it", operations.push))
      .annotate(CallerRate, pushRate)
      .annotate(BodyMaxBytes, configLimits.bodyMaxBytes),
    HttpApiEndpoint.get("versions", "/config/versions", {
      params,
      query: { limit: Schema.optionalKey(PageLimit), cursor: Schema.optionalKey(VersionText) },
      success: ConfigVersionPage
    }).annotateMerge(operation("List the pushed versions, newest first", operations.versions)),
    HttpApiEndpoint.get("version", "/config/versions/:version", {
      params: { ...params, version: VersionText },
      success: Schema.Json,
      error: wire(NotFound)
    }).annotateMerge(operation("Read the config document of a version", operations.version))
  )

/** `/v1/config`: the config of the key's environment and its versions. */
export class ConfigApi extends tagMount(documents("config", keyParams), "server")
  .prefix("/v1")
  .middleware(Requests)
  .middleware(SecretKey) {}

/** The same endpoints for the developers of the project. */
export class ProjectConfigApi extends underProject(documents("projectConfig", projectParams)) {}

/** A config document with its version. */
const VersionedConfig = Schema.Struct({ configVersion: Schema.Int, document: Schema.Json })

/** What a push would change: the lines of a unified diff, and the warnings. */
const ConfigDiff = Schema.Struct({
  configVersion: Schema.Int,
  diff: Schema.String,
  warnings: Schema.Array(Issue)
})

const document = Pushed.annotate({ description: "The whole config document" })

const exchanges = {
  read: {
    tool: {
      name: "config_read",
      description: "Read the config of the environment and its version",
      effect: "reads"
    }
  },
  diff: {
    tool: {
      name: "config_diff",
      description:
        "Validate a config document and show how it differs from the one in force. Changes nothing. " +
        "config_push needs the configVersion that this returns.",
      effect: "reads"
    }
  },
  push: {
    audit: "config.push",
    tool: {
      name: "config_push",
      description:
        "Put a config document in force. Call config_diff first, show the diff to a person, and pass the " +
        "configVersion that it returned: the push fails if somebody else has changed the config meanwhile.",
      effect: "destroys"
    }
  }
} as const satisfies Record<string, OperationFacts>

/**
 * `/v1/admin/config` in the process: the config for agents, which have no headers. The version stands
 * beside the document instead.
 */
export class ConfigExchangeApi extends underKey(
  HttpApiGroup.make("configExchange")
    .add(
      HttpApiEndpoint.get("read", "/config", { success: VersionedConfig }).annotateMerge(
        operation("Read the current config document with its version", exchanges.read)
      ),
      HttpApiEndpoint.post("diff", "/config/diff", {
        payload: Schema.Struct({ document }),
        success: ConfigDiff,
        error: [wire(InvalidConfig), wire(FeatureUnavailable)]
      })
        .annotateMerge(
          operation(
            "Validate a config document and compare it with the current one",
            exchanges.diff
          )
        )
        .annotate(CallerRate, pushRate),
      HttpApiEndpoint.post("push", "/config/push", {
        payload: Schema.Struct({
          document,
          configVersion: Schema.Int.annotate({
            description: "The version that config_diff returned"
          })
        }),
        success: ConfigPushed,
        error: [wire(InvalidConfig), wire(ConfigConflict), wire(FeatureUnavailable)]
      })
        .annotateMerge(
          operation("Apply a config document to the version that it was made from", exchanges.push)
        )
        .annotate(CallerRate, pushRate)
    )
    .annotateEndpoints(BodyMaxBytes, configLimits.bodyMaxBytes)
) {}

/**
 * State of a feature in an environment. `description` says what it opens, in a sentence. `source` says
 * what enables it: the config switch at `configPath`, or an endpoint (then the path names it). A feature
 * that is not `offered` by the deployment cannot be enabled.
 */
export const FeatureState = Schema.Struct({
  key: Schema.String,
  title: Schema.String,
  // Absent in responses of a service of release 0.1.
  description: Schema.optionalKey(Schema.String),
  configPath: Schema.String,
  source: Schema.Literals(["config", "endpoint"]),
  enabled: Schema.Boolean,
  offered: Schema.Boolean
}).annotate({
  identifier: "FeatureState",
  description:
    "State of a feature. `configPath` is the switch in the config, or the endpoint that enables it, as " +
    "`source` says."
})
export type FeatureState = typeof FeatureState.Type

const FeatureList = Schema.Struct({ features: Schema.Array(FeatureState) }).annotate({
  identifier: "FeatureList",
  description: "All features of the environment."
})

const featuresList = {
  tool: {
    name: "features_list",
    description: "List the features, whether each is on, and where the config turns it on",
    effect: "reads"
  }
} as const satisfies OperationFacts

const features = <Id extends string, P extends MountParams>(id: Id, params: P) =>
  group(id, "server", "Features", "The features of the environment and how to enable them.").add(
    HttpApiEndpoint.get("list", "/features", {
      params,
      success: FeatureList
    }).annotateMerge(operation("List all features and whether they are enabled", featuresList))
  )

/** `/v1/admin/features`: all features of the key's environment. */
export class FeaturesApi extends underKey(features("features", keyParams)) {}

/** The same endpoints for the developers of the project. */
export class ProjectFeaturesApi extends underProject(features("projectFeatures", projectParams)) {}

/**
 * `/v1/gamedata/definitions`: the public part of the config, for pages and apps. Clients may cache it
 * for a minute. A request with a matching `If-None-Match` gets 304 without a body.
 */
export class DefinitionsApi extends group(
  "definitions",
  "games",
  "Definitions",
  "The public part of the environment's config: stats and multiplayer modes."
)
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
    }).annotate(OpenApi.Summary, "Read the public part of the config")
  )
  .prefix("/v1/gamedata")
  .middleware(Requests)
  .middleware(PublishableKey) {}

export const configFeature = feature({
  word: "config",
  groups: [DefinitionsApi, ConfigApi, ProjectConfigApi, FeaturesApi, ProjectFeaturesApi],
  inProcess: [ConfigExchangeApi]
})
