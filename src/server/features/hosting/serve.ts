/**
 * Responses of hosted apps. Writes them directly to Node's response: a request for a small file in
 * memory starts no fiber and copies nothing. The service reads a large file at the speed of its client.
 */
import { type FileHandle, open, readFile } from "node:fs/promises"
import type { IncomingMessage, ServerResponse } from "node:http"
import { Context, Effect, Exit, Layer } from "effect"
import { hosting } from "#rpc/hosting/limits"
import { http } from "#rpc/limits"
import { matchesTag } from "#server/platform/entity-tags"
import { FairSemaphore } from "#server/platform/fair-semaphore"
import { Meter } from "#server/platform/meter"
import { readings } from "#server/platform/metrics"
import { Settings } from "#server/platform/settings/settings"
import { hostOf } from "./addresses.ts"
import { HostedApps, type HostedApp, type NoApp } from "./apps.ts"
import { Blobs } from "./blobs.ts"
import { BodyCache } from "./body-cache.ts"
import { sendDecoded } from "./decoded.ts"
import { sniffEncoding } from "./media-types.ts"
import { ownFile } from "./own-files.ts"
import { sendMissingAsset, sendPage } from "./pages.ts"
import { BufferPool } from "./buffer-pool.ts"
import { accepts, findFile, type Form, formOf, type Part, partOf, type SiteFile } from "./site.ts"
import { makeStaleFiles } from "./stale-files.ts"

/** Request for a file of an app. */
interface Exchange {
  readonly app: HostedApp
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

/** Selection of a file's bytes to send. */
interface Delivery extends Exchange {
  readonly file: SiteFile
  readonly form: Form
  /** Whether the client cannot read the encoding in which the file was uploaded. */
  readonly isDecoded: boolean
  readonly status: number
  readonly part: Part
}

const responseMillis = 30_000
const second = 1000

/** Returns the encoding of a response; `sniffed` is that of the bytes, where the name does not say it. */
const encodingOf = (
  { file, form, isDecoded, request }: Delivery,
  sniffed: string | undefined
): string | undefined => {
  if (form !== "") return form === ".br" ? "br" : "gzip"
  if (file.media.encoding !== undefined) return isDecoded ? undefined : file.media.encoding
  // The loaders that read such files decode them themselves where the browser does not.
  return sniffed !== undefined && acceptsEncoding(request, sniffed) ? sniffed : undefined
}

const acceptsEncoding = ({ headers }: IncomingMessage, encoding: string): boolean =>
  accepts(headers["accept-encoding"]?.toString() ?? "", encoding)

/** Whether a file has several representations, among which `Accept-Encoding` selects. */
const varies = ({ brotliBytes, gzipBytes, media, needsSniffing }: SiteFile): boolean =>
  brotliBytes !== null || gzipBytes !== null || media.encoding !== undefined || needsSniffing

const cacheFor = (file: SiteFile): string =>
  file.isHashed ? "public, max-age=31536000, immutable" : "no-cache"

/** Alternating names and values of headers, in the format of Node. */
type RawHeaders = Array<string | number>

/**
 * Headers of a response with a file. A 304 response has them too: the client keeps the other headers
 * from the earlier response (RFC 9110 section 15.4.5).
 */
const cachedHeaders = (
  { app, file, form, isDecoded }: Pick<Delivery, "app" | "file" | "form" | "isDecoded">,
  status: number
): RawHeaders => {
  const headers: RawHeaders = [
    "etag",
    form === "" && !isDecoded ? file.tag : `W/${file.tag}`,
    "cache-control",
    status === 404 ? "no-cache" : cacheFor(file)
  ]
  if (varies(file)) headers.push("vary", "Accept-Encoding")
  if (app.isPreview) headers.push("x-robots-tag", "noindex")
  if (app.site?.settings.crossOriginIsolation === true) headers.push(...isolation)
  return headers
}

const isolation = Object.entries({
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-embedder-policy": "require-corp",
  "cross-origin-resource-policy": "same-origin"
}).flat()

const sizeOf = ({ brotliBytes, gzipBytes, size }: SiteFile, form: Form): number =>
  (form === ".br" ? brotliBytes : form === ".gz" ? gzipBytes : size) ?? size

const sendHead = (delivery: Delivery, sniffed: string | undefined): void => {
  const { file, form, part, response, status } = delivery
  const headers = cachedHeaders(delivery, status)
  headers.push("x-content-type-options", "nosniff", "origin-agent-cluster", "?1")
  headers.push("content-type", file.media.type)
  if (file.media.encoding === undefined) headers.push("accept-ranges", "bytes")
  if (!delivery.isDecoded) headers.push("content-length", part.end - part.start + 1)
  const encoding = encodingOf(delivery, sniffed)
  if (encoding !== undefined) headers.push("content-encoding", encoding)
  if (status === 206) {
    headers.push("content-range", `bytes ${part.start}-${part.end}/${sizeOf(file, form)}`)
  }
  response.writeHead(status, headers)
}

/** Resolves when the operating system has taken the bytes; rejects when the client has disconnected. */
const write = (response: ServerResponse, bytes: Buffer, isLast: boolean): Promise<void> =>
  new Promise((resolve, reject) => {
    // A response that is closed already says nothing more.
    if (response.destroyed) return reject(new ClientGone())
    const onClose = (): void => reject(new ClientGone())
    response.once("close", onClose)
    const onWritten = (error?: Error | null): void => {
      response.off("close", onClose)
      if (error) reject(new ClientGone())
      else resolve()
    }
    if (isLast) response.end(bytes, onWritten)
    else response.write(bytes, onWritten)
  })

/** Error: the client has closed the connection. */
class ClientGone extends Error {}

const sniffBytes = 128

const sniff = async (handle: FileHandle): Promise<string | undefined> => {
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(sniffBytes), 0, sniffBytes, 0)
  return sniffEncoding(buffer.subarray(0, bytesRead))
}

/** Reads the piece of a file at a position and sends it; returns its length. */
const sendPiece = async (
  handle: FileHandle,
  { part, response }: Delivery,
  position: number,
  pool: BufferPool
): Promise<number> => {
  const wanted = part.end + 1 - position
  const piece = pool.take(wanted)
  let isFree = false
  try {
    const { buffer } = piece
    const { bytesRead } = await handle.read(buffer, 0, Math.min(buffer.length, wanted), position)
    if (bytesRead > 0) await write(response, buffer.subarray(0, bytesRead), bytesRead === wanted)
    isFree = true
    return bytesRead
  } finally {
    if (isFree) piece.giveBack()
    else piece.abandon()
  }
}

/** Sends a file from the disk, one piece at a time. A slow client holds one piece in memory. */
const stream = async (
  path: string,
  delivery: Delivery,
  pool: BufferPool,
  sent: (bytes: number) => void
): Promise<void> => {
  const { file, part, request, response } = delivery
  const handle = await open(path)
  const millis = responseMillis + ((part.end - part.start) / http.slowestBytesPerSecond) * second
  const deadline = setTimeout(() => response.destroy(), millis)
  try {
    sendHead(delivery, file.needsSniffing ? await sniff(handle) : undefined)
    if (request.method === "HEAD") return void response.end()
    let position = part.start
    while (position <= part.end && !response.destroyed) {
      const bytes = await sendPiece(handle, delivery, position, pool)
      if (bytes === 0) throw new Error(`Failed to read ${path}: it has become shorter`)
      position += bytes
      sent(bytes)
    }
  } catch (cause) {
    if (cause instanceof ClientGone) return
    // The headers may be sent already: only a cut connection shows that the file is not whole.
    response.destroy()
    throw cause
  } finally {
    clearTimeout(deadline)
    await handle.close()
  }
}

/** Serves apps. */
export class AppServer extends Context.Service<
  AppServer,
  {
    /** Returns the host of a request for an app. The service itself must not answer such a request. */
    readonly appHostOf: (request: IncomingMessage) => string | undefined
    readonly serve: (host: string, request: IncomingMessage, response: ServerResponse) => void
  }
>()("server/features/hosting/serve/AppServer") {
  static readonly layer = Layer.effect(
    AppServer,
    Effect.gen(function* () {
      const apps = yield* HostedApps
      const { baseUrl } = yield* Settings
      const runFork = Effect.runForkWith(yield* Effect.context<never>())
      const sendFile = yield* makeSendFile
      const staleFile = yield* makeStaleFiles
      /** Answers for a part of a page that the version of this host lacks. */
      const sendStale: SendStale = (exchange, path) => {
        const { app, request, response } = exchange
        const isHead = request.method === "HEAD"
        if (app.isVersion) return sendMissingAsset(response, isHead)
        runFork(
          Effect.flatMap(Effect.exit(staleFile(app.environmentId, path)), (exit) => {
            if (Exit.isFailure(exit)) sendPage(response, "broken", isHead)
            else if (exit.value === undefined) sendMissingAsset(response, isHead)
            else deliver(exchange, exit.value, 200, sendFile)
            return Exit.isFailure(exit)
              ? Effect.logWarning("Failed to find a file of an earlier version", exit.cause)
              : Effect.void
          })
        )
      }
      const serve = (exchange: Exchange): void => serveApp(exchange, baseUrl, sendFile, sendStale)
      const found = (
        app: HostedApp | NoApp,
        request: IncomingMessage,
        response: ServerResponse
      ): void => {
        if (app === "unknown") sendPage(response, "unknown", request.method === "HEAD")
        else serve({ app, request, response })
      }
      return AppServer.of({
        appHostOf: ({ headers }) => {
          const host = hostOf(headers.host ?? "")
          return apps.isAppHost(host) ? host : undefined
        },
        serve: (host, request, response) => {
          const known = apps.known(host)
          if (known !== undefined) return found(known, request, response)
          const load = Effect.exit(apps.load(host))
          runFork(
            Effect.flatMap(load, (exit) => {
              if (Exit.isSuccess(exit))
                return Effect.sync(() => found(exit.value, request, response))
              sendPage(response, "broken", request.method === "HEAD")
              return Effect.logWarning("Failed to load an app", exit.cause)
            })
          )
        }
      })
    })
  ).pipe(Layer.provide(Blobs.layer))
}

/**
 * Whether a request wants a page. Robots that preview links accept anything (a star), so theirs is one where
 * the path has no file extension; a `fetch` of a page says by `Sec-Fetch-Dest` that it is none.
 */
const isNavigation = (path: string, headers: IncomingMessage["headers"]): boolean => {
  const { accept = "", "sec-fetch-dest": destination = "document" } = headers
  if (accept.includes("text/html")) return true
  return accept.includes("*/*") && destination === "document" && !/\.[^/]*$/.test(path)
}

type SendFile = (delivery: Delivery) => void
type SendStale = (exchange: Exchange, path: string) => void

/** Answers a request for a loaded host. */
const serveApp = (
  exchange: Exchange,
  baseUrl: string,
  sendFile: SendFile,
  sendStale: SendStale
): void => {
  const { app, request, response } = exchange
  const { headers, method, url = "" } = request
  const isHead = method === "HEAD"
  if (method !== "GET" && !isHead) return sendPage(response, "method", false)
  if (!url.startsWith("/")) return sendPage(response, "malformed", isHead)
  if (!app.enabled) return sendPage(response, "off", isHead)
  const [path = "/"] = url.split("?", 1)
  const own = ownFile(app, path, baseUrl)
  if (own !== undefined) {
    response.writeHead(200, own.headers)
    return void response.end(isHead ? undefined : own.body)
  }
  if (app.site === undefined) return sendPage(response, "empty", isHead)
  const found = findFile(app.site, path, isNavigation(path, headers))
  if (found === undefined) return sendPage(response, "missing", isHead)
  if (found.kind === "missing asset") return sendStale(exchange, path)
  if (found.kind === "redirect") {
    const location = found.to + url.slice(path.length)
    response.writeHead(302, { location, "cache-control": "no-cache" })
    return void response.end()
  }
  deliver(exchange, found.file, found.status, sendFile)
}

/** Sends a file, or the part of it that the client asks for, in a form that the client can read. */
const deliver = (
  exchange: Exchange,
  file: SiteFile,
  status: 200 | 404,
  sendFile: SendFile
): void => {
  const { app, request, response } = exchange
  const { headers } = request
  const form = formOf(file, headers["accept-encoding"]?.toString(), headers.range)
  const { encoding } = file.media
  const isDecoded = encoding !== undefined && !acceptsEncoding(request, encoding)
  const tags = headers["if-none-match"]
  if (status === 200 && tags !== undefined && matchesTag(tags, file.tag)) {
    response.writeHead(304, cachedHeaders({ app, file, form, isDecoded }, 304))
    return void response.end()
  }
  // A range of bytes that were uploaded compressed is of no use to a page.
  const isCurrent = headers["if-range"] === undefined || headers["if-range"] === file.tag
  const hasParts = status === 200 && isCurrent && encoding === undefined
  const part = hasParts ? partOf(headers.range, file.size) : undefined
  if (part === null) {
    response.writeHead(416, { "content-range": `bytes */${file.size}`, "content-length": 0 })
    return void response.end()
  }
  const whole = { start: 0, end: sizeOf(file, form) - 1 }
  sendFile({
    ...exchange,
    file,
    form,
    isDecoded,
    part: part ?? whole,
    status: part === undefined ? status : 206
  })
}

/** Sends files: small ones from memory, others from the disk. */
const makeSendFile = Effect.gen(function* () {
  const blobs = yield* Blobs
  const meter = yield* Meter
  const { gauge } = yield* readings
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  const cache = new BodyCache(hosting.bodyCacheBytes)
  const pool = new BufferPool(hosting.pieces)
  const busy = Effect.fail("busy" as const)
  const downloads = new FairSemaphore({ ...hosting.downloads, refuse: busy })
  gauge("svc_hosting_cached_bytes", "Bytes of hosted files in memory.", () => cache.bytes)

  const sendBody = (delivery: Delivery, body: Buffer): void => {
    const { app, file, part, request, response, status } = delivery
    sendHead(delivery, file.needsSniffing ? sniffEncoding(body) : undefined)
    if (request.method === "HEAD") return void response.end()
    response.end(status === 206 ? body.subarray(part.start, part.end + 1) : body)
    meter.add(app.environmentId, "egressBytes", part.end - part.start + 1)
  }

  const fetch = Effect.fnUntraced(function* (delivery: Delivery, key: string) {
    const { app, file, form } = delivery
    const path = yield* blobs.open(app.environmentId, file.sha256, form)
    const { encoding } = file.media
    if (delivery.isDecoded && encoding !== undefined) {
      sendHead(delivery, undefined)
      return yield* Effect.tryPromise(() =>
        sendDecoded(path, encoding, delivery, (bytes) =>
          meter.add(app.environmentId, "egressBytes", bytes)
        )
      )
    }
    if (sizeOf(file, form) > hosting.cachedBodyMaxBytes) {
      return yield* Effect.tryPromise(() =>
        stream(path, delivery, pool, (bytes) => meter.add(app.environmentId, "egressBytes", bytes))
      )
    }
    const body = yield* Effect.tryPromise(() => readFile(path))
    cache.set(key, body)
    sendBody(delivery, body)
  })

  return (delivery: Delivery): void => {
    const { app, file, form, request, response } = delivery
    const key = `${app.environmentId}/${file.sha256}${form}`
    const body = delivery.isDecoded ? undefined : cache.get(key)
    if (body !== undefined) return sendBody(delivery, body)
    const isHead = request.method === "HEAD"
    const refused = (reason: unknown) =>
      Effect.suspend(() => {
        if (!response.headersSent) sendPage(response, reason === "busy" ? "busy" : "broken", isHead)
        return reason === "busy" ? Effect.void : Effect.logWarning("Failed to send a file", reason)
      })
    runFork(
      Effect.catchCause(
        Effect.catch(downloads.withPermit(app.environmentId)(fetch(delivery, key)), refused),
        refused
      )
    )
  }
})
