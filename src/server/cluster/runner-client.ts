/**
 * Client for the cluster's own RPC: Effect RPC over a socket with a ping every second. A frozen runner
 * keeps its connections open; the ping makes calls to it fail, so that they are retried on the runner
 * that owns the entities now.
 */
import * as NodeSocket from "@effect/platform-node/NodeSocket"
import { Effect, Layer } from "effect"
import { RunnerAddress, Runners } from "effect/cluster"
import { RpcClient, RpcSerialization } from "effect/rpc"
import { Socket } from "effect/socket"
import { closeSoon, RunnerPort } from "./runner-port.ts"

export const rpcPings = { pingInterval: 1000, pingTimeout: 2000 } as const

export const ClientProtocol: Layer.Layer<
  Runners.RpcClientProtocol,
  never,
  RpcSerialization.RpcSerialization | RunnerPort
> = Layer.effect(
  Runners.RpcClientProtocol,
  Effect.gen(function* () {
    const serialization = yield* RpcSerialization.RpcSerialization
    const { dial } = yield* RunnerPort
    const open = (to: RunnerAddress.RunnerAddress) =>
      Effect.acquireRelease(
        Effect.mapError(
          dial(to),
          (cause) =>
            new Socket.SocketError({
              reason: new Socket.SocketOpenError({ kind: "Unknown", cause })
            })
        ),
        (socket) => Effect.sync(() => closeSoon(socket)),
        { interruptible: true }
      )
    return Runners.RpcClientProtocol.of({
      codecFor: serialization.codecFor,
      make: Effect.fnUntraced(function* (address) {
        const socket = yield* NodeSocket.fromDuplex(open(address))
        return yield* RpcClient.makeProtocolSocket(rpcPings).pipe(
          Effect.provideService(Socket.Socket, socket),
          Effect.provideService(RpcSerialization.RpcSerialization, serialization)
        )
      }, Effect.orDie)
    })
  })
)
