/**
 * Blob store in a bucket of an S3-compatible service, for runners on several machines. A cache on
 * the node's disk has the files that the node serves, so a live app stays available while the
 * bucket is away. Each object has the SHA-256 of its bytes. The service checks it when they arrive,
 * and this store when it reads them.
 */
import { createHash, type Hash } from "node:crypto"
import { createReadStream, createWriteStream, openAsBlob } from "node:fs"
import { join } from "node:path"
import { Readable } from "node:stream"
import { pipeline } from "node:stream/promises"
import { Effect, type Exit, FiberSet } from "effect"
import { hosting } from "#rpc/hosting/limits"
import { FairSemaphore } from "../fair-semaphore.ts"
import type { S3Settings } from "../settings/hosting.ts"
import { DiskCache } from "./disk-cache.ts"
import { makeTemporaryFiles } from "./folder.ts"
import { isNoSuchKey, makeS3Client } from "./s3-client.ts"
import { attempt, BlobNotFound, BlobStore, BlobStoreError } from "./store.ts"

type Client = ReturnType<typeof makeS3Client>

const hashHeader = "x-amz-meta-sha256"

const hashOf = async (file: string): Promise<string> => {
  const hash = createHash("sha256")
  await pipeline(createReadStream(file), hash)
  return hash.digest("hex")
}

/** Returns a step of a pipeline that passes bytes on up to the size of the largest blob, and hashes them. */
const hashing = (hash: Hash) =>
  async function* (chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    let received = 0
    for await (const chunk of chunks) {
      received += chunk.length
      hash.update(chunk)
      if (received > hosting.blobMaxBytes) throw new Error("the object is larger than any blob")
      yield chunk
    }
  }

/** Writes a response to a file; false if the bytes are not those that were stored. */
const writeTo = async (file: string, response: Response): Promise<boolean> => {
  const hash = createHash("sha256")
  await pipeline(Readable.from(response.body ?? []), hashing(hash), createWriteStream(file))
  const expected = response.headers.get(hashHeader)
  const actual = hash.digest("hex")
  return expected === null || expected === actual
}

const makeSend = (send: Client) =>
  Effect.fnUntraced(function* (key: string, file: string) {
    const sha256 = yield* attempt("read a new blob", () => hashOf(file))
    const body = yield* attempt("read a new blob", () => openAsBlob(file))
    yield* send({
      operation: "store a blob",
      method: "PUT",
      key,
      headers: { "x-amz-content-sha256": sha256, [hashHeader]: sha256 },
      body,
      read: async (response) => void (await response.arrayBuffer())
    })
  })

/** Returns the local file of a blob. Concurrent callers for one blob share its download. */
const makeFetches = Effect.fnUntraced(function* (
  send: Client,
  cache: DiskCache,
  temporaryFile: BlobStore["Service"]["temporaryFile"]
) {
  const permits = new FairSemaphore({
    ...hosting.objectDownloads,
    refuse: Effect.fail(new BlobStoreError({ operation: "read a blob", cause: "too many wait" }))
  })
  const receive = Effect.fnUntraced(function* (key: string) {
    const file = yield* temporaryFile
    let isWhole = false
    yield* Effect.catchIf(
      send({
        operation: "read a blob",
        method: "GET",
        key,
        read: async (response) => {
          isWhole = await writeTo(file, response)
        }
      }),
      isNoSuchKey,
      () => new BlobNotFound({ key })
    )
    return isWhole ? file : yield* new BlobNotFound({ key })
  })
  const inTurn = (key: string) => permits.withPermit(key.split("/", 1)[0])
  const download = Effect.fnUntraced(function* (key: string) {
    const file = yield* receive(key)
    return yield* attempt("cache a blob", () => cache.take(key, file))
  }, Effect.scoped)
  type Outcome = Exit.Exit<string, BlobNotFound | BlobStoreError>
  const run = yield* FiberSet.makeRuntimePromise<never, Outcome>()
  const flights = new Map<string, Promise<Outcome>>()
  const join = (key: string): Promise<Outcome> => {
    const known = flights.get(key)
    if (known !== undefined) return known
    const flight = run(Effect.exit(inTurn(key)(download(key)))).finally(() => flights.delete(key))
    flights.set(key, flight)
    return flight
  }
  return {
    fetch: Effect.fnUntraced(function* (key: string) {
      const cached = yield* Effect.promise(() => cache.get(key))
      return cached ?? (yield* yield* Effect.promise(() => join(key)))
    }),
    fetchArchived: (key: string) => inTurn(key)(receive(key))
  }
})

/** Objects of a page of a list, which the store limits as well. */
const listedMax = 1000
const removedAtOnce = 8

const makeRemovals = (send: Client, cache: DiskCache, prefix: string) => {
  const remove = (keys: ReadonlyArray<string>) =>
    Effect.forEach(
      keys,
      (key) =>
        Effect.andThen(
          send({ operation: "remove blobs", method: "DELETE", key, read: async () => {} }),
          attempt("remove blobs", () => cache.remove(key))
        ),
      { concurrency: removedAtOnce, discard: true }
    )
  const removePage = Effect.fnUntraced(function* (environmentId: string) {
    let keys: ReadonlyArray<string> = []
    const query = {
      "list-type": "2",
      "max-keys": String(listedMax),
      prefix: `${prefix}${environmentId}/`
    }
    yield* send({
      operation: "list blobs",
      method: "GET",
      query,
      read: async (response) => {
        // Keys of blobs have no characters that XML escapes.
        const names = (await response.text()).matchAll(/<Key>([^<]+)<\/Key>/g)
        keys = Array.from(names, ([, name = ""]) => name.slice(prefix.length))
      }
    })
    yield* remove(keys)
    return keys.length
  })
  return {
    remove,
    removeAll: (environmentId: string) =>
      Effect.andThen(
        Effect.repeat(removePage(environmentId), { until: (removed) => removed < listedMax }),
        attempt("remove the blobs of an environment", () => cache.removeBelow(environmentId))
      )
  }
}

/** The store in a bucket, with its cache in a folder. */
export const s3Store = Effect.fnUntraced(function* (settings: S3Settings, folder: string) {
  const send = makeS3Client(settings)
  const cache = yield* Effect.orDie(
    attempt("open the cache", () => DiskCache.open(join(folder, "files"), settings.cacheBytes))
  )
  const temporaryFile = yield* makeTemporaryFiles(join(folder, "temporary"))
  const archive = makeSend(send)
  return BlobStore.of({
    temporaryFile,
    put: (key, file) =>
      Effect.andThen(
        archive(key, file),
        attempt("cache a blob", () => cache.take(key, file))
      ),
    archive,
    ...(yield* makeFetches(send, cache, temporaryFile)),
    dropCopy: (key) =>
      Effect.as(
        attempt("drop a damaged copy", () => cache.remove(key)),
        true
      ),
    ...makeRemovals(send, cache, settings.prefix)
  })
})
