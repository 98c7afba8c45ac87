/**
 * Outgoing HTTP requests, protected against SSRF: to addresses that developers choose (webhooks),
 * and to sign-in providers. A host must resolve to public addresses only. The connection uses the
 * address that was checked, so DNS rebinding does not help. The service does not follow redirects.
 * URLs must be `https`, except for a server on the developer's own machine where that is allowed.
 *
 * Tenants share the requests under way. The timeout of a request begins when it is sent. A request
 * that this process could not make or wait for fails with `unavailable`. That is no response of the
 * other server, and must not count as one.
 */
import {
  Agent as HttpAgent,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request as httpRequest
} from "node:http"
import { Agent as HttpsAgent, request as httpsRequest } from "node:https"
import type { LookupFunction } from "node:net"
import { type EventLoopUtilization, performance } from "node:perf_hooks"
import { Context, Data, Effect, Layer, Record, Result } from "effect"
import { IpNetwork, NetAddress } from "effect/net"
import { isLoopback } from "#rpc/config-document/origins"
import { Unavailable } from "#rpc/errors/codes"
import { KiB } from "#rpc/units"
import { FairSemaphore } from "./fair-semaphore.ts"
import { type Resolve, resolveByDns, resolveBySystem } from "./name-resolution.ts"
import { currentTenant } from "./tenant.ts"

/**
 * Requests from one process to servers of developers and to sign-in providers. The service divides
 * both bounds between environments. A request that waits longer, or finds the queue of its
 * environment full, gets 503 `unavailable`.
 */
export const outgoingLimits = {
  responseMaxBytes: 64 * KiB,
  webhooks: {
    permits: 1024,
    share: 1,
    permitsPerKey: 64,
    waitingPerKey: 256,
    waitMillis: 2000
  },
  signIns: { permits: 256, share: 1, permitsPerKey: 64, waitingPerKey: 64, waitMillis: 5000 },
  /** Reports of one player that are verified at a time; further ones wait, then 429. */
  reportsPerPlayer: { permits: Infinity, permitsPerKey: 1, waitingPerKey: 4, waitMillis: 10_000 }
} as const

/**
 * Error when the other server is down, or its response is not usable; `message` is for the
 * developer.
 */
export class OutgoingError extends Data.TaggedError("OutgoingError")<{
  readonly message: string
}> {}

/**
 * Permitted targets of a request. `public`: the internet, by `https`. `loopback`: also this
 * machine. `anywhere`: any address, since the operator has set it.
 */
export type TargetPolicy = "public" | "loopback" | "anywhere"

/** Shared bound against which a request counts; tenants share each. */
export type OutgoingPurpose = "webhooks" | "signIns"

/** A request whose response may have any status. */
export interface OutgoingRequest {
  readonly purpose: OutgoingPurpose
  /** Tenant of the request, by default that of the fiber. */
  readonly tenant?: string | undefined
  readonly url: string
  readonly method: "GET" | "POST"
  readonly body?: string | undefined
  readonly headers: Readonly<Record<string, string>>
  readonly timeoutMillis: number
  readonly responseMaxBytes: number
  readonly targets: TargetPolicy
}

/** A response with its whole body. */
export interface OutgoingResponse {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** A POST of JSON to a webhook; anything but `2xx` within the time and size limits is an error. */
export interface OutgoingPost {
  readonly url: string
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
  readonly timeoutMillis: number
  /** Whether the URL may also be a server on this machine, over `http` too. */
  readonly allowLoopback: boolean
}

/** Special-purpose addresses that are not part of the internet (RFC 6890). */
export const notPublic = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.31.196.0/24",
  "192.52.193.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "192.175.48.0/24",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/3",
  // Within the global unicast space: protocol assignments with Teredo, documentation, 6to4.
  "2001::/23",
  "2001:db8::/32",
  "2002::/16",
  "2620:4f:8000::/48",
  "3fff::/20"
]

const notPublicNetworks = notPublic.map((text) => Result.getOrThrow(IpNetwork.fromString(text)))

/** The public part of IPv6; it excludes addresses that embed an IPv4 one (NAT64, mapped). */
const globalUnicast = Result.getOrThrow(IpNetwork.fromString("2000::/3"))

const parseAddress = (text: string): NetAddress.IpAddress | undefined => {
  const ip = NetAddress.ipFromString(text.replace(/^\[(.*)\]$/, "$1"))
  return Result.isSuccess(ip) ? NetAddress.toCanonical(ip.success) : undefined
}

/** Whether the service may connect to an address; false for a text that is not an address. */
export const mayConnect = (text: string, allowLoopback: boolean): boolean => {
  const address = parseAddress(text)
  if (address === undefined) return false
  if (NetAddress.isLoopback(address)) return allowLoopback
  if (NetAddress.isIpv6Address(address) && !IpNetwork.contains(globalUnicast, address)) return false
  return !notPublicNetworks.some((network) => IpNetwork.contains(network, address))
}

/** Checks a URL as far as possible without resolving its host. */
export const checkUrl = (
  text: string,
  allowLoopback: boolean
): Result.Result<URL, OutgoingError> => {
  const url = URL.parse(text)
  if (url === null) return refused("is not a URL")
  if (url.username !== "" || url.password !== "") return refused("names a user")
  const own = allowLoopback && url.protocol === "http:" && isLoopback(url.hostname)
  if (url.protocol !== "https:" && !own) return refused("is not https")
  // A host that is an address is never looked up, so check it here.
  const isAddress = parseAddress(url.hostname) !== undefined
  if (isAddress && !mayConnect(url.hostname, allowLoopback)) return refused("is not public")
  return Result.succeed(url)
}

const refused = (what: string) => Result.fail(new OutgoingError({ message: `The address ${what}` }))

/** DNS look-up for a connection: resolves once, checks the addresses, and connects to those. */
export const guardedLookup =
  (resolve: Resolve, allowLoopback: boolean, signal: AbortSignal): LookupFunction =>
  (hostname, options, callback) =>
    resolve(
      hostname,
      (error, addresses) => {
        const [first] = addresses
        if (error !== null || first === undefined) {
          return callback(error ?? new Error(`${hostname} has no address`), "")
        }
        // A private address among public ones may be an attack, so refuse all.
        if (!addresses.every(({ address }) => mayConnect(address, allowLoopback))) {
          return callback(new Error("The address is not public"), "")
        }
        if (options.all === true) callback(null, [...addresses])
        else callback(null, first.address, first.family)
      },
      signal
    )

/** Returns the parsed URL of a request, if the request is allowed. */
const urlOf = ({ targets, url }: OutgoingRequest): Result.Result<URL, OutgoingError> => {
  const parsed = URL.parse(url)
  if (targets !== "anywhere") return checkUrl(url, targets === "loopback")
  return parsed === null ? refused("is not a URL") : Result.succeed(parsed)
}

type RequestError = OutgoingError | Unavailable

/** HTTP client for servers outside the deployment. */
export class Outgoing extends Context.Service<
  Outgoing,
  {
    /** Returns the body of a `2xx` response. */
    readonly post: (post: OutgoingPost) => Effect.Effect<string, RequestError>
    /** Returns the response of any status. */
    readonly request: (request: OutgoingRequest) => Effect.Effect<OutgoingResponse, RequestError>
  }
>()("server/platform/outgoing/Outgoing") {
  /** Resolves names of public hosts, and those that may also be on this machine. */
  static readonly layerWith = (resolvePublic: Resolve, resolveLocal: Resolve = resolvePublic) =>
    Layer.effect(
      Outgoing,
      Effect.gen(function* () {
        const paths: Readonly<Record<TargetPolicy, Path>> = {
          public: yield* makePath((signal) => guardedLookup(resolvePublic, false, signal)),
          loopback: yield* makePath((signal) => guardedLookup(resolveLocal, true, signal)),
          anywhere: yield* makePath(undefined)
        }
        const { signIns, webhooks } = outgoingLimits
        const shares = Record.map({ signIns, webhooks }, (bounds) => {
          return new FairSemaphore({ ...bounds, refuse: Effect.fail(new Unavailable()) })
        })
        const request = Effect.fnUntraced(function* (options: OutgoingRequest) {
          const url = yield* Effect.fromResult(urlOf(options))
          const tenant = options.tenant ?? (yield* currentTenant)
          const send = withTimeout(exchange(url, options, paths[options.targets]), options)
          return yield* shares[options.purpose].withPermit(tenant)(send)
        })
        return Outgoing.of({ request, post: (options) => postBy(request, options) })
      })
    )

  static readonly layer = Outgoing.layerWith(resolveByDns(), resolveBySystem)
}

/** Share of busy time above which a response may have arrived that the process has not read. */
const busyShare = 0.9

const wasBusySince = (start: EventLoopUtilization): boolean =>
  performance.eventLoopUtilization(start).utilization > busyShare

const withTimeout = <A>(
  exchange: Effect.Effect<A, RequestError>,
  { timeoutMillis }: OutgoingRequest
): Effect.Effect<A, RequestError> =>
  Effect.suspend(() => {
    const start = performance.eventLoopUtilization()
    const message = `No response within ${timeoutMillis} ms`
    return Effect.timeoutOrElse(exchange, {
      duration: timeoutMillis,
      orElse: () =>
        Effect.suspend(() =>
          Effect.fail(wasBusySince(start) ? new Unavailable() : new OutgoingError({ message }))
        )
    })
  })

/** Idle time after which this process closes a connection, before the server: many close after 5 s. */
const idleMillis = 4000

/** Path of requests of one policy: how they find and connect to servers. */
interface Path {
  readonly http: HttpAgent
  readonly https: HttpsAgent
  readonly lookup: ((signal: AbortSignal) => LookupFunction) | undefined
}

/**
 * Makes a path. The connections to one server have no bound of their own: the requests under way
 * have one.
 */
const makePath = (lookup: Path["lookup"]) =>
  Effect.acquireRelease(
    Effect.sync((): Path => {
      const options = { keepAlive: true, timeout: idleMillis }
      return { http: new HttpAgent(options), https: new HttpsAgent(options), lookup }
    }),
    ({ http, https }) =>
      Effect.sync(() => {
        http.destroy()
        https.destroy()
      })
  )

/** A POST of JSON that fails unless the status is `2xx`. */
const postBy = Effect.fnUntraced(function* (
  request: Outgoing["Service"]["request"],
  { allowLoopback, body, headers, timeoutMillis, url }: OutgoingPost
) {
  const { responseMaxBytes } = outgoingLimits
  const response = yield* request({
    purpose: "webhooks",
    url,
    body,
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    timeoutMillis,
    responseMaxBytes,
    targets: allowLoopback ? "loopback" : "public"
  })
  if (response.status >= 200 && response.status <= 299) return response.body
  return yield* new OutgoingError({ message: `The response was ${response.status}` })
})

/**
 * Codes of failures on this side: no free descriptor, port, memory or route, or no name server. The
 * request has not reached the other server.
 */
const ownFailures = new Set([
  "EMFILE",
  "ENFILE",
  "ENOBUFS",
  "ENOMEM",
  "EAGAIN",
  "EADDRNOTAVAIL",
  "ENETDOWN",
  "ENETUNREACH",
  "EAI_AGAIN",
  "EAI_MEMORY"
])

const errorOf = (error: NodeJS.ErrnoException): RequestError => {
  const isOwn =
    ownFailures.has(error.code ?? "") || (error.code === "ECONNREFUSED" && isOfResolver(error))
  return isOwn ? new Unavailable() : new OutgoingError({ message: error.message })
}

/** Whether the name servers refused, rather than the server itself. */
const isOfResolver = ({ syscall }: NodeJS.ErrnoException): boolean =>
  syscall?.startsWith("query") === true

/** Sends one request and reads its response; an interruption closes the connection. */
const exchange = (
  url: URL,
  { responseMaxBytes, body, headers, method }: OutgoingRequest,
  { http, https, lookup }: Path
) =>
  Effect.callback<OutgoingResponse, RequestError>((resume) => {
    const ended = new AbortController()
    const fail = (error: RequestError) => resume(Effect.fail(error))
    const length = body === undefined ? {} : { "content-length": Buffer.byteLength(body) }
    const options = {
      method,
      headers: { ...headers, ...length },
      ...(lookup === undefined ? {} : { lookup: lookup(ended.signal) })
    }
    const onResponse = (response: IncomingMessage) => {
      const { headers: responseHeaders, statusCode: status = 0 } = response
      const chunks: Array<Buffer> = []
      let bytes = 0
      response.on("data", (chunk: Buffer) => {
        bytes += chunk.length
        if (bytes <= responseMaxBytes) return chunks.push(chunk)
        // Fail before destroying: a finished response emits no further error.
        fail(new OutgoingError({ message: `The response is over ${responseMaxBytes} bytes` }))
        request.destroy()
      })
      response.on("error", (error) => fail(errorOf(error)))
      response.on("end", () => {
        const text = Buffer.concat(chunks).toString("utf8")
        resume(Effect.succeed({ status, headers: responseHeaders, body: text }))
      })
    }
    const request =
      url.protocol === "https:"
        ? httpsRequest(url, { ...options, agent: https }, onResponse)
        : httpRequest(url, { ...options, agent: http }, onResponse)
    request.on("error", (error) => fail(errorOf(error)))
    request.end(body)
    return Effect.sync(() => {
      ended.abort()
      request.destroy()
    })
  })
