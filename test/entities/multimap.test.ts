/** Several values of one key. */
import { assert, describe, it } from "@effect/vitest"
import { Multimap } from "#entities/multimap"

const one = { name: "one" }
const two = { name: "two" }

describe("a map of several values", () => {
  it("holds each value of a key once, in the order of arrival", () => {
    const map = new Multimap<string, typeof one>()
    for (const value of [one, one, two, two, one]) map.add("key", value)
    assert.deepStrictEqual(map.get("key"), [one, two])
    assert.strictEqual(map.size, 1)
  })

  it("forgets a key with its last value, and nothing for a value that it does not hold", () => {
    const map = new Multimap<string, typeof one>()
    map.add("key", one)
    map.delete("key", two)
    assert.deepStrictEqual(map.get("key"), [one])
    map.add("key", two)
    map.delete("key", one)
    assert.deepStrictEqual(map.get("key"), [two])
    map.delete("key", two)
    map.delete("other", two)
    assert.isFalse(map.has("key"))
    assert.deepStrictEqual(map.get("key"), [])
    assert.strictEqual(map.size, 0)
  })
})
