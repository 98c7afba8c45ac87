/**
 * Files that were uploaded compressed, such as `game.wasm.br`, for clients that cannot read the
 * compression: browsers take Brotli over HTTPS and from localhost only.
 */
import { createReadStream } from "node:fs"
import type { IncomingMessage, ServerResponse } from "node:http"
import { pipeline } from "node:stream/promises"
import { createBrotliDecompress, createGunzip } from "node:zlib"
import { hosting } from "#rpc/hosting/limits"
import type { Media } from "./media-types.ts"

type Encoding = NonNullable<Media["encoding"]>

const decoders = { br: createBrotliDecompress, gzip: createGunzip }

const second = 1000

/** Cuts what decodes to more than the limit: a small file can decode to any size. */
async function* bounded(
  pieces: AsyncIterable<Buffer>,
  maxBytes: number,
  onBytes: (bytes: number) => void
): AsyncGenerator<Buffer> {
  let passed = 0
  for await (const piece of pieces) {
    passed += piece.length
    onBytes(piece.length)
    if (passed > maxBytes) throw new Error("The file decodes to too many bytes")
    yield piece
  }
}

const hasClientGone = (cause: unknown): boolean =>
  cause instanceof Error && "code" in cause && cause.code === "ERR_STREAM_PREMATURE_CLOSE"

/** Sends the decoded bytes of a file; cuts the connection if they are too many or take too long. */
export const sendDecoded = async (
  path: string,
  encoding: Encoding,
  { request, response }: { readonly request: IncomingMessage; readonly response: ServerResponse },
  onBytes: (bytes: number) => void,
  maxBytes: number = hosting.decodedMaxBytes
): Promise<void> => {
  if (request.method === "HEAD") return void response.end()
  const late = AbortSignal.timeout(hosting.decodedSeconds * second)
  try {
    await pipeline(
      createReadStream(path),
      decoders[encoding](),
      (pieces: AsyncIterable<Buffer>) => bounded(pieces, maxBytes, onBytes),
      response,
      { signal: late }
    )
  } catch (cause) {
    response.destroy()
    if (!hasClientGone(cause)) throw cause
  }
}
