/** Changes of contracts that refuse data which fitted before. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { breakingChanges } from "#rpc/contracts/breaking"
import { compileContract, type ModeContract } from "#rpc/contracts/contract"
import type { DataSchema } from "#rpc/contracts/schema"
import { contractData, contractSchemas } from "../../support/contract-schemas.ts"

const contract: ModeContract = { messages: { act: "root" }, strict: true }

const path = "multiplayer.modes[0].contract"

const changesBetween = (before: DataSchema, after: DataSchema) =>
  breakingChanges(
    { contract, schemas: { root: before } },
    { contract, schemas: { root: after } },
    path
  )

describe("breakingChanges", () => {
  it("reports none between equal schemas", () => {
    fc.assert(
      fc.property(contractSchemas, (schemas) => {
        const side = { contract, schemas }
        assert.deepStrictEqual(breakingChanges(side, side, path), [])
      })
    )
  })

  it("reports a change wherever data of the old contract breaks the new one", () => {
    fc.assert(
      fc.property(
        contractSchemas,
        contractSchemas,
        fc.array(contractData, { minLength: 20, maxLength: 20 }),
        (before, after, all) => {
          const [old, next] = [before, after].map((schemas) => compileContract(contract, schemas))
          const breaks = all.some(
            (data) =>
              old?.messageViolation("act", data) === undefined &&
              next?.messageViolation("act", data) !== undefined
          )
          if (!breaks) return
          const sides = [before, after].map((schemas) => ({ contract, schemas }))
          const [left, right] = sides
          assert.isNotEmpty(left && right && breakingChanges(left, right, path))
        }
      ),
      { numRuns: 1000 }
    )
  })

  it("names the member, and its bound before and now", () => {
    const before: DataSchema = { type: "object", properties: { x: { type: "number", maximum: 9 } } }
    const after: DataSchema = { type: "object", properties: { x: { type: "number", maximum: 5 } } }
    assert.deepStrictEqual(changesBetween(before, after), [
      { path: `${path}.messages.act`, change: "data.x is at most 5 now, was 9" }
    ])
  })

  it("lets a contract grow: optional members, more values, wider bounds", () => {
    const grown: ReadonlyArray<readonly [DataSchema, DataSchema]> = [
      [{ enum: ["a"] }, { enum: ["a", "b"] }],
      [
        { type: "integer", maximum: 3 },
        { type: "number", maximum: 4 }
      ],
      [
        { type: "object", properties: { a: { type: "string" } }, additionalProperties: false },
        {
          type: "object",
          properties: { a: { type: "string" }, b: { type: "number" } },
          additionalProperties: false
        }
      ]
    ]
    for (const [before, after] of grown) assert.deepStrictEqual(changesBetween(before, after), [])
  })

  it("reports a type that is gone, a contract that is new, and text that becomes free", () => {
    const side = { contract, schemas: { root: { type: "string", text: false } } } as const
    const without = { ...side, contract: { messages: {}, strict: true } }
    const free = { ...side, schemas: { root: { type: "string" } } } as const
    const changed = (before: Parameters<typeof breakingChanges>[0], after: typeof before) =>
      breakingChanges(before, after, path).map(({ change }) => change)
    assert.deepStrictEqual(changed(side, without), ["messages of this type are refused now"])
    assert.deepStrictEqual(changed({ ...side, contract: undefined }, side), [
      "the mode has a contract now"
    ])
    assert.deepStrictEqual(changed(side, free), [
      "data can hold free text now: players who may not chat neither send nor receive it"
    ])
  })
})
