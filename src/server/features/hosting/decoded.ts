/**
 * Files that were uploaded compressed, such as `game.wasm.br`, for clients that cannot read the
 * compression: browsers take Brotli over HTTPS and from localhost only.
 */
import { createReadStream } from "node:fs"
import type { IncomingMessage, ServerResponse } from "node:http"
import { Transform } from "node:stream"
import { pipeline } from "node:stream/promises"
import { createBrotliDecompress, createGunzip } from "node:zlib"
import { hosting as limits } from "#rpc/limits"
import type { Media } from "./media-types.ts"

type Encoding = NonNullable<Media["encoding"]>

const decoders = { br: createBrotliDecompress, gzip: createGunzip }

const second = 1000

/** Cuts what decodes to more than the limit: a small file can decode to any size. */
const bounded = (maxBytes: number, onBytes: (bytes: number) => void): Transform => {
  let passed = 0
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      passed += chunk.length
      onBytes(chunk.length)
      if (passed > maxBytes) done(new Error("The file decodes to too many bytes"))
      else done(null, chunk)
    }
  })
}

const hasClientGone = (cause: unknown): boolean =>
  cause instanceof Error && "code" in cause && cause.code === "ERR_STREAM_PREMATURE_CLOSE"

/** Sends the decoded bytes of a file; cuts the connection if they are too many or take too long. */
export const sendDecoded = async (
  path: string,
  encoding: Encoding,
  { request, response }: { readonly request: IncomingMessage; readonly response: ServerResponse },
  onBytes: (bytes: number) => void,
  maxBytes: number = limits.decodedMaxBytes
): Promise<void> => {
  if (request.method === "HEAD") return void response.end()
  const late = AbortSignal.timeout(limits.decodedSeconds * second)
  try {
    const cut = bounded(maxBytes, onBytes)
    await pipeline(createReadStream(path), decoders[encoding](), cut, response, { signal: late })
  } catch (cause) {
    response.destroy()
    if (!hasClientGone(cause)) throw cause
  }
}
