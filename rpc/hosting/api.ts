/**
 * Hosting: deployments of an app's files. A deployment names all files with their SHA-256; only files that
 * the environment does not have yet are uploaded. Activating a finalized deployment makes it live.
 */
import { Schema, SchemaTransformation } from "effect"
import { HttpApiEndpoint, HttpApiSchema, OpenApi } from "effect/http-api"
import {
  BodyMaxBytes,
  type CallerLimit,
  CallerRate,
  FeatureGate,
  RequiredFeature,
  Requests,
  SecretKey
} from "../auth.ts"
import {
  BlobHashMismatch,
  BlobsMissing,
  DomainNotVerified,
  NotFound,
  StorageQuotaExceeded,
  TooManyDomains,
  wire
} from "../errors/codes.ts"
import { group, tagMount } from "../feature.ts"
import { DeploymentId } from "../ids.ts"
import { keyParams, type MountParams, projectParams, underProject } from "../mounts.ts"
import { operation, type OperationFacts } from "../operations.ts"
import { PageLimit } from "../pages.ts"
import { Deleted } from "../responses.ts"
import { textUpTo, Timestamp } from "../text.ts"
import { CustomDomain, DomainList, DomainName } from "./domains.ts"
import { hosting } from "./limits.ts"

/** SHA-256 of a file's bytes, in lower-case hexadecimal digits. */
export const Sha256 = Schema.String.check(
  Schema.isPattern(/^[0-9a-f]{64}$/, {
    message: "Expected a SHA-256 of 64 lower-case hexadecimal digits"
  })
)

/** A file of a deployment. `path` is relative, `size` is in bytes. */
export const DeployedFile = Schema.Struct({
  path: Schema.String,
  sha256: Sha256,
  size: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: hosting.blobMaxBytes }))
}).annotate({
  identifier: "DeployedFile",
  description: "A file of a deployment. `path` is relative, `size` is in bytes."
})
export type DeployedFile = typeof DeployedFile.Type

/** Body of a new deployment: all its files, and `message`, its description. */
const NewDeployment = Schema.Struct({
  files: Schema.Array(DeployedFile).check(
    Schema.isMinLength(1),
    Schema.isMaxLength(hosting.filesMax)
  ),
  message: Schema.optionalKey(textUpTo(hosting.messageMaxCharacters))
})
export type NewDeployment = typeof NewDeployment.Type

/**
 * A version of the app. `missing` are the SHA-256 of files that still have to be uploaded, of
 * `missingBytes` together; both are empty once it is `ready`. Timestamps are ISO 8601 UTC.
 */
export const Deployment = Schema.Struct({
  deploymentId: DeploymentId,
  version: Schema.Int,
  status: Schema.Literals(["uploading", "ready"]),
  live: Schema.Boolean,
  message: Schema.NullOr(Schema.String),
  fileCount: Schema.Int,
  totalBytes: Schema.Finite,
  missing: Schema.Array(Schema.String),
  missingBytes: Schema.Finite,
  createdAt: Timestamp,
  finalizedAt: Schema.NullOr(Timestamp),
  activatedAt: Schema.NullOr(Timestamp),
  /** Address of this version, live or not; null without a hosting domain. */
  url: Schema.NullOr(Schema.String)
}).annotate({
  identifier: "Deployment",
  description:
    "A version of the app's files. `missing` lists the SHA-256 of files that still have to be uploaded."
})
export type Deployment = typeof Deployment.Type

/** A deployment with its files. */
const DeploymentManifest = Schema.Struct({
  ...Deployment.fields,
  files: Schema.Array(DeployedFile)
}).annotate({ identifier: "DeploymentManifest", description: "A deployment with its files." })

const DeploymentPage = Schema.Struct({
  deployments: Schema.Array(Deployment),
  nextCursor: Schema.NullOr(Schema.String)
}).annotate({ identifier: "DeploymentPage", description: "Deployments, newest first." })

/** A stored file. */
const StoredBlob = Schema.Struct({ sha256: Schema.String, size: Schema.Int }).annotate({
  identifier: "StoredBlob",
  description: "A stored file."
})

/**
 * Addresses of the app. `urls` always show the live version; `previewUrl` is the pattern of the
 * address of one version. Both need a hosting domain.
 */
export const Hosting = Schema.Struct({
  enabled: Schema.Boolean,
  urls: Schema.Array(Schema.String),
  live: Schema.NullOr(
    Schema.Struct({
      deploymentId: DeploymentId,
      version: Schema.Int,
      activatedAt: Timestamp
    })
  ),
  previewUrl: Schema.NullOr(Schema.String),
  /** Bytes of stored and expected files, and the most that the environment may have. */
  usedBytes: Schema.Finite,
  limitBytes: Schema.Finite
}).annotate({
  identifier: "Hosting",
  description:
    "The addresses of the app and its live version. `previewUrl` is the pattern for one version."
})
export type Hosting = typeof Hosting.Type

/** Cursor of a page: the version of the last deployment. */
const Cursor = Schema.String.check(
  Schema.isPattern(/^\d{1,9}$/, { message: "Expected the nextCursor of a previous response" })
).pipe(Schema.decodeTo(Schema.Int, SchemaTransformation.numberFromString))

const feature = "hosting"

const deploymentRate: CallerLimit = {
  burst: 60,
  seconds: 3600,
  name: "deployment",
  per: "environment"
}

/** DNS queries. */
const domainRate: CallerLimit = { burst: 30, seconds: 600, name: "domain", per: "environment" }

/** The operations, for agents. */
const operations = {
  activate: {
    tool: {
      name: "deployment_activate",
      description: "Make a deployment live, by its id or version: a promotion or a rollback",
      effect: "destroys",
      idempotent: true
    }
  },
  list: {
    tool: {
      name: "deployments_list",
      description: "List the deployments of the hosted app, newest first",
      effect: "reads"
    }
  }
} as const satisfies Record<string, OperationFacts>

const writes = <P extends MountParams>(params: P) =>
  [
    HttpApiEndpoint.post("create", "/deployments", {
      params,
      payload: NewDeployment,
      success: Deployment,
      error: wire(StorageQuotaExceeded)
    })
      .annotate(RequiredFeature, feature)
      .annotate(BodyMaxBytes, hosting.manifestMaxBytes)
      .annotate(CallerRate, deploymentRate)
      .annotate(OpenApi.Summary, "Create a deployment; the response lists what to upload"),
    HttpApiEndpoint.put("upload", "/blobs/:sha256", {
      params: { ...params, sha256: Schema.String },
      payload: HttpApiSchema.StreamUint8Array(),
      success: StoredBlob,
      error: [wire(BlobHashMismatch), wire(NotFound)]
    })
      .annotate(RequiredFeature, feature)
      .annotate(OpenApi.Summary, "Upload one missing file as raw bytes"),
    HttpApiEndpoint.post("finalize", "/deployments/:ref/finalize", {
      params: { ...params, ref: Schema.String },
      payload: Schema.Struct({ activate: Schema.optionalKey(Schema.Boolean) }),
      success: Deployment,
      error: [wire(BlobsMissing), wire(NotFound)]
    })
      .annotate(RequiredFeature, feature)
      .annotate(OpenApi.Summary, "Complete a deployment after its upload"),
    HttpApiEndpoint.post("activate", "/deployments/:ref/activate", {
      params: { ...params, ref: Schema.String },
      success: Deployment,
      error: [wire(BlobsMissing), wire(NotFound)]
    })
      .annotate(RequiredFeature, feature)
      .annotateMerge(operation("Make a deployment live, for a rollback, too", operations.activate))
  ] as const

const reads = <P extends MountParams>(params: P) =>
  [
    HttpApiEndpoint.get("list", "/deployments", {
      params,
      query: { limit: Schema.optionalKey(PageLimit), cursor: Schema.optionalKey(Cursor) },
      success: DeploymentPage
    }).annotateMerge(operation("List deployments, newest first", operations.list)),
    HttpApiEndpoint.get("get", "/deployments/:ref", {
      params: { ...params, ref: Schema.String },
      success: DeploymentManifest,
      error: wire(NotFound)
    }).annotate(OpenApi.Summary, "Get a deployment with its files, by id or version"),
    HttpApiEndpoint.get("hosting", "/hosting", { params, success: Hosting }).annotate(
      OpenApi.Summary,
      "Get the addresses of the app and its live version"
    )
  ] as const

const domains = <P extends MountParams>(params: P) =>
  [
    HttpApiEndpoint.get("listDomains", "/hosting/domains", {
      params,
      success: DomainList
    }).annotate(OpenApi.Summary, "List the custom domains of the app"),
    HttpApiEndpoint.post("addDomain", "/hosting/domains", {
      params,
      payload: Schema.Struct({ domain: DomainName }),
      success: CustomDomain,
      error: wire(TooManyDomains)
    })
      .annotate(RequiredFeature, feature)
      .annotate(OpenApi.Summary, "Add a custom domain; the response says how to prove it"),
    HttpApiEndpoint.post("verifyDomain", "/hosting/domains/:domain/verify", {
      params: { ...params, domain: Schema.String },
      success: CustomDomain,
      error: [wire(DomainNotVerified), wire(NotFound)]
    })
      .annotate(RequiredFeature, feature)
      .annotate(CallerRate, domainRate)
      .annotate(OpenApi.Summary, "Look for the TXT record of a custom domain, and serve it"),
    HttpApiEndpoint.delete("removeDomain", "/hosting/domains/:domain", {
      params: { ...params, domain: Schema.String },
      success: Deleted,
      error: wire(NotFound)
    }).annotate(OpenApi.Summary, `Remove a custom domain; an app has at most ${hosting.domainsMax}`)
  ] as const

const endpoints = <Id extends string, P extends MountParams>(id: Id, params: P) =>
  group(id, "server", "Hosting", "Deployments of the app's files, and its addresses.").add(
    ...writes(params),
    ...reads(params),
    ...domains(params)
  )

/** `/v1/deployments`, `/v1/blobs` and `/v1/hosting`, with the secret key. */
export class HostingApi extends tagMount(endpoints("hosting", keyParams), "server")
  .annotateEndpoints(RequiredFeature, feature)
  .prefix("/v1")
  .middleware(Requests)
  .middleware(FeatureGate)
  .middleware(SecretKey) {}

/** The same for developers of the project, who can also read while the feature is off. */
export class ProjectHostingApi extends underProject(
  endpoints("projectHosting", projectParams).middleware(FeatureGate)
) {}
