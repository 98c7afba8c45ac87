/** The hand-written checks of link batches agree with the schemas of commands and outputs. */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import * as fc from "fast-check"
import { RemoteRoomInputs, RemoteRoomOutputs } from "#entities/room/remote"
import { RoomInput, RoomOutput } from "#entities/room/messages"

/** Nine times in ten a valid value, else any JSON value. */
const mostly = (right: fc.Arbitrary<unknown>) =>
  fc.oneof({ weight: 9, arbitrary: right }, { weight: 1, arbitrary: fc.jsonValue() })

const listed = mostly(fc.array(fc.string(), { maxLength: 3 }))

const item = fc.record(
  {
    kind: mostly(fc.constantFrom("event", "event", "exit", "end")),
    to: fc.oneof(fc.constant(null), listed),
    except: fc.oneof(fc.constant(null), mostly(fc.string())),
    without: listed,
    frame: mostly(fc.string()),
    player: mostly(fc.string())
  },
  { requiredKeys: ["kind"] }
)

const input = fc.record(
  {
    seq: mostly(fc.integer()),
    command: mostly(
      fc.record(
        {
          t: mostly(fc.constantFrom("send", "send", "lock", "setState")),
          playerId: mostly(fc.string()),
          type: mostly(fc.string()),
          data: fc.jsonValue(),
          to: listed,
          locked: fc.boolean(),
          patch: fc.jsonValue()
        },
        { requiredKeys: ["t", "playerId"] }
      )
    )
  },
  { requiredKeys: ["command"] }
)

/** The value after a round trip through JSON. */
const roundTrip = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

describe("a link batch", () => {
  it("accepts and rejects exactly the link batches that the schemas do", () => {
    const isItems = Schema.is(RemoteRoomOutputs)
    const isInputs = Schema.is(RemoteRoomInputs)
    const [areItems, areInputs] = [
      Schema.is(Schema.Array(RoomOutput)),
      Schema.is(Schema.Array(RoomInput))
    ]
    const seen = { items: new Set<boolean>(), inputs: new Set<boolean>() }
    fc.assert(
      fc.property(
        fc.array(item, { maxLength: 3 }).map(roundTrip),
        fc.array(input, { maxLength: 3 }).map(roundTrip),
        (items, inputs) => {
          const head = { room: "rm_1", watch: 1 }
          assert.strictEqual(isItems({ ...head, epoch: 1, from: "h|1", items }), areItems(items))
          assert.strictEqual(isInputs({ ...head, node: "nod_1", inputs }), areInputs(inputs))
          seen.items.add(areItems(items))
          seen.inputs.add(areInputs(inputs))
        }
      ),
      { numRuns: 3000 }
    )
    assert.deepStrictEqual([seen.items.size, seen.inputs.size], [2, 2])
  })
})
