/** Takes snapshots. Copies the changed data, stores it, and registers it in one transaction. */
import { rm } from "node:fs/promises"
import { join } from "node:path"
import { promisify } from "node:util"
import { gunzip, gzip } from "node:zlib"
import { DateTime, Effect } from "effect"
import { functionSnapshots } from "#rpc/functions/runtime-limits"
import type { EnvironmentId } from "#rpc/ids"
import { SnapshotRepository } from "#sql/functions/snapshots"
import { attempt } from "#server/platform/blobs/store"
import { makeTransaction } from "#server/platform/database"
import type { DataDirectories } from "../host/directories.ts"
import { copyChanged, type Copied, type Writer } from "./copy.ts"
import { isChanged, type FileVersions } from "./pinned-files.ts"
import {
  bytesOf,
  decodeManifest,
  encodeManifest,
  type Manifest,
  manifestOf,
  noFiles,
  reusable,
  type SnapshotFile
} from "./manifest.ts"
import type { Objects } from "./objects.ts"

/** Newest snapshot, on which the next one builds. */
export interface Base {
  readonly number: number
  readonly manifest: Manifest
  /** Versions of the databases in the snapshot; empty if unknown. */
  readonly versions: FileVersions
}

/** Data that this runner has opened. */
export interface OpenData {
  readonly environmentId: EnvironmentId
  readonly epoch: number
  /** Base of the next snapshot; undefined while it must be loaded. */
  base: Base | undefined
}

export interface TakenSnapshot {
  readonly number: number
  /** Bytes of all files. */
  readonly bytes: number
}

const compress = promisify(gzip)
const decompress = promisify(gunzip)

/** Loads the list of the files of a snapshot. */
export const loadManifest = Effect.fnUntraced(function* (
  objects: Pick<Objects, "read">,
  environmentId: EnvironmentId,
  manifest: string
) {
  const bytes = yield* objects.read(environmentId, manifest)
  return yield* attempt("read the files of a snapshot", async () =>
    decodeManifest((await decompress(bytes)).toString("utf8"))
  )
})

/** Returns the files of the base that need no new copy, and the versions of databases among them. */
const knownOf = ({ manifest, versions }: Base) => {
  const files = reusable(manifest, () => true)
  return {
    files,
    versions: new Map([...versions].filter(([path]) => files.has(path))),
    hasBlob: (path: string) => files.has(path)
  }
}

/** Returns the files that a snapshot keeps of its base. */
const keptOf = (
  known: ReadonlyMap<string, SnapshotFile>,
  { blobs, copies, versions }: Copied
): ReadonlyArray<SnapshotFile> =>
  [...blobs, ...versions.keys()]
    .filter((path) => !copies.has(path))
    .map((path) => {
      const file = known.get(path)
      if (file === undefined) throw new Error(`Failed to find ${path} in any snapshot`)
      return file
    })

const makeCommit = Effect.gen(function* () {
  const rows = yield* SnapshotRepository
  const transaction = yield* makeTransaction
  return (
    { environmentId, epoch }: OpenData,
    before: number,
    manifest: Manifest,
    manifestObject: string
  ) =>
    transaction(
      Effect.gen(function* () {
        const data = yield* rows.lock(environmentId)
        if (data === undefined || data.epoch !== epoch) return "refused"
        // The data was purged meanwhile.
        if (data.newestSnapshot !== before) return "outdated"
        const takenAt = yield* DateTime.now
        const bytes = bytesOf(manifest)
        const number = before + 1
        yield* rows.append(
          { environmentId, number, epoch, takenAt, bytes, manifest: manifestObject },
          [...Object.keys(manifest.objects), manifestObject],
          functionSnapshots.kept
        )
        return { number, bytes }
      })
    )
})

/** Removes objects that no kept snapshot names, while the epoch may write. */
const makeCollect = Effect.fnUntraced(function* (objects: Objects) {
  const rows = yield* SnapshotRepository
  const transaction = yield* makeTransaction
  const removeSome = ({ environmentId, epoch }: OpenData, newest: number) =>
    transaction(
      Effect.gen(function* () {
        if ((yield* rows.lock(environmentId))?.epoch !== epoch) return 0
        const hashes = yield* rows.lockDropped({
          environmentId,
          before: newest - functionSnapshots.kept + 1,
          limit: functionSnapshots.removedAtOnce
        })
        if (hashes.length === 0) return 0
        yield* objects.remove(environmentId, hashes)
        yield* rows.deleteObjects(environmentId, hashes)
        return hashes.length
      })
    )
  return (opened: OpenData, newest: number) =>
    Effect.repeat(removeSome(opened, newest), {
      until: (removed) => removed < functionSnapshots.removedAtOnce
    })
})

const makeLoadBase = Effect.fnUntraced(function* (objects: Objects) {
  const rows = yield* SnapshotRepository
  const transaction = yield* makeTransaction
  return Effect.fnUntraced(function* (environmentId: EnvironmentId) {
    const data = yield* transaction(rows.lock(environmentId))
    const number = data?.newestSnapshot ?? 0
    const newest = yield* rows.newest(environmentId)
    const manifest =
      newest?.number === number
        ? yield* loadManifest(objects, environmentId, newest.manifest)
        : noFiles
    return { number, manifest, versions: new Map() } satisfies Base
  })
})

/** Takes a snapshot; undefined if nothing has changed. */
export const makeTake = Effect.fnUntraced(function* (
  directories: Pick<DataDirectories, "dataOf" | "snapshotsOf">,
  objects: Objects
) {
  const commit = yield* makeCommit
  const collect = yield* makeCollect(objects)
  const loadBase = yield* makeLoadBase(objects)
  return Effect.fn("FunctionSnapshots.take")(function* (opened: OpenData, writer: Writer) {
    const { environmentId } = opened
    const data = directories.dataOf(environmentId)
    const staging = join(directories.snapshotsOf(environmentId), "copies")
    const base = opened.base ?? (yield* loadBase(environmentId))
    opened.base = base
    if (!isChanged(data, base.versions)) return undefined
    const known = knownOf(base)
    const copied = yield* attempt("copy the data of functions", () =>
      copyChanged({ data, staging }, writer, known)
    )
    const { sizes, stored } = yield* objects.storeFiles(
      environmentId,
      base.number,
      [...copied.copies].map(([path, file]) => ({ path, file })),
      base.manifest.objects
    )
    const manifest = manifestOf([...keptOf(known.files, copied), ...stored], sizes)
    const bytes = yield* attempt("compress", () => compress(encodeManifest(manifest)))
    const manifestObject = yield* objects.storeBytes(environmentId, base.number, bytes)
    yield* attempt("remove copies", () => rm(staging, { recursive: true, force: true }))
    const taken = yield* commit(opened, base.number, manifest, manifestObject)
    if (typeof taken === "string") {
      opened.base = undefined
      return taken
    }
    opened.base = { number: taken.number, manifest, versions: copied.versions }
    yield* Effect.catch(collect(opened, taken.number), (error) =>
      Effect.logWarning("Failed to remove old snapshots of functions", error)
    )
    return taken
  }, Effect.uninterruptible)
})
