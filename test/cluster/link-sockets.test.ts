/** Runner links over real sockets: order, size, loss, and a misbehaving peer. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Layer, Option, Queue, Scope } from "effect"
import { ShardingConfig } from "effect/cluster"
import { RpcSerialization, RpcServer } from "effect/rpc"
import { LocalRooms } from "#entities/room/entity"
import { RemoteRooms } from "#entities/room/remote"
import { NodeFlush } from "#server/platform/flush"
import { ClientProtocol } from "#server/cluster/runner-client"
import { LinkHandlers, LinkRpcs, RunnerLinksLive } from "#server/cluster/runner-links"
import { runnerPort } from "#server/cluster/runner-port-limits"
import { host, makePorts } from "../support/runner-ports.ts"

const mebibyte = 1024 * 1024

const serialization = RpcSerialization.layerSchemaBinary({ maxFrameSize: runnerPort.frameMaxBytes })

/** Two runners: `send` of the one sends frames over its link to the other, which `stop` stops. */
const startPair = Effect.gen(function* () {
  const { start } = yield* makePorts
  const near = yield* start({ isRunning: false })
  const far = yield* start({ isRunning: false })

  const local = LocalRooms.with()
  const frames = yield* Queue.unbounded<string>()
  local.remoteOutputs.register(({ items }) => {
    for (const item of items) if (item.kind === "event") Queue.offerUnsafe(frames, item.frame)
  })
  const scope = yield* Scope.make()
  yield* Effect.addFinalizer((exit) => Scope.close(scope, exit))
  const receiver = RpcServer.layer(LinkRpcs, {
    disableTracing: true,
    disableFatalDefects: true
  }).pipe(
    Layer.provide(LinkHandlers),
    Layer.provide(Layer.succeed(LocalRooms, local)),
    Layer.provide(RpcServer.layerProtocolSocketServer),
    Layer.provide(serialization)
  )
  yield* Effect.provideContext(Layer.buildWithScope(receiver, scope), far.context)

  const sender = RunnerLinksLive.pipe(
    Layer.provide(ClientProtocol),
    Layer.provide(serialization),
    Layer.provide(NodeFlush.layer),
    Layer.provide(ShardingConfig.layer({ runnerAddress: Option.some(near.address) }))
  )
  const links = yield* Effect.provideContext(Layer.build(sender), near.context)
  const remote = yield* Effect.provideContext(RemoteRooms, links)
  const lost = yield* Deferred.make<void>()
  const send = (...texts: ReadonlyArray<string>): void => {
    const items = texts.map((frame) => ({ kind: "event", to: null, except: null, frame }) as const)
    const outputs = { room: "rm_1", epoch: 1, watch: 1, from: "near|1", items }
    remote.send(`${host}|${far.port}`, outputs, () => Deferred.doneUnsafe(lost, Effect.void))
  }
  const next = Queue.take(frames)
  const stop = Scope.close(scope, Exit.void)
  return { next, send, stop, lost: Deferred.await(lost), dial: near.dial(far.address) }
})

describe("runner links over sockets", () => {
  it.live(
    "carries frames between runners in order and whole, also before the connection is open",
    () =>
      Effect.gen(function* () {
        const { next, send } = yield* startPair
        const texts = Array.from({ length: 2000 }, (_, i) => `${i} ${"größer ".repeat(i % 50)}`)
        for (const [i, text] of texts.entries()) {
          send(text)
          if (i % 20 === 0) yield* Effect.promise(() => new Promise(setImmediate))
        }
        for (const text of texts) assert.strictEqual(yield* next, text)
      }).pipe(Effect.scoped)
  )

  it.live("carries more between runners at once than the RPC accepts in one frame", () =>
    Effect.gen(function* () {
      const { next, send } = yield* startPair
      const texts = Array.from({ length: 20 }, (_, i) => `${i}${"x".repeat(mebibyte)}`)
      send(...texts)
      for (const text of texts) assert.strictEqual((yield* next).length, text.length)
    }).pipe(Effect.scoped)
  )

  it.live("reports a loss on a runner link when the other runner stops", () =>
    Effect.gen(function* () {
      const { lost, next, send, stop } = yield* startPair
      send("last")
      assert.strictEqual(yield* next, "last")
      yield* stop
      send("lost")
      yield* lost
    }).pipe(Effect.scoped)
  )

  it.live(
    "keeps a runner link working while another runner sends a frame above the limit, and garbage",
    () =>
      Effect.gen(function* () {
        const { dial, next, send } = yield* startPair
        const peer = yield* dial
        peer.write(Buffer.alloc(mebibyte, 0xff))
        send("unharmed")
        assert.strictEqual(yield* next, "unharmed")
      }).pipe(Effect.scoped)
  )
})
