/**
 * Client address of a request, as throttles count it. It is an IPv4 address, or the /64 of an IPv6
 * address, since one customer of a provider has at least a /64. Entries of `X-Forwarded-For` count
 * only as far as trusted proxies have written them.
 */
import type { IncomingMessage } from "node:http"
import { Option, Result } from "effect"
import type { HttpServerRequest } from "effect/http"
import { IpNetwork, NetAddress } from "effect/net"

type TrustedProxies = ReadonlyArray<IpNetwork.IpNetwork>

const unknown = "unknown"
const sitePrefix = 64
const widePrefix = 48

/** Parses any form of an address: `::ffff:1.2.3.4`, `[::1]:80`, `fe80::1%eth0`. */
const parseAddress = (text: string): NetAddress.IpAddress | undefined => {
  const ip = NetAddress.ipFromString(text.replace(/^\[(.*)\]$/, "$1").replace(/%.*$/, ""))
  if (Result.isSuccess(ip)) return NetAddress.toCanonical(ip.success)
  const inet = NetAddress.inetAddressFromString(text)
  return Result.isSuccess(inet) ? NetAddress.toCanonical(inet.success.address) : undefined
}

/** Addresses that were parsed last: one request asks for its client's several times. */
const parsed = new Map<string, NetAddress.IpAddress | undefined>()
const parsedMax = 1000
const parsedMaxCharacters = 64

const parse = (text: string): NetAddress.IpAddress | undefined => {
  if (parsed.has(text)) return parsed.get(text)
  const address = parseAddress(text)
  if (text.length > parsedMaxCharacters) return address
  if (parsed.size >= parsedMax) parsed.clear()
  parsed.set(text, address)
  return address
}

/** The last hop that is not a trusted proxy. */
const clientOf = (
  peer: NetAddress.IpAddress,
  forwardedFor: string | undefined,
  trusted: TrustedProxies
): NetAddress.IpAddress => {
  // Parsing an empty header creates an error with its stack.
  if (forwardedFor === undefined || trusted.length === 0) return peer
  let client = peer
  for (const hop of forwardedFor.split(",").toReversed()) {
    const address = parse(hop.trim())
    const isTrusted = trusted.some((network) => IpNetwork.contains(network, client))
    if (address === undefined || !isTrusted) return client
    client = address
  }
  return client
}

const keyOf = (address: NetAddress.IpAddress): string =>
  NetAddress.isIpv4Address(address)
    ? NetAddress.formatIp(address)
    : IpNetwork.format(IpNetwork.fromAddressUnsafe(address, sitePrefix))

/** The /64 of an IPv6 client in a key, between colons; the words of keys are no hexadecimal groups. */
const networkForm = /(?<=^|:)(?:(?:[0-9a-f]{1,4}:){1,4}|:):\/64(?=$|:)/

/** The same key for the /48 around the IPv6 client that it names; undefined if it names none. */
export const siteKey = (key: string): string | undefined => {
  const [network] = networkForm.exec(key) ?? []
  if (network === undefined) return undefined
  const { address } = IpNetwork.fromStringUnsafe(network)
  return key.replace(network, IpNetwork.format(IpNetwork.fromAddressUnsafe(address, widePrefix)))
}

/** The client address, given the peer's address and its `X-Forwarded-For`. */
export const resolveClientAddress = (
  peer: string | undefined,
  forwardedFor: string | undefined,
  trusted: TrustedProxies
): string => {
  const address = parse(peer ?? "")
  if (address === undefined) return unknown
  return keyOf(clientOf(address, forwardedFor, trusted))
}

/** The same; undefined if it is unknown, or only that of a trusted proxy is known. */
export const ownAddress = (
  peer: string | undefined,
  forwardedFor: string | undefined,
  trusted: TrustedProxies
): string | undefined => {
  const address = parse(peer ?? "")
  if (address === undefined) return undefined
  const client = clientOf(address, forwardedFor, trusted)
  const isProxy = trusted.some((network) => IpNetwork.contains(network, client))
  return isProxy ? undefined : keyOf(client)
}

/** The client address of a request to Node's server, such as an upgrade. */
export const addressOf = (request: IncomingMessage, trusted: TrustedProxies): string =>
  resolveClientAddress(
    request.socket.remoteAddress,
    request.headersDistinct["x-forwarded-for"]?.join(","),
    trusted
  )

/** The client address of a request to the HTTP router. */
export const clientAddress = (
  request: HttpServerRequest.HttpServerRequest,
  trusted: TrustedProxies
): string =>
  resolveClientAddress(
    Option.getOrUndefined(request.remoteAddress),
    request.headers["x-forwarded-for"],
    trusted
  )
