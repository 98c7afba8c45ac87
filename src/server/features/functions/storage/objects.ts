/**
 * Objects of snapshots in the blob store, named by the hash of their bytes. A large file splits into
 * objects of one size, so that a change stores only the objects that differ. Small files share an
 * object.
 */
import { createHash } from "node:crypto"
import { open, readFile, writeFile } from "node:fs/promises"
import { Effect } from "effect"
import { functionSnapshots } from "#rpc/functions/runtime-limits"
import type { EnvironmentId } from "#rpc/ids"
import { SnapshotRepository } from "#sql/functions/snapshots"
import { attempt, BlobNotFound, BlobStore } from "#server/platform/blobs/store"
import type { SnapshotFile } from "./manifest.ts"

const keyOf = (environmentId: EnvironmentId, object: string): string =>
  `${environmentId}/functions/${object}`

const hashOf = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex")

/** New file of a snapshot. */
export interface NewFile {
  readonly path: string
  /** Path of the file with its bytes. */
  readonly file: string
}

/** Yields the bytes of objects in the order of the files, with few of them in memory. */
async function* objectsOf(
  files: Iterable<NewFile>,
  done: (file: SnapshotFile) => void
): AsyncGenerator<Buffer> {
  let shared: Array<Buffer> = []
  let sharing: Array<{ readonly path: string; readonly offset: number; readonly size: number }> = []
  let sharedBytes = 0
  const share = (): Buffer => {
    const bytes = Buffer.concat(shared)
    const object = hashOf(bytes)
    for (const { offset, path, size } of sharing) {
      done({ path, size, parts: size === 0 ? [] : [{ object, offset, length: size }] })
    }
    shared = []
    sharing = []
    sharedBytes = 0
    return bytes
  }
  for (const { file, path } of files) {
    const handle = await open(file, "r")
    try {
      const parts: Array<SnapshotFile["parts"][number]> = []
      const { size } = await handle.stat()
      for (let at = 0; size > functionSnapshots.objectBytes / 4 && at < size;) {
        const bytes = Buffer.alloc(Math.min(functionSnapshots.objectBytes, size - at))
        const { bytesRead } = await handle.read(bytes, 0, bytes.length, at)
        if (bytesRead < bytes.length)
          throw new Error(`Failed to read ${path}: it has become shorter`)
        parts.push({ object: hashOf(bytes), offset: 0, length: bytes.length })
        at += bytes.length
        yield bytes
      }
      if (parts.length > 0) {
        done({ path, size, parts })
        continue
      }
      if (sharedBytes + size > functionSnapshots.objectBytes) yield share()
      shared.push(await handle.readFile())
      sharing.push({ path, offset: sharedBytes, size })
      sharedBytes += size
    } finally {
      await handle.close()
    }
  }
  if (sharing.length > 0) yield share()
}

/** Stores objects. First writes rows that schedule their removal unless a snapshot names them. */
const makePutAll = Effect.gen(function* () {
  const rows = yield* SnapshotRepository
  const store = yield* BlobStore
  const put = Effect.fnUntraced(function* (environmentId: EnvironmentId, bytes: Uint8Array) {
    const file = yield* store.temporaryFile
    yield* attempt("write an object", () => writeFile(file, bytes, { flag: "wx" }))
    yield* store.archive(keyOf(environmentId, hashOf(bytes)), file)
  }, Effect.scoped)
  return Effect.fnUntraced(function* (
    environmentId: EnvironmentId,
    newest: number,
    objects: ReadonlyMap<string, Uint8Array>
  ) {
    yield* rows.expect({ environmentId, hashes: [...objects.keys()], droppedBy: newest })
    yield* Effect.forEach(objects.values(), (bytes) => put(environmentId, bytes), {
      concurrency: functionSnapshots.objectsAtOnce,
      discard: true
    })
  })
})

/** Writes and reads the objects of environments. */
export const makeObjects = Effect.gen(function* () {
  const store = yield* BlobStore
  const putAll = yield* makePutAll

  /**
   * Stores files and returns the sizes of all objects. Skips `known` objects, which the store already
   * has.
   */
  const storeFiles = Effect.fnUntraced(function* (
    environmentId: EnvironmentId,
    newest: number,
    files: Iterable<NewFile>,
    known: Readonly<Record<string, number>>
  ) {
    const stored: Array<SnapshotFile> = []
    const sizes: Record<string, number> = { ...known }
    const objects = objectsOf(files, (file) => stored.push(file))
    let waiting = new Map<string, Uint8Array>()
    for (;;) {
      const next = yield* attempt("read the data of functions", () => objects.next())
      if (next.done !== true) {
        const object = hashOf(next.value)
        if (sizes[object] === undefined) waiting.set(object, next.value)
        sizes[object] = next.value.length
      }
      if (waiting.size >= functionSnapshots.objectsAtOnce || next.done === true) {
        if (waiting.size > 0) yield* putAll(environmentId, newest, waiting)
        waiting = new Map()
      }
      if (next.done === true) return { stored, sizes }
    }
  })

  return {
    storeFiles,
    /** Stores one object; returns its hash. */
    storeBytes: Effect.fnUntraced(function* (
      environmentId: EnvironmentId,
      newest: number,
      bytes: Uint8Array
    ) {
      const object = hashOf(bytes)
      yield* putAll(environmentId, newest, new Map([[object, bytes]]))
      return object
    }),
    /** Reads the bytes of an object and verifies them. */
    read: Effect.fnUntraced(function* (environmentId: EnvironmentId, object: string) {
      const key = keyOf(environmentId, object)
      const file = yield* store.fetchArchived(key)
      const bytes = yield* attempt("read an object", () => readFile(file))
      return hashOf(bytes) === object ? bytes : yield* new BlobNotFound({ key })
    }, Effect.scoped),
    remove: (environmentId: EnvironmentId, objects: ReadonlyArray<string>) =>
      store.remove(objects.map((object) => keyOf(environmentId, object)))
  }
})

export type Objects = Effect.Success<typeof makeObjects>
