/**
 * Objects of snapshots in the blob store, named by the hash of their bytes. A large file is cut into objects
 * of one size, so that a change stores only those that differ; small files share an object.
 */
import { createHash } from "node:crypto"
import { open, readFile, writeFile } from "node:fs/promises"
import { Effect } from "effect"
import type { EnvironmentId } from "#rpc/ids"
import { functionSnapshots as limits } from "#rpc/function-runtime-limits"
import { SnapshotRepository } from "#sql/functions/snapshots"
import { attempt, BlobNotFound, BlobStore } from "#server/platform/blobs/store"
import type { SnapshotFile } from "./manifest.ts"

const keyOf = (environmentId: EnvironmentId, object: string): string =>
  `${environmentId}/functions/${object}`

const hashOf = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex")

/** A file that a snapshot gets. */
export interface NewFile {
  readonly path: string
  /** Where its bytes are. */
  readonly file: string
}

/** The bytes of objects, in the order of the files, as few of them in memory as possible. */
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
      for (let at = 0; size > limits.objectBytes / 4 && at < size;) {
        const bytes = Buffer.alloc(Math.min(limits.objectBytes, size - at))
        const { bytesRead } = await handle.read(bytes, 0, bytes.length, at)
        if (bytesRead < bytes.length) throw new Error(`${path} has become shorter`)
        parts.push({ object: hashOf(bytes), offset: 0, length: bytes.length })
        at += bytes.length
        yield bytes
      }
      if (parts.length > 0) {
        done({ path, size, parts })
        continue
      }
      if (sharedBytes + size > limits.objectBytes) yield share()
      shared.push(await handle.readFile())
      sharing.push({ path, offset: sharedBytes, size })
      sharedBytes += size
    } finally {
      await handle.close()
    }
  }
  if (sharing.length > 0) yield share()
}

/** Stores objects, once their rows say that they are to be removed unless a snapshot names them. */
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
      concurrency: limits.objectsAtOnce,
      discard: true
    })
  })
})

/** Writes and reads the objects of environments. */
export const makeObjects = Effect.gen(function* () {
  const store = yield* BlobStore
  const putAll = yield* makePutAll

  /** Stores files; `known` are objects that need not be stored again. Returns the sizes of all objects. */
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
      if (waiting.size >= limits.objectsAtOnce || next.done === true) {
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
    /** The bytes of an object, which are those that were stored. */
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
