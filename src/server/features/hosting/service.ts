/**
 * Deployments of apps: creation, upload, completion and activation. The database lists the files of an
 * environment, and the blob store holds their bytes. A deployment is live on every runner within a
 * second of its activation.
 */
import { Context, DateTime, Effect, Layer, Option } from "effect"
import { SecureRandom } from "effect/crypto"
import { CurrentActor, type EnvironmentCaller } from "#rpc/auth"
import { BlobsMissing, NotFound, PayloadTooLarge, StorageQuotaExceeded } from "#rpc/errors/codes"
import type { Deployment, DeployedFile, NewDeployment } from "#rpc/hosting/api"
import { hosting } from "#rpc/hosting/limits"
import { type DeploymentId, type EnvironmentId, newId } from "#rpc/ids"
import { AppRepository } from "#sql/hosting/apps"
import { BlobRepository } from "#sql/hosting/blobs"
import { DeploymentRepository, type DeploymentRow, parseRef } from "#sql/hosting/deployments"
import { requireCredentials } from "#server/platform/credential-check"
import { makeTransaction } from "#server/platform/database"
import { Invalidation } from "#server/platform/invalidation"
import { Settings } from "#server/platform/settings/settings"
import { Audit, type AuditEvent } from "../audit/service.ts"
import { makeAddresses } from "./addresses.ts"
import { Blobs } from "./blobs.ts"
import { contentsOf, invalidFiles, manifestIssues, sizeIssues } from "./manifest.ts"
import { makeSettingsCheck } from "./settings-check.ts"

/** Deployments of environments. `ref` is an id or a version. */
export class Deployments extends Context.Service<Deployments>()(
  "server/features/hosting/service/Deployments",
  {
    make: Effect.gen(function* () {
      const view = yield* makeView
      const create = yield* makeCreate
      const { activate, finalize } = yield* makeChanges
      const deployments = yield* DeploymentRepository
      const find = yield* makeFind
      const invalidation = yield* Invalidation
      return {
        create: (environment: EnvironmentCaller, deployment: NewDeployment) =>
          Effect.flatMap(create(environment, deployment), (id) => view.byId(environment, id)),
        finalize: (environment: EnvironmentCaller, ref: string, live: boolean) =>
          finalize(environment, ref, live).pipe(
            Effect.tap(() => invalidation.awaitAcknowledgements),
            Effect.flatMap((id) => view.byId(environment, id))
          ),
        activate: (environment: EnvironmentCaller, ref: string) =>
          activate(environment, ref).pipe(
            Effect.tap(() => invalidation.awaitAcknowledgements),
            Effect.flatMap((id) => view.byId(environment, id))
          ),
        page: Effect.fn("Deployments.page")(function* (
          environment: EnvironmentCaller,
          page: { readonly before: number; readonly limit: number }
        ) {
          const { environmentId } = environment
          const slug = yield* view.slugOf(environmentId)
          const rows = yield* deployments.page({ environmentId, ...page })
          return yield* Effect.forEach(rows, (row) => view.of(environment, row, slug))
        }),
        get: Effect.fn("Deployments.get")(function* (environment: EnvironmentCaller, ref: string) {
          const { environmentId } = environment
          const row = yield* find(environmentId, ref)
          const files = yield* deployments.files({ environmentId, id: row.id })
          if (files === undefined) return yield* new NotFound()
          const slug = yield* view.slugOf(environmentId)
          return { ...(yield* view.of(environment, row, slug)), files }
        }),
        hosting: view.hosting
      }
    })
  }
) {
  static readonly layer = Layer.effect(Deployments, this.make).pipe(Layer.provide(Blobs.layer))
}

const makeFind = Effect.map(DeploymentRepository, (deployments) =>
  Effect.fnUntraced(function* (environmentId: EnvironmentId, text: string) {
    const ref = parseRef(text)
    if (Option.isNone(ref)) return yield* new NotFound()
    const found = yield* deployments.find({ environmentId, ...ref.value })
    return Option.isSome(found) ? found.value : yield* new NotFound()
  })
)

const format = (time: DateTime.Utc | null): string | null =>
  time === null ? null : DateTime.formatIso(time)

/** Responses: deployments and the state of hosting. */
const makeView = Effect.gen(function* () {
  const apps = yield* AppRepository
  const blobs = yield* BlobRepository
  const deployments = yield* DeploymentRepository
  const { baseUrl, hosting } = yield* Settings
  const addresses = makeAddresses({ baseUrl, domain: hosting.domain })
  const slugOf = (environmentId: EnvironmentId) =>
    Effect.map(apps.byId(environmentId), (found) => Option.getOrUndefined(found)?.slug)
  const of = Effect.fnUntraced(function* (
    { environmentId, name }: EnvironmentCaller,
    { id, createdAt, activatedAt, finalizedAt, ...row }: DeploymentRow,
    slug: string | undefined
  ) {
    const missing = row.status === "ready" ? [] : yield* deployments.missing({ environmentId, id })
    const deployment: Deployment = {
      ...row,
      deploymentId: id,
      missing: missing.map(({ sha256 }) => sha256),
      missingBytes: missing.reduce((sum, { size }) => sum + size, 0),
      createdAt: DateTime.formatIso(createdAt),
      finalizedAt: format(finalizedAt),
      activatedAt: format(activatedAt),
      url: slug === undefined ? null : addresses.version(slug, name, row.version)
    }
    return deployment
  })
  return {
    of,
    slugOf,
    byId: Effect.fnUntraced(function* (environment: EnvironmentCaller, id: DeploymentId) {
      const { environmentId } = environment
      const row = yield* deployments.find({ environmentId, id, version: null })
      const found = yield* Effect.orDie(Effect.fromOption(row))
      return yield* of(environment, found, yield* slugOf(environmentId))
    }),
    hosting: Effect.fn("Deployments.hosting")(function* (
      { environmentId, name }: EnvironmentCaller,
      enabled: boolean
    ) {
      const slug = yield* slugOf(environmentId)
      const url = slug === undefined ? undefined : addresses.live(slug, name)
      const live = Option.getOrNull(yield* deployments.live(environmentId))
      return {
        enabled,
        urls: url === undefined ? [] : [url],
        live:
          live === null
            ? null
            : {
                deploymentId: live.id,
                version: live.version,
                activatedAt: DateTime.formatIso(live.activatedAt ?? live.createdAt)
              },
        previewUrl: slug === undefined ? null : addresses.version(slug, name, "{version}"),
        usedBytes: yield* blobs.bytesOfEnvironment(environmentId),
        limitBytes: hosting.environmentBytes
      }
    })
  }
})

/** Registers the expected contents of a deployment, within the quota. */
const makeExpectContents = Effect.gen(function* () {
  const blobs = yield* BlobRepository
  const limit = (yield* Settings).hosting.environmentBytes
  return Effect.fnUntraced(function* (
    environmentId: EnvironmentId,
    files: ReadonlyArray<DeployedFile>
  ) {
    const before = yield* blobs.bytesOfEnvironment(environmentId)
    const rows = yield* blobs.expect({ environmentId, ...contentsOf(files) })
    const stored = new Map(
      rows.flatMap((row): ReadonlyArray<[string, number]> =>
        row.stored ? [[row.sha256, row.size]] : []
      )
    )
    const issues = sizeIssues(files, stored)
    if (issues.length > 0) return yield* invalidFiles(issues)
    const used = yield* blobs.bytesOfEnvironment(environmentId)
    if (used <= limit || used <= before) return
    return yield* new StorageQuotaExceeded({
      message:
        "The files of this environment are full. Old deployments are removed in time; or ask the " +
        "operator for more room.",
      details: { limit, used: before }
    })
  })
})

const makeCreate = Effect.gen(function* () {
  const audit = yield* Audit
  const deployments = yield* DeploymentRepository
  const expectContents = yield* makeExpectContents
  const random = yield* SecureRandom.SecureRandom
  const transaction = yield* makeTransaction
  return Effect.fn("Deployments.create")(function* (
    environment: EnvironmentCaller,
    { files, message }: NewDeployment
  ) {
    const { environmentId } = environment
    const issues = manifestIssues(files)
    if (issues.length > 0) return yield* invalidFiles(issues)
    const { totalBytes } = contentsOf(files)
    if (totalBytes > hosting.deploymentMaxBytes) {
      return yield* new PayloadTooLarge({ details: { limit: hosting.deploymentMaxBytes } })
    }
    const { id: createdBy } = yield* CurrentActor
    const id = yield* Effect.provideService(newId.deployment, SecureRandom.SecureRandom, random)
    const createdAt = yield* DateTime.now
    return yield* transaction(
      Effect.gen(function* () {
        const { lastVersion } = yield* deployments.lockApp(environmentId)
        yield* expectContents(environmentId, files)
        const version = lastVersion + 1
        const fileCount = files.length
        const row = {
          id,
          environmentId,
          version,
          status: "uploading",
          createdBy,
          createdAt
        } as const
        yield* deployments.insert(
          { ...row, message: message ?? null, fileCount, totalBytes },
          files
        )
        yield* deployments.trimUnfinished(environmentId, hosting.unfinishedMax)
        yield* audit.record(environment, {
          action: "deployment.create",
          target: { kind: "deployment", id },
          details: { version, files: fileCount, bytes: totalBytes }
        })
        return id
      })
    )
  })
})

const missingFiles = (hashes: ReadonlyArray<{ readonly sha256: string }>) =>
  new BlobsMissing({ details: { missing: hashes.map(({ sha256 }) => sha256) } })

const eventOf = (action: AuditEvent["action"], { id, version }: DeploymentRow): AuditEvent => ({
  action,
  target: { kind: "deployment", id },
  details: { version }
})

/**
 * Fails if a deployment cannot be completed. Reads the files before the transaction, which only checks
 * again for missing ones: the list of files never changes.
 */
const makeExpectComplete = Effect.gen(function* () {
  const deployments = yield* DeploymentRepository
  const find = yield* makeFind
  const checkSettings = yield* makeSettingsCheck
  return Effect.fnUntraced(function* (environmentId: EnvironmentId, ref: string) {
    const { id, status } = yield* find(environmentId, ref)
    if (status === "ready") return
    const missing = yield* deployments.missing({ environmentId, id })
    if (missing.length > 0) return yield* missingFiles(missing)
    yield* checkSettings(environmentId, id)
  })
})

/** Marks a deployment as ready once the store has all of its files. */
const makeComplete = Effect.gen(function* () {
  const audit = yield* Audit
  const deployments = yield* DeploymentRepository
  const invalidation = yield* Invalidation
  const { retentionDays } = (yield* Settings).hosting
  return Effect.fnUntraced(function* (environment: EnvironmentCaller, row: DeploymentRow) {
    const { environmentId } = environment
    if (row.status === "ready") return
    const missing = yield* deployments.missing({ environmentId, id: row.id })
    if (missing.length > 0) return yield* missingFiles(missing)
    const now = yield* DateTime.now
    yield* deployments.markReady({ environmentId, id: row.id, now })
    // A node that was asked for this version before knows that there was none.
    yield* invalidation.publish({ kind: "config", id: environmentId })
    const since = DateTime.subtract(now, { days: retentionDays })
    yield* deployments.deleteOld({ environmentId, since, kept: hosting.keptDeployments })
    yield* audit.record(environment, eventOf("deployment.finalize", row))
  })
})

const makeChanges = Effect.gen(function* () {
  const audit = yield* Audit
  const complete = yield* makeComplete
  const expectComplete = yield* makeExpectComplete
  const deployments = yield* DeploymentRepository
  const find = yield* makeFind
  const invalidation = yield* Invalidation
  const transaction = yield* makeTransaction

  /** Activates a deployment. Changes nothing if it is already live. */
  const makeLive = Effect.fnUntraced(function* (
    environment: EnvironmentCaller,
    row: DeploymentRow,
    liveId: DeploymentId | null
  ) {
    if (liveId === row.id) return
    const { environmentId } = environment
    yield* deployments.activate({ environmentId, id: row.id, now: yield* DateTime.now })
    // A node reloads the app of an environment with its config.
    yield* invalidation.publish({ kind: "config", id: environmentId })
    yield* audit.record(environment, eventOf("deployment.activate", row))
  })

  return {
    finalize: Effect.fn("Deployments.finalize")(function* (
      environment: EnvironmentCaller,
      ref: string,
      live: boolean
    ) {
      yield* expectComplete(environment.environmentId, ref)
      yield* requireCredentials
      return yield* transaction(
        Effect.gen(function* () {
          const { liveId } = yield* deployments.lockApp(environment.environmentId)
          const row = yield* find(environment.environmentId, ref)
          yield* complete(environment, row)
          if (live) yield* makeLive(environment, row, liveId)
          return row.id
        })
      )
    }),
    activate: Effect.fn("Deployments.activate")(function* (
      environment: EnvironmentCaller,
      ref: string
    ) {
      const { environmentId } = environment
      return yield* transaction(
        Effect.gen(function* () {
          const { liveId } = yield* deployments.lockApp(environmentId)
          const row = yield* find(environmentId, ref)
          if (row.status !== "ready") {
            return yield* missingFiles(yield* deployments.missing({ environmentId, id: row.id }))
          }
          yield* makeLive(environment, row, liveId)
          return row.id
        })
      )
    })
  }
})
