/**
 * Client for the cluster's own RPC: Effect RPC over a socket with a ping every second. A frozen runner
 * keeps its connections open; the ping makes calls to it fail, so that they are retried on the runner
 * that owns the entities now.
 */
import { NodeSocket } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import { Runners } from "effect/cluster"
import { RpcClient, RpcSerialization } from "effect/rpc"
import { Socket } from "effect/socket"

const openTimeout = 1000
const pingInterval = 1000
const pingTimeout = 2000

export const ClientProtocol: Layer.Layer<
  Runners.RpcClientProtocol,
  never,
  RpcSerialization.RpcSerialization
> = Layer.effect(
  Runners.RpcClientProtocol,
  Effect.gen(function* () {
    const serialization = yield* RpcSerialization.RpcSerialization
    return Runners.RpcClientProtocol.of({
      codecFor: serialization.codecFor,
      make: Effect.fnUntraced(function* ({ host, port }) {
        const socket = yield* NodeSocket.makeNet({ host, port, openTimeout, noDelay: true })
        return yield* RpcClient.makeProtocolSocket({ pingInterval, pingTimeout }).pipe(
          Effect.provideService(Socket.Socket, socket),
          Effect.provideService(RpcSerialization.RpcSerialization, serialization)
        )
      }, Effect.orDie)
    })
  })
)
