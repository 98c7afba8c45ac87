/** What becomes of a stream of another runner whose connection breaks. */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Option, Schema } from "effect"
import {
  ClusterError,
  EntityAddress,
  EntityId,
  EntityType,
  Envelope,
  Message,
  MessageStorage,
  Reply,
  RunnerAddress,
  Runners,
  ShardId,
  ShardingConfig,
  Snowflake
} from "effect/cluster"
import { Headers } from "effect/http"
import { Rpc, RpcSchema } from "effect/rpc"
import { failBegunStreams } from "#server/cluster/runner-client"

const other = RunnerAddress.make("other", 1)
const Watch = Rpc.make("Watch", { success: RpcSchema.Stream(Schema.String, Schema.Never) })

const address = EntityAddress.make({
  shardId: ShardId.make("default", 1),
  entityType: EntityType.make("Room"),
  entityId: EntityId.make("1")
})

const request = (taken: Array<string>) =>
  new Message.OutgoingRequest<typeof Watch>({
    envelope: Envelope.makeRequest<typeof Watch>({
      requestId: Snowflake.Snowflake(1n),
      address,
      tag: "Watch",
      payload: undefined,
      headers: Headers.empty
    }),
    context: Context.empty(),
    lastReceivedReply: Option.none(),
    rpc: Watch,
    annotations: Context.empty(),
    respond: (reply) => Effect.sync(() => void taken.push(reply._tag))
  })

/** Sends a request over a connection that breaks after so many items. */
const breaksAfter = (items: number) =>
  Effect.gen(function* () {
    const runners = yield* Runners.Runners
    const taken: Array<string> = []
    const broken = failBegunStreams({
      ...runners,
      send: ({ message }) =>
        Effect.gen(function* () {
          if (message._tag !== "OutgoingRequest") return
          for (let item = 0; item < items; item++) {
            yield* message.respond(Reply.Chunk.emptyFrom(message.envelope.requestId))
          }
          return yield* new ClusterError.RunnerUnavailable({ address: other })
        })
    })
    const error = yield* Effect.flip(broken.send({ address: other, message: request(taken) }))
    return { error: error._tag, taken: taken.length }
  }).pipe(
    Effect.provide(
      Runners.layerNoop.pipe(
        Layer.provide([MessageStorage.layerNoop, ShardingConfig.layerDefaults])
      )
    )
  )

describe("a stream of another runner", () => {
  it.effect("fails for good when its connection breaks after the first item", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* breaksAfter(1), { error: "AlreadyProcessingMessage", taken: 1 })
    })
  )

  it.effect("is repeated by the engine when its connection breaks before", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* breaksAfter(0), { error: "RunnerUnavailable", taken: 0 })
    })
  )
})
