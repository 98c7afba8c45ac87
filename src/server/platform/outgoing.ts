/**
 * Requests to other servers: to addresses that developers choose (webhooks), and to sign-in providers.
 * They are made so that nobody reaches through the
 * service what only the service can reach: an address must be public, is checked after it is resolved,
 * and is the one that is connected to, so it does not help to answer another one later. Redirects are
 * not followed. Only `https`, save for a server on the developer's own machine where that is allowed.
 */
import { lookup as resolveName, type LookupAddress } from "node:dns"
import {
  Agent as HttpAgent,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request as httpRequest
} from "node:http"
import { Agent as HttpsAgent, request as httpsRequest } from "node:https"
import type { LookupFunction } from "node:net"
import { Context, Data, Effect, Layer, Result } from "effect"
import { IpNetwork, NetAddress } from "effect/net"
import { isLoopback } from "#rpc/config-document/origins"
import { outgoing as limits } from "#rpc/limits"

/** The request was not made, or not answered as it should; `message` is for the developer. */
export class OutgoingError extends Data.TaggedError("OutgoingError")<{
  readonly message: string
}> {}

/**
 * Where a request may go: to the internet by `https`; to the developer's own machine, too; or wherever
 * it is, since the operator of this service has written the address into its settings.
 */
export type Reach = "public" | "loopback" | "anywhere"

/** A request, whatever it is answered. */
export interface OutgoingRequest {
  readonly url: string
  readonly method: "GET" | "POST"
  readonly body?: string | undefined
  readonly headers: Readonly<Record<string, string>>
  readonly timeoutMillis: number
  readonly answerMaxBytes: number
  readonly reach: Reach
}

/** An answer with its whole body. */
export interface OutgoingResponse {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

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

/** The URL of a request, if it may be made. */
const urlOf = ({ reach, url }: OutgoingRequest): Result.Result<URL, OutgoingError> => {
  const parsed = URL.parse(url)
  if (reach !== "anywhere") return checkUrl(url, reach === "loopback")
  return parsed === null ? refused("is not a URL") : Result.succeed(parsed)
}

/** Makes requests to servers of others. */
export class Outgoing extends Context.Service<
  Outgoing,
  {
    /** The body of the answer. */
    readonly post: (post: OutgoingPost) => Effect.Effect<string, OutgoingError>
    /** The answer, whatever its status. */
    readonly request: (request: OutgoingRequest) => Effect.Effect<OutgoingResponse, OutgoingError>
  }
>()("server/platform/outgoing/Outgoing") {
  static readonly layerWith = (resolve: Resolve) =>
    Layer.effect(
      Outgoing,
      Effect.gen(function* () {
        const connections: Readonly<Record<Reach, Connections>> = {
          public: yield* makeConnections(guardedLookup(resolve, false)),
          loopback: yield* makeConnections(guardedLookup(resolve, true)),
          anywhere: yield* makeConnections(undefined)
        }
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
        const request = Effect.fnUntraced(function* (asked: OutgoingRequest) {
          const url = yield* Effect.fromResult(urlOf(asked))
          const answer = Effect.timeoutOrElse(exchange(url, asked, connections[asked.reach]), {
            duration: asked.timeoutMillis,
            orElse: () =>
              Effect.fail(
                new OutgoingError({ message: `No answer within ${asked.timeoutMillis} ms` })
              )
          })
          return yield* Effect.acquireUseRelease(
            begin,
            () => answer,
            () => end
          )
        })
        return Outgoing.of({ request, post: (asked) => postBy(request, asked) })
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

const makeConnections = (lookup: LookupFunction | undefined) =>
  Effect.acquireRelease(
    Effect.sync((): Connections => {
      const options = {
        keepAlive: true,
        timeout: idleMillis,
        maxSockets: limits.connectionsPerServer,
        ...(lookup === undefined ? {} : { lookup })
      }
      return { http: new HttpAgent(options), https: new HttpsAgent(options) }
    }),
    ({ http, https }) =>
      Effect.sync(() => {
        http.destroy()
        https.destroy()
      })
  )

/** A POST of JSON that has to go well. */
const postBy = Effect.fnUntraced(function* (
  request: Outgoing["Service"]["request"],
  { allowLoopback, body, headers, timeoutMillis, url }: OutgoingPost
) {
  const { answerMaxBytes } = limits
  const answer = yield* request({
    url,
    body,
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    timeoutMillis,
    answerMaxBytes,
    reach: allowLoopback ? "loopback" : "public"
  })
  if (answer.status >= 200 && answer.status <= 299) return answer.body
  return yield* new OutgoingError({ message: `The answer was ${answer.status}` })
})

/** One request and its answer; an interruption ends the connection. */
const exchange = (
  url: URL,
  { answerMaxBytes, body, headers, method }: OutgoingRequest,
  connections: Connections
) =>
  Effect.callback<OutgoingResponse, OutgoingError>((resume) => {
    const fail = (message: string) => resume(Effect.fail(new OutgoingError({ message })))
    const length = body === undefined ? {} : { "content-length": Buffer.byteLength(body) }
    const options = { method, headers: { ...headers, ...length } }
    const answered = (response: IncomingMessage) => {
      const { headers: answerHeaders, statusCode: status = 0 } = response
      const chunks: Array<Buffer> = []
      let bytes = 0
      response.on("data", (chunk: Buffer) => {
        bytes += chunk.length
        if (bytes <= answerMaxBytes) return chunks.push(chunk)
        // A socket that is through with its answer has nobody to hear of an error.
        fail(`The answer is over ${answerMaxBytes} bytes`)
        request.destroy()
      })
      response.on("error", ({ message }) => fail(message))
      response.on("end", () => {
        const text = Buffer.concat(chunks).toString("utf8")
        resume(Effect.succeed({ status, headers: answerHeaders, body: text }))
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
