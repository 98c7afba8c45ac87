/**
 * Client for the cluster's own RPC: Effect RPC over a socket with a ping every second. A frozen runner
 * keeps its connections open; the ping makes calls to it fail, so that they are retried on the runner
 * that owns the entities now.
 */
import * as NodeSocket from "@effect/platform-node/NodeSocket"
import { Effect, Layer, Schema } from "effect"
import { ClusterError, Message, RunnerAddress, Runners } from "effect/cluster"
import { RpcClient, RpcSchema, RpcSerialization } from "effect/rpc"
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

const isStream = (rpc: object): boolean =>
  "successSchema" in rpc &&
  Schema.isSchema(rpc.successSchema) &&
  RpcSchema.isStreamSchema(rpc.successSchema)

/**
 * Fails a stream whose connection broke after it had begun, so that its reader asks again. The
 * engine would repeat the stream under the number of the first one. When the other end then finds
 * that connection closed, it forgets the number. The repeated stream would stay open without ever
 * sending anything.
 */
export const failBegunStreams = (runners: Runners.Runners["Service"]): Runners.Runners["Service"] =>
  Runners.Runners.of({
    ...runners,
    send: (options) => {
      const { address, message } = options
      if (message._tag !== "OutgoingRequest" || !isStream(message.rpc)) return runners.send(options)
      let begun = false
      const respond: typeof message.respond = (reply) => {
        begun = true
        return message.respond(reply)
      }
      const { annotations, context, envelope, lastReceivedReply, rpc } = message
      const stream = { annotations, context, envelope, lastReceivedReply, rpc, respond }
      return Effect.mapError(
        runners.send({ address, message: new Message.OutgoingRequest(stream) }),
        (error) =>
          begun && error._tag === "RunnerUnavailable"
            ? new ClusterError.AlreadyProcessingMessage({
                envelopeId: envelope.requestId,
                address: envelope.address
              })
            : error
      )
    }
  })

/** The engine's calls to other runners. */
export const RunnersLive = Layer.effect(
  Runners.Runners,
  Effect.map(Runners.Runners, failBegunStreams)
).pipe(Layer.provide(Runners.layerRpc))
