/**
 * Headers between clients and functions. Names that mean something to the service or to miniflare never
 * pass, in either direction. Pure.
 */
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http"

/** Where a call arrives: below the base URL, beside the service's own pages, or on the app's own origin. */
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

/** On the base URL cookies are those of the service's own pages. */
const ofService = new Set(["cookie", "cookie2"])

const named = (connection: string | undefined): ReadonlySet<string> =>
  new Set((connection ?? "").split(",").map((name) => name.trim().toLowerCase()))

/** What the service says about a call. */
export interface CallFacts {
  readonly mount: Mount
  readonly url: string
  readonly clientAddress: string
  readonly playerId: string | undefined
  readonly callHeaders: Readonly<Record<string, string>>
}

/** The headers of a request that another runner passes on. */
export const forwardedHeaders = (headers: IncomingHttpHeaders): OutgoingHttpHeaders => {
  const dropped = named(headers.connection)
  const passed: OutgoingHttpHeaders = {}
  for (const [name, value] of Object.entries(headers)) {
    if (!hop.has(name) && !reserved.test(name) && !dropped.has(name)) passed[name] = value
  }
  return passed
}

/** The headers of a request as the function sees it, with those that its entry point needs. */
export const requestHeaders = (
  headers: IncomingHttpHeaders,
  { callHeaders, clientAddress, mount, playerId, url }: CallFacts
): OutgoingHttpHeaders => {
  const passed = forwardedHeaders(headers)
  if (mount === "service") for (const name of ofService) delete passed[name]
  passed["cf-connecting-ip"] = clientAddress
  passed["x-svc-url"] = url
  if (playerId !== undefined) passed["svc-player"] = playerId
  return { ...passed, ...callHeaders }
}

/** The headers of a response that comes from another runner, which has judged them. */
export const returnedHeaders = (headers: IncomingHttpHeaders): OutgoingHttpHeaders =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !hop.has(name)))

/**
 * Headers that a function may not set on the base URL: a browser keeps what they say for the whole origin,
 * so they act on the service's own pages. `nel` would report the service's own requests to others.
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

/** On the base URL a page of a function has an origin of its own, which reaches nothing of the service. */
const sandbox = "sandbox allow-downloads allow-forms allow-modals allow-popups allow-scripts"

/** The headers of a response as the client sees it. */
export const responseHeaders = (
  headers: IncomingHttpHeaders,
  mount: Mount
): OutgoingHttpHeaders => {
  const dropped = named(headers.connection)
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
