/**
 * Headers between clients and functions. Headers with a meaning for the service or miniflare never reach
 * a function; of its response, those that begin with `mf-` or `x-svc-` never reach a client. Pure.
 */
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http"
import { connectionNames } from "./framing.ts"

/** Mount of a call: below the base URL, beside the service's own pages, or on the app's own origin. */
export type Mount = "service" | "app"

/** Headers of one connection (RFC 9110 section 7.6.1). */
const hop = new Set([
  "connection",
  // A server may ignore an expectation (RFC 9110 section 10.1.1).
  "expect",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade"
])

const reserved = /^(?:mf-|x-svc-|cf-|svc-player$)/

/**
 * Headers that stay with the service on the base URL. Cookies there are those of the service's own
 * pages.
 */
const ofService = new Set(["cookie", "cookie2"])

/** Metadata of a call that the service hands to the function. */
export interface CallMetadata {
  readonly mount: Mount
  readonly url: string
  readonly clientAddress: string
  readonly playerId: string | undefined
}

/**
 * Returns the headers of a request that this runner forwards to another runner. Its framing is not among
 * them: {@link framingHeaders} states it.
 */
export const forwardedHeaders = (headers: IncomingHttpHeaders): OutgoingHttpHeaders => {
  const dropped = connectionNames(headers.connection)
  const passed: OutgoingHttpHeaders = {}
  for (const [name, value] of Object.entries(headers)) {
    if (name === "content-length" || hop.has(name)) continue
    if (!reserved.test(name) && !dropped.has(name)) passed[name] = value
  }
  return passed
}

/** Returns the client's headers that its function gets. */
export const requestHeaders = (
  headers: IncomingHttpHeaders,
  { mount }: Pick<CallMetadata, "mount">
): OutgoingHttpHeaders => {
  const passed = forwardedHeaders(headers)
  if (mount === "service") for (const name of ofService) delete passed[name]
  return passed
}

/** What a response says to the browser of a page of another origin. */
export interface PageAccess {
  /** Origin whose pages may read the response; undefined for a request without one. */
  readonly allowOrigin: string | undefined
}

/** Lets pages of an origin read a response, unless its function has decided about pages. */
export const withPageAccess = (
  headers: OutgoingHttpHeaders,
  access: PageAccess | undefined
): OutgoingHttpHeaders => {
  if (access === undefined || headers["access-control-allow-origin"] !== undefined) return headers
  const { allowOrigin } = access
  const vary = String(headers["vary"] ?? "")
  const isVaried = /(?:^|[\s,])(?:\*|origin)(?:$|[\s,])/i.test(vary)
  return {
    ...headers,
    ...(allowOrigin === undefined ? {} : { "access-control-allow-origin": allowOrigin }),
    vary: isVaried ? vary : [vary, "Origin"].filter((name) => name !== "").join(", ")
  }
}

/** Returns the headers of a response from another runner, which has filtered them. */
export const returnedHeaders = (headers: IncomingHttpHeaders): OutgoingHttpHeaders =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !hop.has(name)))

/**
 * Headers that a function may not set on the base URL. A browser applies them to the whole origin, so
 * they would affect the service's own pages. `nel` would report the service's own requests to others.
 */
const deniedOnService = new Set([
  "accept-ch",
  "alt-svc",
  "clear-site-data",
  "content-security-policy",
  "critical-ch",
  "nel",
  "origin-agent-cluster",
  "public-key-pins",
  "report-to",
  "service-worker-allowed",
  "set-cookie",
  "set-login",
  "strict-transport-security"
])

/**
 * Content security policy of functions on the base URL. It gives their pages an opaque origin without
 * access to the service.
 */
const sandbox = "sandbox allow-downloads allow-forms allow-modals allow-popups allow-scripts"

/** Returns the response headers for the client. */
export const responseHeaders = (
  headers: IncomingHttpHeaders,
  mount: Mount
): OutgoingHttpHeaders => {
  const dropped = connectionNames(headers.connection)
  const passed: OutgoingHttpHeaders = {}
  for (const [name, value] of Object.entries(headers)) {
    if (hop.has(name) || /^(?:mf-|x-svc-)/.test(name) || dropped.has(name)) continue
    if (mount === "service" && deniedOnService.has(name)) continue
    passed[name] = value
  }
  if (mount === "service") {
    passed["content-security-policy"] = sandbox
    passed["x-content-type-options"] = "nosniff"
  }
  return passed
}
