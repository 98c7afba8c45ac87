/** Files of environments in the blob store: uploads and reads. */
import { createHash } from "node:crypto"
import { createReadStream } from "node:fs"
import { writeFile } from "node:fs/promises"
import type { IncomingMessage } from "node:http"
import { PassThrough, type Transform } from "node:stream"
import { pipeline } from "node:stream/promises"
import { createBrotliDecompress, createGunzip } from "node:zlib"
import { Context, DateTime, Effect, Layer, Option, Schema } from "effect"
import type { EnvironmentCaller } from "#rpc/auth"
import { type BlobHashMismatch, NotFound, Unavailable } from "#rpc/errors/codes"
import { Sha256 } from "#rpc/hosting/api"
import { hosting } from "#rpc/hosting/limits"
import type { EnvironmentId } from "#rpc/ids"
import { BlobRepository } from "#sql/hosting/blobs"
import { attempt, BlobStore, BlobStoreError } from "#server/platform/blobs/store"
import { FairSemaphore } from "#server/platform/fair-semaphore"
import { isCompressible } from "./media-types.ts"
import { makeCompress, receive, type UploadCut } from "./upload.ts"

/** Forms of a blob: original bytes, Brotli and gzip. */
export type BlobForm = "" | ".br" | ".gz"

/** The key of a blob in the store. */
export const keyOf = (environmentId: EnvironmentId, sha256: string, form: BlobForm = ""): string =>
  `${environmentId}/${sha256}${form}`

/** Logs failures of the store; the client may retry. */
const unavailable = (error: BlobStoreError) =>
  Effect.andThen(Effect.logError(error.message), Effect.fail(new Unavailable()))

export interface StoredFile {
  readonly sha256: string
  readonly size: number
}

export class Blobs extends Context.Service<
  Blobs,
  {
    /**
     * Stores a file that a deployment of the environment names; returns at once if the store has it.
     */
    readonly upload: (
      environment: EnvironmentCaller,
      sha256: string,
      source: IncomingMessage
    ) => Effect.Effect<StoredFile, BlobHashMismatch | NotFound | Unavailable | UploadCut>
    /** Stores bytes of the service itself under the same conditions. */
    readonly store: (
      environment: EnvironmentCaller,
      sha256: string,
      bytes: Uint8Array
    ) => Effect.Effect<StoredFile, BlobHashMismatch | NotFound | Unavailable | UploadCut>
    /**
     * Returns the path of a local file with the bytes of a blob in one form. Verifies each form. If one
     * is lost or corrupt, the next deployment that names the blob requests it again.
     */
    readonly open: (
      environmentId: EnvironmentId,
      sha256: string,
      form: BlobForm
    ) => Effect.Effect<string, NotFound | Unavailable>
  }
>()("server/features/hosting/blobs/Blobs") {
  static readonly layer = Layer.effect(
    Blobs,
    Effect.gen(function* () {
      const put = yield* makePut
      return Blobs.of({
        upload: (environment, sha256, source) =>
          put(environment, sha256, (file, expected) => receive(source, file, expected)),
        store: (environment, sha256, bytes) =>
          put(environment, sha256, (file) =>
            attempt("write a file", () => writeFile(file, bytes, { flag: "wx" }))
          ),
        open: yield* makeOpen
      })
    })
  )
}

const isSha256 = Schema.is(Sha256)

/** Writes the expected bytes to a file. */
type Write = (
  file: string,
  expected: StoredFile
) => Effect.Effect<void, BlobHashMismatch | BlobStoreError | UploadCut>

const makePut = Effect.gen(function* () {
  const rows = yield* BlobRepository
  const store = yield* BlobStore
  const compress = yield* makeCompress
  const permits = new FairSemaphore({
    ...hosting.uploads,
    refuse: Effect.fail(new Unavailable())
  })
  const accept = Effect.fnUntraced(function* (
    environmentId: EnvironmentId,
    expected: StoredFile,
    write: Write
  ) {
    const { sha256, size } = expected
    const file = yield* store.temporaryFile
    yield* write(file, expected)
    const key = keyOf(environmentId, sha256)
    const paths = yield* rows.paths({ environmentId, sha256 })
    const sizes = paths.some(isCompressible)
      ? yield* compress(environmentId, file, size, key)
      : { brotliBytes: null, gzipBytes: null }
    yield* store.put(key, file)
    const now = yield* DateTime.now
    if (yield* rows.markStored({ environmentId, sha256, size, now, ...sizes })) return expected
    return yield* new NotFound()
  }, Effect.scoped)
  return Effect.fn("Blobs.put")(function* (
    { environmentId }: EnvironmentCaller,
    sha256: string,
    write: Write
  ) {
    if (!isSha256(sha256)) return yield* new NotFound()
    const found = Option.getOrUndefined(yield* rows.find({ environmentId, sha256 }))
    if (found === undefined) return yield* new NotFound()
    const expected = { sha256, size: found.size }
    if (found.stored) return expected
    return yield* Effect.catchTag(
      permits.withPermit(environmentId)(accept(environmentId, expected, write)),
      "BlobStoreError",
      unavailable
    )
  })
})

/** Maximum number of verified forms that this process remembers. A blob never changes. */
const verifiedMax = 100_000

const decompressors: Readonly<Record<BlobForm, () => Transform>> = {
  "": () => new PassThrough(),
  ".br": createBrotliDecompress,
  ".gz": createGunzip
}

/** Hashes the original content of a form; undefined if its compression is invalid. */
const hashOf = async (path: string, form: BlobForm): Promise<string | undefined> => {
  const hash = createHash("sha256")
  try {
    await pipeline(createReadStream(path), decompressors[form](), hash)
  } catch (cause) {
    // What the file system refuses says nothing about the bytes.
    if (form === "" || !(cause instanceof Error) || "syscall" in cause) throw cause
    return undefined
  }
  return hash.digest("hex")
}

const makeOpen = Effect.gen(function* () {
  const rows = yield* BlobRepository
  const store = yield* BlobStore
  const known = new Set<string>()
  const hashing = new Map<string, Promise<string | undefined>>()
  /** Hashes a file once for all concurrent callers. */
  const hash = (key: string, path: string, form: BlobForm): Promise<string | undefined> => {
    const begun = hashing.get(key) ?? hashOf(path, form).finally(() => hashing.delete(key))
    hashing.set(key, begun)
    return begun
  }
  const lose = Effect.fnUntraced(function* (environmentId: EnvironmentId, sha256: string) {
    yield* Effect.logError(
      `Failed to read the file ${sha256} of ${environmentId}: it is lost or damaged. Deploy the app again.`
    )
    yield* rows.markLost({ environmentId, sha256 })
    return yield* new NotFound()
  })
  /** Returns the path of a file with verified bytes; undefined if they are corrupt. */
  const verified = Effect.fnUntraced(function* (key: string, sha256: string, form: BlobForm) {
    const path = yield* store.fetch(key)
    if (known.has(key)) return path
    if ((yield* attempt("read a blob", () => hash(key, path, form))) !== sha256) return undefined
    if (known.size >= verifiedMax) known.clear()
    known.add(key)
    return path
  })
  return Effect.fn("Blobs.open")(function* (
    environmentId: EnvironmentId,
    sha256: string,
    form: BlobForm
  ) {
    const key = keyOf(environmentId, sha256, form)
    return yield* Effect.gen(function* () {
      const first = yield* verified(key, sha256, form)
      if (first !== undefined) return first
      const second = (yield* store.dropCopy(key)) ? yield* verified(key, sha256, form) : undefined
      return second ?? (yield* lose(environmentId, sha256))
    }).pipe(
      Effect.catchTags({
        BlobNotFound: () => lose(environmentId, sha256),
        BlobStoreError: unavailable
      })
    )
  })
})
