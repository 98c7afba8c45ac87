/** Frames of a link batch stay below the bound of the runner port, in order and with nothing lost. */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { runnerPort } from "#rpc/limits"
import { framesOf, LinkBatch } from "#server/cluster/runner-link"

const MiB = 1024 * 1024

const outputs = (room: string, count: number, frame: string): LinkBatch["items"][number] => ({
  room,
  epoch: 1,
  watch: 1,
  from: "a|1",
  items: Array.from({ length: count }, (_, i) => ({
    kind: "event" as const,
    to: null,
    except: null,
    frame: `${i} ${frame}`
  }))
})

const decode = Schema.decodeUnknownSync(LinkBatch)

describe("the frames of a link batch", () => {
  it("are one for a batch below the bound", () => {
    assert.lengthOf(framesOf({ inputs: [], items: [outputs("a", 3, "x")] }), 1)
  })

  it("divide the outputs of a room that many players rejoin with full states", () => {
    const batch: LinkBatch = {
      inputs: [
        { room: "z", node: "n", watch: 1, inputs: [] },
        { room: "y", node: "n", watch: 1, inputs: [] }
      ],
      items: [outputs("a", 16, "ß".repeat(MiB)), outputs("b", 2, "x")]
    }
    const frames = framesOf(batch)
    for (const frame of frames) {
      assert.isAtMost(Buffer.byteLength(frame), runnerPort.frameMaxBytes)
    }
    const parts = frames.map((frame) => decode(frame))
    assert.deepStrictEqual(
      parts.flatMap(({ inputs }) => inputs.map(({ room }) => room)),
      ["z", "y"]
    )
    const items = parts.flatMap((part) => part.items)
    assert.deepStrictEqual(
      items.flatMap(({ room, items: own }) =>
        own.map((item) => [room, item.kind === "event" ? item.frame.length : 0])
      ),
      batch.items.flatMap(({ room, items: own }) =>
        own.map((item) => [room, item.kind === "event" ? item.frame.length : 0])
      )
    )
  })
})
