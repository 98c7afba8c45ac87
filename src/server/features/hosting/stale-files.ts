/**
 * Files of versions that were live until a few days ago. A page that was opened before a deploy loads
 * them by names with a hash, which the new version lacks.
 */
import { DateTime, Effect } from "effect"
import type { EnvironmentId } from "#rpc/ids"
import { batchReads } from "#sql/batching"
import { DeploymentRepository, type StaleFileRow } from "#sql/hosting/deployments"
import { Settings } from "#server/platform/settings/settings"
import { isHashed } from "./media-types.ts"
import { decodePath, makeFile, type SiteFile } from "./site.ts"

/**
 * Returns a function that finds the file of a path in the version that was live last and has it. Only
 * names with a hash are looked up: other files may differ between versions.
 */
export const makeStaleFiles = Effect.gen(function* () {
  const deployments = yield* DeploymentRepository
  const { staleDays } = (yield* Settings).hosting
  const find = yield* batchReads<StaleFileRow>((environmentId, paths) =>
    Effect.gen(function* () {
      const since = DateTime.subtract(yield* DateTime.now, { days: staleDays })
      const rows = yield* deployments.staleFiles({ environmentId, paths, since })
      return new Map(rows.map((row) => [row.path, row]))
    })
  )
  return Effect.fnUntraced(function* (
    environmentId: EnvironmentId,
    path: string
  ): Effect.fn.Return<SiteFile | undefined> {
    const name = decodePath(path.slice(1))
    if (staleDays === 0 || name === undefined || !isHashed(name)) return undefined
    const row = (yield* find(environmentId, [name])).get(name)
    return row && makeFile(row, row)
  })
})
