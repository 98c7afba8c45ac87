/** Types of data by their schemas: `npm run types` checks them, the test names what they promise. */
import { assert, describe, it } from "@effect/vitest"
import type { DataOf, MessageDataOf } from "#rpc/contracts/infer"
import { compileSchemas } from "#rpc/contracts/validate"

const schemas = {
  point: {
    type: "object",
    properties: { x: { type: "number" }, name: { type: "string" } },
    required: ["x"],
    additionalProperties: false
  },
  path: { type: "array", items: { $ref: "point" } },
  emote: { enum: ["gg", "wow"] },
  shape: {
    oneOf: [
      { type: "object", properties: { kind: { const: "dot" } }, required: ["kind"] },
      {
        type: "object",
        properties: { kind: { const: "line" }, to: { $ref: "point" } },
        required: ["kind", "to"]
      }
    ]
  },
  ready: { type: "null" }
} as const

type Data<Name extends keyof typeof schemas> = DataOf<(typeof schemas)[Name], typeof schemas>

const checks = compileSchemas(schemas)

describe("the type of a schema", () => {
  it("accepts values that the check of the schema accepts", () => {
    const point: Data<"point"> = { x: 1 }
    const path: Data<"path"> = [point, { x: 2, name: "end" }]
    const emote: Data<"emote"> = "gg"
    const shape: Data<"shape"> = { kind: "line", to: point }
    const values = { point, path, emote, shape }
    for (const [name, value] of Object.entries(values)) {
      assert.isUndefined(checks.of(name)?.(value), name)
    }
  })

  it("refuses values that do not fit", () => {
    type Fits<Value, Name extends keyof typeof schemas> = Value extends Data<Name> ? true : false
    const missing: Fits<{ readonly name: string }, "point"> = false
    const other: Fits<"hello", "emote"> = false
    const form: Fits<{ readonly kind: "line" }, "shape"> = false
    assert.deepStrictEqual([missing, other, form], [false, false, false])
    assert.isDefined(checks.of("point")?.({ name: "a" }))
    assert.isDefined(checks.of("emote")?.("hello"))
    assert.isDefined(checks.of("shape")?.({ kind: "line" }))
  })

  it("lets the data of a message be left out where it may be null", () => {
    const ready: undefined extends MessageDataOf<typeof schemas.ready, typeof schemas>
      ? true
      : false = true
    const point: undefined extends MessageDataOf<typeof schemas.point, typeof schemas>
      ? true
      : false = false
    assert.deepStrictEqual([ready, point], [true, false])
  })
})
