/** The list that its entries leave from any place. */
import { assert, describe, it } from "@effect/vitest"
import { LinkedList } from "#server/platform/linked-list"

/** A list of these values, and their places by value. */
const listOf = (...values: ReadonlyArray<string>) => {
  const list = new LinkedList<string>()
  const places = new Map(values.map((value) => [value, list.add(value)] as const))
  const remove = (value: string): void => {
    const place = places.get(value)
    if (place !== undefined) list.remove(place)
  }
  const rest = () => Array.from(list, ({ value }) => value).join("")
  return { list, remove, rest }
}

describe("a linked list", () => {
  it("keeps the order of arrival while entries leave from any place", () => {
    const { list, remove, rest } = listOf("a", "b", "c", "d")
    remove("b")
    assert.strictEqual(rest(), "acd")
    remove("a")
    remove("d")
    assert.strictEqual(rest(), "c")
    list.add("e")
    assert.strictEqual(rest(), "ce")
  })

  it("leaves a linked list empty, and open to new entries, when all have left", () => {
    const { list, remove, rest } = listOf("a", "b")
    remove("b")
    remove("a")
    assert.isTrue(list.isEmpty)
    list.add("c")
    assert.strictEqual(rest(), "c")
  })

  it("lets an entry leave a linked list once", () => {
    const { remove, rest } = listOf("a", "b", "c")
    remove("b")
    remove("b")
    assert.strictEqual(rest(), "ac")
  })
})
