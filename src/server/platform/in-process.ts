/**
 * Calls of the service to its own API, for agents and functions. A call runs the route of the endpoint,
 * with its feature gate, codecs, handler and audit; only its caller is known instead of authenticated.
 * It uses no socket.
 */
import { Context, Deferred, Effect, Layer, type Scope } from "effect"
import { Headers, HttpClientRequest, HttpServerRequest, type HttpServerResponse } from "effect/http"
import type { Actor, EnvironmentCaller } from "#rpc/auth"
import type { Door } from "#rpc/operations"

/**
 * Caller of a call in the process, whom its door has authenticated. The middleware of secret keys takes
 * it for a key.
 */
export interface KnownCaller {
  readonly environment: EnvironmentCaller
  readonly actor: Actor
  readonly door: Door
}

/** The known caller of this request; no request from a socket has one. */
export const KnownCaller = Context.Reference<KnownCaller | undefined>(
  "server/platform/in-process/KnownCaller",
  { defaultValue: () => undefined }
)

/** A call. `path` begins with `/`, includes the query, and has encoded segments. */
export interface InProcessCall {
  readonly method: "DELETE" | "GET" | "PATCH" | "POST" | "PUT"
  readonly path: string
  readonly body?: string | Uint8Array
  /** Request behind the call, whose address the audit log names. */
  readonly client?: HttpServerRequest.HttpServerRequest | undefined
}

export interface InProcessReply {
  readonly status: number
  readonly body: Uint8Array
}

/** Serves the request of the context. */
export type Serve = Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  never,
  HttpServerRequest.HttpServerRequest | Scope.Scope
>

const none = new Uint8Array()

const forwardedFor = "x-forwarded-for"

const withBody = (request: HttpClientRequest.HttpClientRequest, body: string | Uint8Array) =>
  typeof body === "string"
    ? HttpClientRequest.bodyText(request, body, "application/json")
    : HttpClientRequest.bodyUint8Array(request, body, "application/json")

const requestOf = ({ body, client, method, path }: InProcessCall) => {
  const sent = HttpClientRequest.make(method)("http://localhost/")
  const received = HttpServerRequest.fromClientRequest(
    body === undefined ? sent : withBody(sent, body)
  )
  const forwarded = client?.headers[forwardedFor]
  // The path does not pass through a URL, which would resolve an id of two dots.
  return received.modify({
    url: path,
    ...(client === undefined ? {} : { remoteAddress: client.remoteAddress }),
    ...(forwarded === undefined
      ? {}
      : { headers: Headers.set(received.headers, forwardedFor, forwarded) })
  })
}

/** Reads a response whole. No operation of an agent or a function streams more than a page. */
const bodyOf = ({ body }: HttpServerResponse.HttpServerResponse): Effect.Effect<Uint8Array> => {
  switch (body._tag) {
    case "Empty":
      return Effect.succeed(none)
    case "Uint8Array":
      return Effect.succeed(body.body)
    default:
      return Effect.die(new Error(`No call in the process reads a body of kind ${body._tag}`))
  }
}

/** The API in the process. The floor of HTTP opens it; calls before that wait. */
export class InProcess extends Context.Service<
  InProcess,
  {
    readonly open: (serve: Serve) => Effect.Effect<void>
    readonly call: (caller: KnownCaller, call: InProcessCall) => Effect.Effect<InProcessReply>
  }
>()("server/platform/in-process/InProcess") {
  static readonly layer = Layer.effect(
    InProcess,
    Effect.gen(function* () {
      const opened = yield* Deferred.make<Serve>()
      return InProcess.of({
        open: (serve) => Effect.asVoid(Deferred.succeed(opened, serve)),
        call: Effect.fnUntraced(function* (caller, call) {
          const serve = yield* Deferred.await(opened)
          return yield* serve.pipe(
            Effect.flatMap((response) =>
              Effect.map(bodyOf(response), (body) => ({ status: response.status, body }))
            ),
            Effect.provideService(HttpServerRequest.HttpServerRequest, requestOf(call)),
            Effect.provideService(KnownCaller, caller),
            Effect.scoped
          )
        })
      })
    })
  )
}
