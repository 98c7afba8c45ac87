/**
 * Reads request bodies within bounds: the size limit of the endpoint, a deadline, and a budget that all
 * bodies of the process share. A body counts from its first byte until the response has been sent. All
 * bodies are text, so bytes that are not UTF-8 are refused instead of stored as replacement characters.
 */
import { isUtf8 } from "node:buffer"
import type { Readable } from "node:stream"
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import { ByteSize, Context, Data, Effect } from "effect"
import { HttpIncomingMessage, HttpServerError, type HttpServerRequest } from "effect/http"
import { changedNumberOf } from "#rpc/json"
import { http } from "#rpc/limits"
import { MiB } from "#rpc/units"
import { hasBody } from "#server/platform/body-deadlines"
import { requireCredentials } from "#server/platform/credential-check"
import type { CutReason, Holding } from "./byte-budget.ts"
import { makeClientBudget } from "./client-budget.ts"
import { ReceivedBytes } from "./received-bytes.ts"
import { HttpBounds } from "./server.ts"

/** Bodies that one process holds together, from the first byte of each to the end of its response. */
const bodiesMaxBytes = 48 * MiB

type Request = HttpServerRequest.HttpServerRequest

/** Error for a body that is larger than its endpoint allows. */
export class BodyTooLarge extends Data.Error<{ readonly limit: number }> {}

/**
 * Error for a body that was not read to its end: the bodies of all clients are too many, or this
 * client too slow.
 */
export class BodyCut extends Data.Error<{ readonly reason: CutReason }> {}

/** The body has bytes that are not UTF-8. */
export class BodyNotText extends Data.Error<{}> {}

/** The body is JSON with a number, at this path, that does not survive. */
export class BodyNumberChanges extends Data.Error<{ readonly path: string }> {}

/** Whether numbers of a JSON body must survive: not where the text itself is kept. */
export const ChecksNumbers = Context.Reference<boolean>(
  "src/server/http/request-bodies/ChecksNumbers",
  { defaultValue: () => false }
)

/** The path of a number of a JSON body that changes. */
const changedNumberIn = ({ headers }: Request, body: ArrayBuffer): string | undefined =>
  headers["content-type"]?.includes("json") === true
    ? changedNumberOf(Buffer.from(body).toString())
    : undefined

/** Returns why a whole body is refused; undefined if it is not. */
export const checkBody = (
  request: Request,
  body: ArrayBuffer,
  checksNumbers: boolean
): BodyNotText | BodyNumberChanges | undefined => {
  if (!isUtf8(body)) return new BodyNotText()
  const path = checksNumbers ? changedNumberIn(request, body) : undefined
  return path === undefined ? undefined : new BodyNumberChanges({ path })
}

/** The error of a request whose body is refused. */
export const unreadable = (request: Request, cause: unknown): HttpServerError.HttpServerError =>
  new HttpServerError.HttpServerError({
    reason: new HttpServerError.RequestParseError({
      request,
      reason: cause instanceof BodyTooLarge ? "BodyTooLarge" : "Parse",
      cause
    })
  })

/** Collects the body of a message into a holding. */
const collect = (
  source: Readable,
  maxBytes: number,
  open: (cut: (reason: CutReason) => void) => Holding
): Effect.Effect<ArrayBuffer, BodyTooLarge | BodyCut | Error> =>
  Effect.callback((resume) => {
    if (source.readableEnded) return resume(Effect.succeed(new ArrayBuffer(0)))
    const received = new ReceivedBytes()
    const stop = (): void => {
      source.off("data", onData).off("end", onEnd).off("error", onFailure).off("close", onFailure)
    }
    const fail = (error: Error): void => {
      stop()
      source.pause()
      received.free()
      resume(Effect.fail(error))
    }
    const holding = open((reason) => fail(new BodyCut({ reason })))
    const onData = (piece: Buffer): void => {
      if (received.length + piece.length > maxBytes) {
        return fail(new BodyTooLarge({ limit: maxBytes }))
      }
      holding.add(received.append(piece))
    }
    const onEnd = (): void => {
      stop()
      holding.keep()
      resume(Effect.succeed(received.take()))
    }
    const onFailure = (error?: Error): void => {
      fail(error ?? new Error("The client closed the connection"))
    }
    source.on("data", onData).on("end", onEnd).on("error", onFailure).on("close", onFailure)
    return Effect.sync(() => {
      stop()
      received.free()
    })
  })

/** Returns a function that binds the body of a request to the bounds. */
export const makeBoundBody = Effect.gen(function* () {
  const { bodyTimeout } = yield* HttpBounds
  const open = yield* makeClientBudget({
    metric: "svc_http_body_bytes",
    description: "Bytes of request bodies that are read or processed.",
    maxBytes: bodiesMaxBytes,
    timeout: bodyTimeout
  })

  const read = (request: Request, maxBytes: number) =>
    Effect.suspend(() => {
      if (Number(request.headers["content-length"]) > maxBytes) {
        return Effect.fail(new BodyTooLarge({ limit: maxBytes }))
      }
      const response = NodeHttpServerRequest.toServerResponse(request)
      if (/^100-continue$/i.test(request.headers["expect"] ?? "")) response.writeContinue()
      return collect(NodeHttpServerRequest.toIncomingMessage(request), maxBytes, (cut) => {
        const holding = open(request, maxBytes, cut)
        response.once("close", holding.release)
        return holding
      })
    })

  /**
   * Bounds the reading of this request's body. It changes the request itself. For an object that
   * inherits from it, V8 would keep a class of its own, and optimize nothing that reads it.
   */
  return (request: Request): void => {
    if (!hasBody(request)) return
    let whole: ArrayBuffer | undefined
    const keepText = (
      body: ArrayBuffer,
      checksNumbers: boolean
    ): Effect.Effect<ArrayBuffer, BodyNotText | BodyNumberChanges> => {
      const refusal = checkBody(request, body, checksNumbers)
      if (refusal !== undefined) return Effect.fail(refusal)
      whole = body
      return Effect.succeed(body)
    }
    // A handler may need the text of a body that was decoded before.
    const arrayBuffer = Effect.withFiber<ArrayBuffer, HttpServerError.HttpServerError>((fiber) => {
      if (whole !== undefined) return Effect.succeed(whole)
      const max = fiber.getRef(HttpIncomingMessage.MaxBodySize)
      const maxBytes = max === undefined ? http.bodyMaxBytes : ByteSize.toNumberUnsafe(max)
      const checksNumbers = fiber.getRef(ChecksNumbers)
      return read(request, maxBytes).pipe(
        // The credentials were checked before the body was read, which may have taken long.
        Effect.tap(requireCredentials),
        Effect.flatMap((body) => keepText(body, checksNumbers)),
        Effect.mapError((cause) => unreadable(request, cause))
      )
    })
    Object.defineProperty(request, "arrayBuffer", { value: arrayBuffer })
  }
})
