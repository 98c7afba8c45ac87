/**
 * Serialization of the cluster's RPC, with a bound on frames. The engine's parser refuses a frame above
 * its bound before it buffers it, and every byte after; here such a connection ends too.
 */
import { Effect, Layer } from "effect"
import { RpcSerialization } from "effect/rpc"
import { runnerPort } from "./runner-port-limits.ts"

/** Makes an error on whose tag the engine's server closes a connection. */
const closing = (error: unknown) => ({
  _tag: "MaxBufferSizeExceeded",
  toString: () => String(error)
})

const closeOnError = (
  serialization: RpcSerialization.RpcSerialization["Service"]
): RpcSerialization.RpcSerialization["Service"] => ({
  ...serialization,
  makeUnsafe: () => {
    const parser = serialization.makeUnsafe()
    return {
      ...parser,
      decode: (data) => {
        try {
          return parser.decode(data)
        } catch (error) {
          throw closing(error)
        }
      }
    }
  }
})

export const RunnerSerialization = Layer.effect(
  RpcSerialization.RpcSerialization,
  Effect.map(RpcSerialization.RpcSerialization, closeOnError)
).pipe(
  Layer.provide(RpcSerialization.layerSchemaBinary({ maxFrameSize: runnerPort.frameMaxBytes }))
)
