/** What becomes of a stream of another runner whose connection breaks. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Layer, Option, Schema, Stream } from "effect"
import {
  ClusterError,
  Entity,
  MessageStorage,
  Reply,
  Runner,
  RunnerAddress,
  RunnerHealth,
  Runners,
  RunnerStorage,
  Sharding,
  ShardingConfig,
  Snowflake
} from "effect/cluster"
import { Rpc, RpcSchema } from "effect/rpc"
import { failBegunStreams } from "#server/cluster/runner-client"

const other = RunnerAddress.make("other", 1)
const Watch = Rpc.make("Watch", { success: RpcSchema.Stream(Schema.String, Schema.Never) })
const Room = Entity.make("Room", [Watch])

/** Items of a stream that its reader takes. */
const size = 2

/** The other runner: its first connection breaks after so many items, the next one carries them all. */
const otherRunner = (items: number, sent: Array<Snowflake.Snowflake>) =>
  Layer.effect(
    Runners.Runners,
    Effect.map(Runners.Runners, (runners) =>
      failBegunStreams({
        ...runners,
        send: ({ message }) =>
          Effect.gen(function* () {
            if (message._tag !== "OutgoingRequest") return
            const { requestId } = message.envelope
            const isFirst = sent.push(requestId) === 1
            for (let item = 0; item < (isFirst ? items : size); item++) {
              yield* message.respond(Reply.Chunk.emptyFrom(requestId))
            }
            if (isFirst) return yield* new ClusterError.RunnerUnavailable({ address: other })
          })
      })
    )
  ).pipe(Layer.provide(Runners.layerNoop))

/** The list of runners, in which only the other one is. */
const Listed = Layer.effect(
  RunnerStorage.RunnerStorage,
  Effect.tap(RunnerStorage.makeMemory, ({ register }) =>
    register(Runner.make({ address: other, groups: ["default"], weight: 1 }), true)
  )
)

/** Reads a stream of the other runner with the engine, over a connection that breaks after so many items. */
const breaksAfter = (items: number) => {
  const sent: Array<Snowflake.Snowflake> = []
  return Effect.gen(function* () {
    const room = (yield* Room.client)("1")
    let taken = 0
    const read = Stream.runForEach(Stream.take(room.Watch(), size), () =>
      Effect.sync(() => void (taken += 1))
    )
    const error = Exit.findErrorOption(yield* Effect.exit(read))
    return {
      taken,
      error: Option.isSome(error) ? error.value._tag : undefined,
      sends: sent.length,
      requests: new Set(sent).size
    }
  }).pipe(
    Effect.provide(
      Sharding.layer.pipe(
        Layer.provide([otherRunner(items, sent), Listed, RunnerHealth.layerNoop]),
        Layer.provideMerge(MessageStorage.layerNoop),
        Layer.provideMerge(
          ShardingConfig.layer({ runnerAddress: Option.none(), sendRetryInterval: 1 })
        )
      )
    )
  )
}

describe("a stream of another runner", () => {
  it.live("fails a stream for good when its connection breaks after the first item", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* breaksAfter(1), {
        taken: 1,
        error: "AlreadyProcessingMessage",
        sends: 1,
        requests: 1
      })
    })
  )

  it.live(
    "leaves a stream to the engine, which repeats it, when its connection breaks before the first item",
    () =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* breaksAfter(0), {
          taken: size,
          error: undefined,
          sends: 2,
          requests: 1
        })
      })
  )
})
