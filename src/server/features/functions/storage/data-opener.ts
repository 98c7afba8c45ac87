/** Opens the data of functions under an epoch: the data on this disk, or the newest snapshot. */
import { mkdir } from "node:fs/promises"
import { join } from "node:path"
import { Effect } from "effect"
import type { EnvironmentId } from "#rpc/ids"
import { SnapshotRepository } from "#sql/functions/snapshots"
import { attempt } from "#server/platform/blobs/store"
import { makeTransaction } from "#server/platform/database"
import type { DataDirectories } from "../host/directories.ts"
import { versionsOf } from "./pinned-files.ts"
import { noFiles } from "./manifest.ts"
import { openedBy, setOpenedBy } from "./marker.ts"
import type { Objects } from "./objects.ts"
import { restoreFiles } from "./restore.ts"
import { type Base, loadManifest } from "./snapshot-writer.ts"

/**
 * Source of opened data: `local` if the data on this disk is the newest, `restored` from a snapshot, or
 * `empty` without a snapshot.
 */
export type FoundData = "local" | "restored" | "empty"

export interface OpenedData {
  readonly found: FoundData
  readonly base: Base | undefined
}

/** Makes this epoch the one that may write. Returns whether the data on this disk is the newest. */
const makeOwn = Effect.gen(function* () {
  const rows = yield* SnapshotRepository
  const transaction = yield* makeTransaction
  return (environmentId: EnvironmentId, epoch: number, directory: string) =>
    transaction(
      Effect.gen(function* () {
        const data = yield* rows.lock(environmentId)
        if (data !== undefined && data.epoch > epoch) return "refused"
        yield* rows.own({ environmentId, epoch })
        // Nobody has opened the data since it was last opened on this disk.
        const isNewest = data === undefined || (openedBy(directory) ?? 0) >= data.epoch
        // Before the commit: else a crash would make the newest data look old.
        if (isNewest) yield* Effect.sync(() => setOpenedBy(directory, epoch))
        return { isNewest, number: data?.newestSnapshot ?? 0 }
      })
    )
})

/** Opens data; returns `refused` if a newer epoch has opened it. */
export const makeOpen = Effect.fnUntraced(function* (
  directories: DataDirectories,
  objects: Objects
) {
  const own = yield* makeOwn
  const rows = yield* SnapshotRepository
  return Effect.fn("FunctionSnapshots.restore")(function* (
    environmentId: EnvironmentId,
    epoch: number
  ) {
    const directory = directories.snapshotsOf(environmentId)
    const owned = yield* own(environmentId, epoch, directory)
    if (owned === "refused") return owned
    if (owned.isNewest) return { found: "local", base: undefined } satisfies OpenedData
    const newest = yield* rows.newest(environmentId)
    const manifest =
      newest === undefined ? noFiles : yield* loadManifest(objects, environmentId, newest.manifest)
    const files = join(directory, "restored")
    yield* attempt("create a directory", () => mkdir(directory, { recursive: true, mode: 0o700 }))
    yield* restoreFiles(objects, environmentId, manifest, files)
    yield* attempt("replace the data of functions", async () => {
      await directories.replace(environmentId, files)
      setOpenedBy(directory, epoch)
    })
    const versions = versionsOf(directories.dataOf(environmentId))
    return {
      found: newest === undefined ? "empty" : "restored",
      base: { number: owned.number, manifest, versions }
    } satisfies OpenedData
  }, Effect.uninterruptible)
})
