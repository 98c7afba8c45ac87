/** Channel writer when several channels stop at once: one write per channel. */
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { SecureRandom } from "effect/crypto"
import { ChannelRepository } from "#sql/channels"
import { ChannelActor } from "#entities/channel/actor"
import { openChannel } from "#entities/channel/model"
import type { ChannelRuntime } from "#entities/channel/runtime"
import { defaultOptions } from "#entities/channel/options"
import { ChannelWriter } from "#entities/channel/writer"
import { ThisNode } from "#entities/local-actors"

const written: Array<string> = []
const unused = () => Effect.die("not used in this test")

/** Repository that records each name when its statement completes. */
const Rows = Layer.succeed(ChannelRepository, {
  claim: unused,
  insert: unused,
  save: ({ name }) =>
    Effect.as(
      Effect.andThen(
        Effect.yieldNow,
        Effect.sync(() => written.push(name))
      ),
      true
    ),
  remove: unused,
  exists: unused,
  withPlayer: unused,
  overdue: unused
})

const Writer = ChannelWriter.layer.pipe(
  Layer.provide([Rows, ThisNode.layer]),
  Layer.provide(SecureRandom.layerWebCrypto)
)

const runtime: ChannelRuntime = {
  now: () => 0,
  hasLease: () => true,
  heldFrom: () => null,
  wakeAt: () => undefined,
  flushSoon: () => undefined,
  memberAdded: () => undefined,
  memberRemoved: () => undefined,
  changed: () => undefined,
  closed: () => undefined
}

const channel = (name: string): ChannelActor =>
  new ChannelActor({
    id: name,
    name,
    epoch: 1,
    state: openChannel(defaultOptions("env_1", name, 0), 0),
    runtime
  })

layer(Writer)("the channel writer", (it) => {
  it.effect("writes each channel once, before it is fenced, when several stop at once", () =>
    Effect.gen(function* () {
      const writer = yield* ChannelWriter
      const channels = ["@a", "@b", "@c"].map(channel)
      for (const it of channels) writer.markDirty(it)
      const end = (it: ChannelActor) =>
        Effect.tap(writer.flush, () => Effect.sync(() => it.activation.fence()))
      yield* Effect.forEach(channels, end, { concurrency: "unbounded" })
      assert.deepStrictEqual(written, ["@a", "@b", "@c"])
      assert.strictEqual(writer.waiting(), 0)
    })
  )

  it.effect("waits for a write under way when a channel stops", () =>
    Effect.gen(function* () {
      const writer = yield* ChannelWriter
      const stopping = channel("@stopping")
      writer.markDirty(stopping)
      const writing = yield* Effect.forkChild(writer.flush, { startImmediately: true })
      assert.strictEqual(writer.waiting(), 0)
      assert.notInclude(written, "@stopping")
      yield* writer.flush
      assert.include(written, "@stopping")
      yield* Fiber.join(writing)
    })
  )
})
