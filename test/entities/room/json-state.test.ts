/**
 * JSON state that players write: patches, limits on keys and bytes, and hostile keys.
 */
import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import * as fc from "fast-check"
import { create, join, send, setState } from "#rpc/rooms/frames"
import { JsonObject } from "#rpc/json"
import { jsonBytes } from "#entities/json-bytes"
import { emptyJsonState, patchJsonState, toJsonObject } from "#entities/room/json-state"
import { hostilePatch } from "../../support/generators.ts"

describe("JSON state", () => {
  const max = 64 * 1024
  const patched = (patch: Readonly<Record<string, unknown>>) =>
    patchJsonState(emptyJsonState, patch, max)
  const refusedFor = (patch: Readonly<Record<string, unknown>>) => {
    const result = patched(patch)
    return Result.isFailure(result) ? result.failure.details.unit : "accepted"
  }

  it("accepts exactly the limit of UTF-8 bytes, for any key", () => {
    for (const key of ["a", "é", '"', "\n", "\ud800"]) {
      const text = "x".repeat(max - jsonBytes({ [key]: "", b: 1 }))
      assert.strictEqual(refusedFor({ [key]: text, b: 1 }), "accepted")
      assert.strictEqual(refusedFor({ [key]: `${text}x`, b: 1 }), "bytes")
    }
  })

  it("accepts at most 256 keys of at most 64 characters", () => {
    const keys = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, 0]))
    assert.strictEqual(refusedFor(keys(256)), "accepted")
    assert.strictEqual(refusedFor(keys(257)), "keys")
    assert.strictEqual(refusedFor({ ["k".repeat(64)]: 0 }), "accepted")
    assert.strictEqual(refusedFor({ ["k".repeat(65)]: 0 }), "keyCharacters")
  })

  it("keeps JSON state within its limit, and prototypes clean, under random patches", () => {
    const small = 64
    fc.assert(
      fc.property(fc.array(hostilePatch, { maxLength: 20 }), (all) => {
        let values = emptyJsonState
        for (const patch of all) {
          values = Result.getOrElse(patchJsonState(values, patch, small), () => values)
          const json = toJsonObject(values)
          assert.isAtMost(jsonBytes(json), small)
          assert.strictEqual(Object.getPrototypeOf(json), Object.prototype)
          assert.sameMembers(Object.keys(json), Array.from(values.entries.keys()))
          assert.notInclude(Object.values(json), null)
        }
        assert.deepStrictEqual(Object.keys(Object.prototype), [])
      })
    )
  })
})

describe("a JSON object from a player", () => {
  const accepts = Schema.is(JsonObject)
  const parse = (json: string): unknown => JSON.parse(json)

  it("refuses a JSON object with a prototype key at any depth", () => {
    for (const key of ["__proto__", "constructor", "prototype"]) {
      assert.isFalse(accepts(parse(`{"${key}":{"polluted":true}}`)))
      assert.isFalse(accepts(parse(`{"a":[{"b":{"${key}":1}}]}`)))
    }
    assert.isTrue(accepts(parse(`{"a":"__proto__","toString":1,"hasOwnProperty":null}`)))
  })

  it("refuses a JSON object with more than 32 nested levels", () => {
    const nested = (levels: number) => parse(`${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`)
    assert.isTrue(accepts(nested(33)))
    assert.isFalse(accepts(nested(34)))
    assert.isFalse(accepts(nested(5000)))
    assert.isFalse(accepts(parse(`{"a":${"[".repeat(33)}1${"]".repeat(33)}}`)))
  })

  it("refuses an array, a scalar or null as a JSON object", () => {
    for (const json of ["null", "[]", "1", '"a"']) assert.isFalse(accepts(parse(json)))
  })
})

describe("the schema of a frame", () => {
  it("accepts a join with either a room id or a code", () => {
    const accepts = Schema.is(join.payloadSchema)
    assert.isTrue(accepts({ roomId: "rm_1" }))
    assert.isTrue(accepts({ code: "BCDFGH" }))
    assert.isFalse(accepts({}))
    assert.isFalse(accepts({ roomId: "rm_1", code: "BCDFGH" }))
  })

  it("accepts a message type of 1 to 64 characters, and at most 64 receivers", () => {
    const accepts = Schema.is(send.payloadSchema)
    assert.isTrue(accepts({ type: "x".repeat(64), to: Array.from({ length: 64 }, () => "ann") }))
    assert.isFalse(accepts({ type: "x".repeat(65) }))
    assert.isFalse(accepts({ type: "" }))
    assert.isFalse(accepts({ type: "x", to: Array.from({ length: 65 }, () => "ann") }))
  })

  it("accepts a room of 1 to 64 players, with a code of 4 to 12 letters or digits", () => {
    const decode = Schema.decodeUnknownResult(create.payloadSchema)
    const accepts = (payload: unknown): boolean => Result.isSuccess(decode(payload))
    assert.isTrue(accepts({ mode: "duel" }))
    assert.isFalse(accepts({}))
    for (const maxPlayers of [1, 64]) assert.isTrue(accepts({ mode: "duel", maxPlayers }))
    for (const maxPlayers of [0, 65, 1.5]) assert.isFalse(accepts({ mode: "duel", maxPlayers }))
    for (const code of ["abcd", "ab-cd", "ABCDEFGH1234"])
      assert.isTrue(accepts({ mode: "duel", code }))
    for (const code of ["abc", "a-b-c", "ABCDEFGH12345", "äbcd", "ab_cd"]) {
      assert.isFalse(accepts({ mode: "duel", code }), code)
    }
  })

  it("accepts only an object as a patch", () => {
    const accepts = Schema.is(setState.payloadSchema)
    assert.isTrue(accepts({ patch: { a: null } }))
    assert.isFalse(accepts({ patch: null }))
    assert.isFalse(accepts({}))
  })
})
