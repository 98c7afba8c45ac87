/**
 * Reception of one file. Writes the bytes to a temporary file and hashes them on the way. The store
 * gets only bytes with the expected hash. The service trusts no claim of the client about them.
 */
import { createHash } from "node:crypto"
import { createReadStream, createWriteStream } from "node:fs"
import { open, stat } from "node:fs/promises"
import type { IncomingMessage } from "node:http"
import type { Transform } from "node:stream"
import { pipeline } from "node:stream/promises"
import { constants, createBrotliCompress, createGzip } from "node:zlib"
import { Data, Effect } from "effect"
import { BlobHashMismatch, Unavailable } from "#rpc/errors/codes"
import { hosting } from "#rpc/hosting/limits"
import { http } from "#rpc/limits"
import { extendBodyDeadline } from "#server/platform/body-deadlines"
import { BlobStore, BlobStoreError } from "#server/platform/blobs/store"
import { FairSemaphore } from "#server/platform/fair-semaphore"

/** Error: the client closed the connection or was too slow. No client waits for a response. */
export class UploadCut extends Data.TaggedError("UploadCut")<{}> {}

/** Hash and size that the client's body must have. */
export interface Expected {
  readonly sha256: string
  readonly size: number
}

/** Milliseconds until the first byte, and beyond the time that the slowest permitted client needs. */
const slackMillis = 30_000
const second = 1000

/** Yields the chunks of a body; throws {@link UploadCut} if the connection breaks. */
async function* bodyOf(source: IncomingMessage): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of source.iterator({ destroyOnReturn: false })) {
      if (Buffer.isBuffer(chunk)) yield chunk
    }
  } catch {
    throw new UploadCut()
  }
}

const write = async (source: IncomingMessage, file: string, { sha256, size }: Expected) => {
  const hash = createHash("sha256")
  let received = 0
  const handle = await open(file, "wx")
  try {
    for await (const chunk of bodyOf(source)) {
      received += chunk.length
      if (received > size) break
      hash.update(chunk)
      await handle.writeFile(chunk)
    }
  } finally {
    await handle.close()
  }
  if (received === size && hash.digest("hex") === sha256) return
  throw new BlobHashMismatch({ details: { expectedBytes: size, receivedBytes: received } })
}

/** Receives a file whose hash and size are known. */
export const receive = (source: IncomingMessage, file: string, expected: Expected) =>
  Effect.tryPromise({
    try: () => {
      extendBodyDeadline(
        source,
        slackMillis + (expected.size / http.slowestBytesPerSecond) * second
      )
      return write(source, file, expected)
    },
    catch: (cause) =>
      cause instanceof BlobHashMismatch || cause instanceof UploadCut
        ? cause
        : new BlobStoreError({ operation: "write an upload", cause })
  })

/**
 * Quality of Brotli: 34 ms for 878 KB of JavaScript. The highest quality takes 648 ms for 5 % fewer
 * bytes.
 */
const brotliQuality = 9
const gzipLevel = 9

const compressors: Readonly<Record<"br" | "gz", (size: number) => Transform>> = {
  br: (size) =>
    createBrotliCompress({
      params: {
        [constants.BROTLI_PARAM_QUALITY]: brotliQuality,
        [constants.BROTLI_PARAM_SIZE_HINT]: size
      }
    }),
  gz: () => createGzip({ level: gzipLevel })
}

/** Maximum size of a stored compressed form, relative to the original. */
const worthwhile = 0.9

/** Compresses received files and stores them, with a bound on concurrent compressions. */
export const makeCompress = Effect.map(BlobStore, (store) => {
  const permits = new FairSemaphore({
    ...hosting.compressions,
    refuse: Effect.fail(new Unavailable())
  })
  const compress = Effect.fnUntraced(function* (
    file: string,
    size: number,
    key: string,
    form: "br" | "gz"
  ) {
    const to = yield* store.temporaryFile
    const bytes = yield* Effect.tryPromise({
      try: async () => {
        await pipeline(createReadStream(file), compressors[form](size), createWriteStream(to))
        return (await stat(to)).size
      },
      catch: (cause) => new BlobStoreError({ operation: "compress a file", cause })
    })
    if (bytes > size * worthwhile) return null
    yield* store.put(`${key}.${form}`, to)
    return bytes
  }, Effect.scoped)
  const none = { brotliBytes: null, gzipBytes: null }
  /** Stores the compressed forms of a file under the keys `<key>.br` and `<key>.gz`. */
  return (environmentId: string, file: string, size: number, key: string) =>
    size < hosting.compressMinBytes
      ? Effect.succeed(none)
      : permits.withPermit(environmentId)(
          Effect.all({
            brotliBytes: compress(file, size, key, "br"),
            gzipBytes: compress(file, size, key, "gz")
          })
        )
})
