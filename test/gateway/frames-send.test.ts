/** The hand-written decoder of `send` frames, compared with the schema. */
import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import * as fc from "fast-check"
import { dataDepthMax } from "#rpc/json"
import { send } from "#rpc/rooms/frames"
import { roomLimits } from "#rpc/rooms/limits"
import { issuesOf, sendPayload } from "#server/gateway/frames"

const decode = Schema.decodeUnknownResult(send.payloadSchema, { errors: "all" })

/** Arrays nested to this depth. */
const nested = (levels: number): unknown => (levels === 0 ? 1 : [nested(levels - 1)])

const type = fc.oneof(
  { weight: 3, arbitrary: fc.string({ minLength: 1, maxLength: 10 }) },
  { weight: 1, arbitrary: fc.constant("") },
  {
    weight: 1,
    arbitrary: fc
      .constantFrom(roomLimits.typeMaxCharacters, roomLimits.typeMaxCharacters + 1)
      .map((length) => "x".repeat(length))
  },
  { weight: 1, arbitrary: fc.jsonValue() }
)

const data = fc.oneof(
  { weight: 3, arbitrary: fc.jsonValue() },
  {
    weight: 1,
    arbitrary: fc.constantFrom(dataDepthMax, dataDepthMax + 1).map(nested)
  }
)

const members = fc.record(
  {
    t: fc.constant("send"),
    type,
    data,
    to: fc.oneof(fc.array(fc.string(), { maxLength: 3 }), fc.jsonValue()),
    more: fc.jsonValue()
  },
  { requiredKeys: ["t"] }
)

/** As a socket parses them: every key is an own property. */
const frame = fc
  .oneof(members, fc.jsonValue())
  .map((value): unknown => JSON.parse(JSON.stringify(value)))

describe("a send frame", () => {
  it("decodes and refuses a send frame as its schema does", () => {
    fc.assert(
      fc.property(frame, (input) => {
        const decoded = Result.mapError(sendPayload(input), issuesOf)
        assert.deepStrictEqual(decoded, Result.mapError(decode(input), issuesOf))
      }),
      { numRuns: 2000 }
    )
  })
})
