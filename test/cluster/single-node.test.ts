/** The sharding of a single node. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Logger, References, Schema } from "effect"
import { Entity } from "effect/cluster"
import { Rpc } from "effect/rpc"
import { singleNode } from "#server/cluster/cluster"
import { pause } from "#testing/socket-client"

const Slow = Entity.make("Slow", [Rpc.make("Greet", { success: Schema.String })])

/** Longer than the interval at which the engine reads its list of runners. */
const stopMillis = 400

const slowLive = (onStopped: () => void) =>
  Slow.toLayer(
    Effect.gen(function* () {
      yield* Effect.addFinalizer(() => Effect.andThen(pause(stopMillis), Effect.sync(onStopped)))
      return Slow.of({ Greet: () => Effect.succeed("hello") })
    })
  )

describe("a single node", () => {
  it.live("stops a single node without a warning, however long its entities take", () =>
    Effect.gen(function* () {
      const lines: Array<string> = []
      const recorder = Logger.make(({ logLevel, message }) => {
        lines.push(`${logLevel} ${String(message)}`)
      })
      let isStopped = false
      const entities = slowLive(() => {
        isStopped = true
      })
      const node = entities.pipe(
        Layer.provideMerge(singleNode),
        Layer.provideMerge(Logger.layer([recorder])),
        Layer.provideMerge(Layer.succeed(References.MinimumLogLevel, "Warn"))
      )
      yield* Effect.gen(function* () {
        const clientOf = yield* Slow.client
        assert.strictEqual(yield* clientOf("one").Greet(), "hello")
      }).pipe(Effect.provide(node), Effect.scoped)
      assert.isTrue(isStopped)
      assert.deepStrictEqual(lines, [])
    })
  )
})
