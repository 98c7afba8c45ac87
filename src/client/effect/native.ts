/**
 * Native Effect client for TypeScript servers (package entry `effect`): the realtime procedures over
 * `/v1/rpc`, and the HTTP API. Both are the definitions themselves, so requests, replies and errors are
 * decoded and typed. It needs the package `effect`.
 */
import { Effect, Layer } from "effect"
import { FetchHttpClient, HttpClient, HttpClientRequest } from "effect/http"
import { HttpApiClient } from "effect/http-api"
import { RpcClient, RpcSerialization } from "effect/rpc"
import { Socket } from "effect/socket"
import { Api } from "#rpc/api"
import { RealtimeRpcs } from "#rpc/realtime"

export { Api } from "#rpc/api"
export { RealtimeRpcs, ServerEvent } from "#rpc/realtime"

/** A service, and the secret key of one environment. The key never leaves your servers. */
export interface ServerOptions {
  /** Base URL of the service, without an API path: `https://api.example.com`. */
  readonly baseUrl: string
  /** The environment's secret key, `sk_...`. */
  readonly secretKey: string
}

/**
 * Makes a client of the whole HTTP API with the secret key. The groups are those of the API page.
 *
 * @example
 * const api = yield* makeHttpApi({ baseUrl, secretKey })
 * yield* api.moderation.ban({ params: { playerId }, payload: { reason: "aimbot" } })
 */
export const makeHttpApi = ({ baseUrl, secretKey }: ServerOptions) =>
  HttpApiClient.make(Api, {
    baseUrl,
    transformClient: HttpClient.mapRequest(HttpClientRequest.setHeader("X-Svc-Key", secretKey))
  }).pipe(Effect.provide(FetchHttpClient.layer))

/**
 * Opens a connection that acts for one player, until the scope closes. `events` is the connection: run
 * it, and call the procedures of `rpc` once it has delivered `welcome`. Its end means that the
 * connection has ended.
 *
 * @example
 * const { events, rpc } = yield* connectRealtime({ baseUrl, secretKey, playerId })
 */
export const connectRealtime = Effect.fnUntraced(function* (
  options: ServerOptions & { readonly playerId: string }
) {
  const { baseUrl, playerId, secretKey } = options
  const url = `${baseUrl.replace(/^http/, "ws").replace(/\/$/, "")}/v1/rpc`
  const protocol = RpcClient.layerProtocolSocket().pipe(
    Layer.provide(Socket.layerWebSocket(url)),
    Layer.provide(Socket.layerWebSocketConstructorGlobal),
    Layer.provide(RpcSerialization.layerJson)
  )
  const rpc = yield* Effect.provide(RpcClient.make(RealtimeRpcs), yield* Layer.build(protocol))
  const headers = { "x-svc-key": secretKey, "x-svc-player": playerId }
  return { rpc, events: rpc.events(undefined, { headers }) }
})
