/** What an entity remembers of the nodes that watch it, and of those that are gone. */
import { assert, describe, it } from "@effect/vitest"
import { ExecutedCommands } from "#entities/executed-commands"
import { type Watcher, Watchers, watchersRememberedMax } from "#entities/watchers"

const watcher: Watcher<string> = { send: () => undefined, end: () => undefined }

describe("the watchers of an entity", () => {
  it("remembers a bounded number of absent nodes, and every node that watches", () => {
    const watchers = new Watchers<string>()
    const nodes = Array.from({ length: 2 * watchersRememberedMax }, (_, n) => `node_${n}`)
    watchers.admit("staying", 1)
    watchers.add("staying", watcher)
    for (const node of nodes) {
      watchers.admit(node, 1)
      watchers.add(node, watcher)
      watchers.remove(node, watcher)
    }
    assert.isFalse(watchers.admit("staying", 1), "a repeated attachment of a node that watches")
    assert.isFalse(watchers.admit(nodes.at(-1) ?? "", 1), "a repeated attachment of the last node")
    assert.isTrue(watchers.admit(nodes[0] ?? "", 1), "the first node is forgotten")
  })
})

describe("the executed commands of an entity", () => {
  it("forgets a link a minute after its node was last seen, however the node went", () => {
    const executed = new ExecutedCommands([], 0)
    executed.attach("n1", 1)
    executed.of("n1")?.accept(1)
    executed.expire(0, new Set(["n1"]))
    executed.expire(1000, new Set())
    executed.expire(60_999, new Set())
    assert.lengthOf(executed.stored(), 1)
    executed.expire(61_000, new Set())
    assert.lengthOf(executed.stored(), 0)
  })
})
