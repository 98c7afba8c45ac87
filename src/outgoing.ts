/**
 * Requests to addresses that developers choose (webhooks), made so that nobody reaches through the
 * service what only the service can reach: an address must be public, is checked after it is resolved,
 * and is the one that is connected to, so it does not help to answer another one later. Redirects are
 * not followed. Only `https`, save for a server on the developer's own machine where that is allowed.
 */
import { lookup as resolveName, type LookupAddress } from "node:dns"
import { Agent as HttpAgent, type IncomingMessage, request as httpRequest } from "node:http"
import { Agent as HttpsAgent, request as httpsRequest } from "node:https"
import type { LookupFunction } from "node:net"
import { Context, Data, Effect, Layer, Result } from "effect"
import { IpNetwork, NetAddress } from "effect/net"
import { isLoopback } from "#rpc/config/origins"
import { outgoing as limits } from "#rpc/limits"

/** The request was not made, or not answered as it should; `message` is for the developer. */
export class OutgoingError extends Data.TaggedError("OutgoingError")<{
  readonly message: string
}> {}

/** A POST of JSON; `2xx` within time and size is an answer, anything else an error. */
export interface OutgoingPost {
  readonly url: string
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
  readonly timeoutMillis: number
  /** The developer's own machine may be asked too, also by `http`. */
  readonly allowLoopback: boolean
}

/** Everything that the registries of special-purpose addresses (RFC 6890) keep from the internet. */
const notPublic = [
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
].map((text) => Result.getOrThrow(IpNetwork.fromString(text)))

/** All of IPv6 that is in the internet; what embeds an IPv4 address (NAT64, mapped) is not in it. */
const globalUnicast = Result.getOrThrow(IpNetwork.fromString("2000::/3"))

const parseAddress = (text: string): NetAddress.IpAddress | undefined => {
  const ip = NetAddress.ipFromString(text.replace(/^\[(.*)\]$/, "$1"))
  return Result.isSuccess(ip) ? NetAddress.toCanonical(ip.success) : undefined
}

/** Whether an address may be connected to; a text that is no address may not. */
export const mayConnect = (text: string, allowLoopback: boolean): boolean => {
  const address = parseAddress(text)
  if (address === undefined) return false
  if (NetAddress.isLoopback(address)) return allowLoopback
  if (NetAddress.isIpv6Address(address) && !IpNetwork.contains(globalUnicast, address)) return false
  return !notPublic.some((network) => IpNetwork.contains(network, address))
}

/** A URL that may be asked, as far as it can be told without resolving its host. */
export const checkUrl = (
  text: string,
  allowLoopback: boolean
): Result.Result<URL, OutgoingError> => {
  const url = URL.parse(text)
  if (url === null) return refused("is not a URL")
  if (url.username !== "" || url.password !== "") return refused("names a user")
  const own = allowLoopback && url.protocol === "http:" && isLoopback(url.hostname)
  if (url.protocol !== "https:" && !own) return refused("is not https")
  // A host that is an address is never looked up.
  const isAddress = parseAddress(url.hostname) !== undefined
  if (isAddress && !mayConnect(url.hostname, allowLoopback)) return refused("is not public")
  return Result.succeed(url)
}

const refused = (what: string) => Result.fail(new OutgoingError({ message: `The address ${what}` }))

/** All addresses of a host name. */
export type Resolve = (
  hostname: string,
  answer: (error: Error | null, addresses: ReadonlyArray<LookupAddress>) => void
) => void

const resolveBySystem: Resolve = (hostname, answer) =>
  resolveName(hostname, { all: true }, (error, addresses) => answer(error, addresses))

/** The look-up of a connection: one resolution, whose addresses are checked and then used. */
export const guardedLookup =
  (resolve: Resolve, allowLoopback: boolean): LookupFunction =>
  (hostname, options, answer) =>
    resolve(hostname, (error, addresses) => {
      const [first] = addresses
      if (error !== null || first === undefined) {
        return answer(error ?? new Error(`${hostname} has no address`), "")
      }
      // One private address among public ones is a trap, too.
      if (!addresses.every(({ address }) => mayConnect(address, allowLoopback))) {
        return answer(new Error("The address is not public"), "")
      }
      if (options.all === true) answer(null, [...addresses])
      else answer(null, first.address, first.family)
    })

/** Makes requests to servers of developers. */
export class Outgoing extends Context.Service<
  Outgoing,
  {
    /** The body of the answer. */
    readonly post: (post: OutgoingPost) => Effect.Effect<string, OutgoingError>
  }
>()("src/outgoing/Outgoing") {
  static readonly layerWith = (resolve: Resolve) =>
    Layer.effect(
      Outgoing,
      Effect.gen(function* () {
        const strict = yield* makeConnections(resolve, false)
        const own = yield* makeConnections(resolve, true)
        let underWay = 0
        const begin = Effect.suspend(() => {
          if (underWay >= limits.requestsMax) {
            return Effect.fail(new OutgoingError({ message: "Too many requests are under way" }))
          }
          underWay += 1
          return Effect.void
        })
        const end = Effect.sync(() => {
          underWay -= 1
        })
        return Outgoing.of({
          post: Effect.fnUntraced(function* (post) {
            const url = yield* Effect.fromResult(checkUrl(post.url, post.allowLoopback))
            const connections = post.allowLoopback ? own : strict
            const answer = Effect.timeoutOrElse(exchange(url, post, connections), {
              duration: post.timeoutMillis,
              orElse: () =>
                Effect.fail(
                  new OutgoingError({ message: `No answer within ${post.timeoutMillis} ms` })
                )
            })
            return yield* Effect.acquireUseRelease(
              begin,
              () => answer,
              () => end
            )
          })
        })
      })
    )

  static readonly layer = Outgoing.layerWith(resolveBySystem)
}

/** Idle connections go before servers close theirs, which is after five seconds at many. */
const idleMillis = 4000

interface Connections {
  readonly http: HttpAgent
  readonly https: HttpsAgent
}

const makeConnections = (resolve: Resolve, allowLoopback: boolean) =>
  Effect.acquireRelease(
    Effect.sync((): Connections => {
      const options = {
        keepAlive: true,
        timeout: idleMillis,
        maxSockets: limits.connectionsPerServer,
        lookup: guardedLookup(resolve, allowLoopback)
      }
      return { http: new HttpAgent(options), https: new HttpsAgent(options) }
    }),
    ({ http, https }) =>
      Effect.sync(() => {
        http.destroy()
        https.destroy()
      })
  )

/** One request and its answer; an interruption ends the connection. */
const exchange = (url: URL, { body, headers }: OutgoingPost, connections: Connections) =>
  Effect.callback<string, OutgoingError>((resume) => {
    const fail = (message: string) => resume(Effect.fail(new OutgoingError({ message })))
    const options = {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "content-length": Buffer.byteLength(body),
        ...headers
      }
    }
    const answered = (response: IncomingMessage) => {
      const { statusCode = 0 } = response
      const chunks: Array<Buffer> = []
      let bytes = 0
      response.on("data", (chunk: Buffer) => {
        bytes += chunk.length
        if (bytes <= limits.answerMaxBytes) chunks.push(chunk)
        else request.destroy(new Error(`The answer is over ${limits.answerMaxBytes} bytes`))
      })
      response.on("error", ({ message }) => fail(message))
      response.on("end", () => {
        if (statusCode < 200 || statusCode > 299) fail(`The answer was ${statusCode}`)
        else resume(Effect.succeed(Buffer.concat(chunks).toString("utf8")))
      })
    }
    const request =
      url.protocol === "https:"
        ? httpsRequest(url, { ...options, agent: connections.https }, answered)
        : httpRequest(url, { ...options, agent: connections.http }, answered)
    request.on("error", ({ message }) => fail(message))
    request.end(body)
    return Effect.sync(() => request.destroy())
  })
