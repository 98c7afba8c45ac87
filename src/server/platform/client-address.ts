/**
 * The network address that a request came from, as throttles count it: an IPv4 address, or the /64
 * of an IPv6 one, since a single customer of a provider has at least that many. `X-Forwarded-For` is
 * believed only as far as trusted proxies wrote it.
 */
import type { IncomingMessage } from "node:http"
import { Option, Result } from "effect"
import type { HttpServerRequest } from "effect/http"
import { IpNetwork, NetAddress } from "effect/net"

type TrustedProxies = ReadonlyArray<IpNetwork.IpNetwork>

const unknown = "unknown"
const sitePrefix = 64

/** An address in whatever form it comes: `::ffff:1.2.3.4`, `[::1]:80`, `fe80::1%eth0`. */
const parse = (text: string): NetAddress.IpAddress | undefined => {
  const ip = NetAddress.ipFromString(text.replace(/^\[(.*)\]$/, "$1").replace(/%.*$/, ""))
  if (Result.isSuccess(ip)) return NetAddress.toCanonical(ip.success)
  const inet = NetAddress.inetAddressFromString(text)
  return Result.isSuccess(inet) ? NetAddress.toCanonical(inet.success.address) : undefined
}

/** The client's address: the last hop that no trusted proxy stands for. */
const clientOf = (
  peer: NetAddress.IpAddress,
  forwardedFor: string | undefined,
  trusted: TrustedProxies
): NetAddress.IpAddress => {
  let client = peer
  for (const hop of (forwardedFor ?? "").split(",").toReversed()) {
    const address = parse(hop.trim())
    const believed = trusted.some((network) => IpNetwork.contains(network, client))
    if (address === undefined || !believed) return client
    client = address
  }
  return client
}

const keyOf = (address: NetAddress.IpAddress): string =>
  NetAddress.isIpv4Address(address)
    ? NetAddress.formatIp(address)
    : IpNetwork.format(IpNetwork.fromAddressUnsafe(address, sitePrefix))

/** The address of a peer and what it says of itself. */
export const resolveClientAddress = (
  peer: string | undefined,
  forwardedFor: string | undefined,
  trusted: TrustedProxies
): string => {
  const address = parse(peer ?? "")
  if (address === undefined) return unknown
  // Most requests name no one else, and to parse nothing is dear: it makes an error with its stack.
  const alone = forwardedFor === undefined || trusted.length === 0
  return keyOf(alone ? address : clientOf(address, forwardedFor, trusted))
}

/** The address of a request to Node's server, for instance an upgrade. */
export const addressOf = (request: IncomingMessage, trusted: TrustedProxies): string =>
  resolveClientAddress(
    request.socket.remoteAddress,
    request.headersDistinct["x-forwarded-for"]?.join(","),
    trusted
  )

/** The address of a request to the HTTP router. */
export const clientAddress = (
  request: HttpServerRequest.HttpServerRequest,
  trusted: TrustedProxies
): string =>
  resolveClientAddress(
    Option.getOrUndefined(request.remoteAddress),
    request.headers["x-forwarded-for"],
    trusted
  )
