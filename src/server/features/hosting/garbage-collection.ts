/**
 * Removal of old deployments and of files that no deployment names. The sweep keeps a file for a day
 * after the last deployment that names it. It locks the file's row during the removal, so that no
 * upload in progress loses data.
 */
import { DateTime, Effect, Layer } from "effect"
import { hosting } from "#rpc/hosting/limits"
import type { EnvironmentId } from "#rpc/ids"
import { BlobRepository } from "#sql/hosting/blobs"
import { DeploymentRepository } from "#sql/hosting/deployments"
import { BlobStore } from "#server/platform/blobs/store"
import { makeTransaction, sweepHourly } from "#server/platform/database"
import { Settings } from "#server/platform/settings/settings"
import { type BlobForm, keyOf } from "./blobs.ts"

/** Number of blobs that one transaction removes while it locks their rows. */
const batch = 20

const forms: ReadonlyArray<BlobForm> = ["", ".br", ".gz"]

/** Deletes expired data at a given time: deployments, then files that none of them names. */
export const makeCollect = Effect.gen(function* () {
  const deployments = yield* DeploymentRepository
  const rows = yield* BlobRepository
  const store = yield* BlobStore
  const transaction = yield* makeTransaction
  const { retentionDays } = (yield* Settings).hosting
  const removeDeployments = (environmentId: EnvironmentId, now: DateTime.Utc) =>
    transaction(
      Effect.gen(function* () {
        // None of them may become live meanwhile.
        yield* deployments.lockAppIfAny(environmentId)
        yield* deployments.deleteUnfinished(
          environmentId,
          DateTime.subtract(now, { seconds: hosting.unfinishedSeconds })
        )
        const since = DateTime.subtract(now, { days: retentionDays })
        yield* deployments.deleteOld({ environmentId, since, kept: hosting.keptDeployments })
      })
    )
  const removeBatch = (environmentId: EnvironmentId, before: DateTime.Utc) =>
    transaction(
      Effect.gen(function* () {
        const hashes = yield* rows.lockForgotten({ environmentId, before, limit: batch })
        const keys = hashes.flatMap((sha256) =>
          forms.map((form) => keyOf(environmentId, sha256, form))
        )
        yield* store.remove(keys)
        yield* rows.delete(environmentId, hashes)
        return hashes.length
      })
    )
  const collect = Effect.fnUntraced(function* (environmentId: EnvironmentId, now: DateTime.Utc) {
    yield* removeDeployments(environmentId, now)
    yield* rows.markOrphans({ environmentId, now })
    const before = DateTime.subtract(now, { seconds: hosting.orphanSeconds })
    yield* rows.forgetOrphans(environmentId, before)
    yield* Effect.repeat(removeBatch(environmentId, before), {
      until: (removed) => removed < batch
    })
  })
  return Effect.fn("Blobs.collect")(function* (now: DateTime.Utc) {
    const environments = yield* deployments.environments
    yield* Effect.forEach(environments, (id) => collect(id, now), { discard: true })
  }, Effect.orDie)
})

/** Runs the collection every hour. */
export const GarbageCollectionLive = Layer.effectDiscard(
  Effect.flatMap(makeCollect, (collect) => sweepHourly("Files of deployments", collect))
)
