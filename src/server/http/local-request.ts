/**
 * Requests from this machine, the only ones that development pages answer. A reverse proxy on the same
 * machine connects from loopback, too, so a request with any trace of a proxy counts as foreign.
 */
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import { Option } from "effect"
import type { HttpServerRequest } from "effect/http"
import { isLoopback } from "#rpc/config-document/origins"
import { resolveClientAddress } from "#server/platform/client-address"

/** Loopback as client addresses. */
const ownAddresses: ReadonlySet<string> = new Set(["127.0.0.1", "::/64"])

/** Headers of proxies, load balancers, tunnels and content delivery networks. */
const forwardingHeaders = [
  /^(?:forwarded|via|cdn-loop|client-ip|true-client-ip|x-real-ip|x-forwarded)$/,
  /^x-(?:forwarded|original|envoy|azure|client|cluster-client)-/,
  /^(?:cf|fly|fastly|do|ngrok)-/
]

const isForwarded = (header: string): boolean => forwardingHeaders.some((form) => form.test(header))

/**
 * Whether a program or a page of this machine asks for itself, or a page of `ownOrigin`. A navigation sends
 * no origin. A script of another page does, or reaches this host under a foreign name. Browsers and tools
 * speak HTTP/1.1; nginx with its defaults speaks HTTP/1.0 and adds no header.
 */
export const isLocalRequest = (
  request: HttpServerRequest.HttpServerRequest,
  ownOrigin?: string
): boolean => {
  const { headers, remoteAddress } = request
  const { host, origin } = headers
  const name = URL.parse(`http://${host}`)?.hostname ?? ""
  return (
    (origin === undefined || origin === ownOrigin) &&
    isLoopback(name) &&
    NodeHttpServerRequest.toIncomingMessage(request).httpVersion !== "1.0" &&
    ownAddresses.has(resolveClientAddress(Option.getOrUndefined(remoteAddress), undefined, [])) &&
    !Object.keys(headers).some(isForwarded)
  )
}
