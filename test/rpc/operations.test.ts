/** What endpoints declare of themselves: audit actions and tools, each in one feature. */
import { assert, describe, it } from "@effect/vitest"
import { Context } from "effect"
import type { HttpApiEndpoint } from "effect/http-api"
import { features } from "#rpc/features"
import { Operation, type OperationFacts } from "#rpc/operations"

/** The features that declare each text, by text. */
const ownersOf = (textOf: (facts: OperationFacts) => string | undefined) => {
  const owners = new Map<string, Set<string>>()
  for (const { groups, inProcess, word } of features) {
    for (const { endpoints } of [...groups, ...inProcess]) {
      for (const { annotations } of Object.values<HttpApiEndpoint.Top>(endpoints)) {
        const text = textOf(Context.get(annotations, Operation))
        if (text !== undefined) owners.set(text, (owners.get(text) ?? new Set()).add(word))
      }
    }
  }
  return owners
}

const shared = (owners: ReadonlyMap<string, ReadonlySet<string>>) =>
  [...owners].flatMap(([text, words]) => (words.size === 1 ? [] : [text]))

describe("operations", () => {
  it("declares each audit action in one feature, as the kind of its target and the change", () => {
    const actions = ownersOf(({ audit }) => audit)
    assert.isAbove(actions.size, 10)
    assert.deepStrictEqual(shared(actions), [])
    for (const action of actions.keys()) assert.match(action, /^[a-z][A-Za-z]*\.[a-z][A-Za-z]*$/)
  })

  it("declares each tool of agents in one feature", () => {
    const tools = ownersOf(({ tool }) => tool?.name)
    assert.isAbove(tools.size, 10)
    assert.deepStrictEqual(shared(tools), [])
  })
})
