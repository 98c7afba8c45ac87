/**
 * Framing of requests that the service passes on: to a function, or through another runner. The service
 * always states it, for every method. Node would state none for the body of a `GET`, and the next reader
 * of the connection would take such a body for a further request. Pure.
 */
import type { IncomingMessage, OutgoingHttpHeaders } from "node:http"
import { InvalidRequest } from "#rpc/errors/codes"

/** The length of the body in digits, `chunked`, or nothing for a request without a body. */
export type Framing = string

/** Parts of a request that its framing depends on. */
export type Framed = Pick<IncomingMessage, "headers" | "httpVersion" | "method">

/** Methods whose requests have no length when they have no body (RFC 9110 section 8.6). */
const withoutContent = new Set(["CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "TRACE"])

/** Returns the framing of a request without {@link requestProblem problem}. */
export const framingOf = ({ headers, method = "GET" }: Framed): Framing => {
  if (headers["transfer-encoding"] !== undefined) return "chunked"
  return headers["content-length"] ?? (withoutContent.has(method) ? "" : "0")
}

/** Returns the headers that state a framing. */
export const framingHeaders = (framing: Framing): OutgoingHttpHeaders => {
  if (framing === "") return {}
  return framing === "chunked" ? { "transfer-encoding": "chunked" } : { "content-length": framing }
}

/** Names of a `Connection` header, in lower case. */
export const connectionNames = (connection: string | undefined): ReadonlySet<string> =>
  new Set((connection ?? "").split(",").map((name) => name.trim().toLowerCase()))

/**
 * Headers that frame a request, or by which its reader knows whose request it is. A `Connection` header
 * that names one asks the service to remove it on the way, so that the reader sees another request.
 */
const protectedForm = new RegExp(
  `^(?:${[
    "transfer-encoding|content-.*|host",
    "authorization|cookie2?|origin|referer",
    "forwarded|via|x-forwarded-.*|x-real-ip",
    "sec-.*|svc-.*|x-svc-.*|cf-.*|mf-.*"
  ].join("|")})$`
)

const lengthForm = /^\d{1,15}$/

/** Part of a request that makes it ambiguous, and what the client has to do. */
interface RequestProblem {
  readonly path: string
  readonly message: string
}

const transferProblem = ({ headers, httpVersion }: Framed): string | undefined => {
  const { "content-length": length, "transfer-encoding": coding } = headers
  if (coding === undefined) return undefined
  if (coding.toLowerCase() !== "chunked") return "Use chunked alone, or send Content-Length."
  if (httpVersion !== "1.1") return "Send Content-Length: HTTP/1.0 has no transfer codings."
  return length === undefined ? undefined : "Send Transfer-Encoding or Content-Length, not both."
}

/** Returns why a request is ambiguous; undefined if every reader takes it for the same one request. */
export const requestProblem = (request: Framed): RequestProblem | undefined => {
  const { headers, httpVersion } = request
  const host = headers.host === undefined ? httpVersion === "1.0" : !headers.host.includes(",")
  if (!host) return { path: "headers.host", message: "Send exactly one Host header." }
  const transfer = transferProblem(request)
  if (transfer !== undefined) return { path: "headers.transfer-encoding", message: transfer }
  if (!lengthForm.test(headers["content-length"] ?? "0")) {
    return { path: "headers.content-length", message: "Send one length, in decimal digits." }
  }
  if (headers.connection === undefined) return undefined
  for (const name of connectionNames(headers.connection)) {
    if (!protectedForm.test(name)) continue
    return { path: "headers.connection", message: `Connection must not name ${name}.` }
  }
  return undefined
}

/** Returns the refusal of an ambiguous request; undefined for any other. */
export const refusalOf = (request: Framed): InvalidRequest | undefined => {
  const problem = requestProblem(request)
  return problem === undefined ? undefined : new InvalidRequest({ details: { issues: [problem] } })
}
