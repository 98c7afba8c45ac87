/** Encoding of the cluster's RPC: bounded frames, and what two releases of one protocol rely on. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { RpcSerialization, RpcServer } from "effect/rpc"
import { SocketServer } from "effect/socket"
import { RunnerSerialization } from "#server/cluster/serialization"
import { RunnerPort } from "#server/cluster/runner-port"
import { makePorts } from "../support/runner-ports.ts"

const serialization = Effect.provide(RpcSerialization.RpcSerialization, RunnerSerialization)

/** The head of a frame of this many bytes: a varint. */
const headOf = (length: number): Buffer => {
  const bytes: Array<number> = []
  for (let rest = length; ; rest = Math.floor(rest / 128)) {
    bytes.push((rest % 128) | (rest < 128 ? 0 : 128))
    if (rest < 128) return Buffer.from(bytes)
  }
}

describe("the encoding of the cluster's RPC", () => {
  it.live("ends the connection of a runner at the head of a frame of 256 MiB", () =>
    Effect.gen(function* () {
      const { start } = yield* makePorts
      const { address, context, dial } = yield* start({ isRunning: false })
      yield* Layer.build(
        Layer.effectDiscard(RpcServer.makeProtocolSocketServer).pipe(
          Layer.provide(
            Layer.effect(
              SocketServer.SocketServer,
              Effect.map(RunnerPort, ({ server }) => server)
            )
          ),
          Layer.provide(RunnerSerialization)
        )
      ).pipe(Effect.provideContext(context))
      const socket = yield* dial(address)
      socket.resume().write(headOf(256 * 1024 * 1024))
      yield* Effect.callback<void>((resume) => void socket.once("close", () => resume(Effect.void)))
    }).pipe(Effect.scoped)
  )

  it.effect("writes the RPC envelope of this cluster protocol: change the protocol with it", () =>
    Effect.gen(function* () {
      const encoded = (yield* serialization).makeUnsafe().encode({
        _tag: "Request",
        id: "1",
        tag: "Ping",
        payload: new Uint8Array([1]),
        headers: []
      })
      assert.strictEqual(
        Buffer.from(encoded ?? "").toString("hex"),
        "1721a71fbf488612ff6b070001010201310450696e670100"
      )
    })
  )

  it.effect("ignores fields of a payload that a newer release added", () =>
    Effect.gen(function* () {
      const { codecFor } = yield* serialization
      const older = Schema.Struct({ room: Schema.String, seq: Schema.Int })
      const newer = Schema.Struct({
        added: Schema.optionalKey(Schema.Array(Schema.String)),
        room: Schema.String,
        seq: Schema.Int
      })
      const value = { added: ["x"], room: "r", seq: 1 }
      const encoded = yield* Schema.encodeEffect(codecFor(newer))(value)
      assert.deepStrictEqual(yield* Schema.decodeUnknownEffect(codecFor(older))(encoded), {
        room: "r",
        seq: 1
      })
      const back = yield* Schema.encodeEffect(codecFor(older))({ room: "r", seq: 2 })
      assert.deepStrictEqual(yield* Schema.decodeUnknownEffect(codecFor(newer))(back), {
        room: "r",
        seq: 2
      })
    })
  )
})
