/** Which environments' graces a node holds: those whose players wait for admission, here or elsewhere. */
import { assert, describe, it } from "@effect/vitest"
import { DateTime } from "effect"
import type { NodeReport } from "#sql/live/nodes"
import { graces } from "#entities/reconnect-grace"
import { type Elsewhere, elsewhereOf, Holds } from "#server/cluster/grace-holds"
import { WaitingConnections } from "#server/cluster/waiting-players"

const start = 1_800_000_000_000
const served: Elsewhere = { isServed: true, waiting: [] }

/** A node that serves, with its clock. */
class Node {
  now = start
  readonly waiting = new WaitingConnections(() => this.now)
  readonly holds = new Holds(this.waiting, start)

  constructor(elsewhere = served) {
    this.waiting.serve()
    this.look(elsewhere)
  }

  look(elsewhere = served): ReadonlyArray<string> | "all" {
    const changed = this.holds.look(this.now, elsewhere)
    return changed === "all" ? changed : Array.from(changed)
  }
}

describe("a node whose players wait for admission", () => {
  it("holds the graces of their environment from the start of a wait of over a second", () => {
    const node = new Node()
    node.waiting.begin("env_a", node.now)
    node.now += graces.admissionMillis
    assert.isNull(node.holds.heldFrom("env_a"))
    node.now += 1
    assert.strictEqual(node.holds.heldFrom("env_a"), start)
    assert.deepStrictEqual(node.look(), ["env_a"])
    assert.deepStrictEqual(node.look(), [])
  })

  it("holds the graces of an environment whose connections waited before they were accepted", () => {
    const node = new Node()
    node.waiting.begin("env_a", node.now - graces.admissionMillis - 1)()
    assert.deepStrictEqual(node.look(), ["env_a"])
    assert.isNull(node.holds.heldFrom("env_b"))
    node.now += graces.holdMillis
    node.look()
    assert.isNull(node.holds.heldFrom("env_a"))
  })

  it("never holds the graces of another environment", () => {
    const node = new Node()
    node.waiting.begin("env_a", node.now)
    node.now += 60_000
    node.look()
    assert.isNull(node.holds.heldFrom("env_b"))
  })

  it("lets graces run again once clients have tried again after the last wait", () => {
    const node = new Node()
    const end = node.waiting.begin("env_a", node.now)
    node.now += 5000
    node.look()
    end()
    node.now += graces.holdMillis - 1
    assert.deepStrictEqual(node.look(), [])
    assert.strictEqual(node.holds.heldFrom("env_a"), start)
    node.now += 1
    assert.deepStrictEqual(node.look(), ["env_a"])
    assert.isNull(node.holds.heldFrom("env_a"))
  })

  it("reports the environments that wait longest, up to a bound", () => {
    const node = new Node()
    const count = graces.reportedEnvironmentsMax + 10
    for (let i = count; i > 0; i--) node.waiting.begin(`env_${i}`, start + i)
    node.now += 60_000
    const { environments } = node.waiting
    assert.lengthOf(environments, graces.reportedEnvironmentsMax)
    assert.strictEqual(environments[0], "env_1")
  })

  it("forgets an environment with its last connection", () => {
    const node = new Node()
    const ends = [0, 1, 2].map(() => node.waiting.begin("env_a", node.now))
    node.now += 5000
    for (const end of ends) end()
    assert.deepStrictEqual(node.waiting.environments, [])
    assert.isNull(node.holds.heldFrom("env_a"))
  })
})

describe("a node beside others", () => {
  const report = (
    node: string,
    changes: { readonly draining?: boolean; readonly waiting?: ReadonlyArray<string> } = {}
  ): NodeReport => ({
    node,
    reportedAt: DateTime.makeUnsafe(start),
    document: {
      address: null,
      release: "0.2.0",
      startedAt: start,
      load: 0,
      memoryBytes: 1,
      connections: 0,
      rooms: 0,
      players: 0,
      channels: 0,
      calls: 0,
      draining: false,
      ...changes
    }
  })

  it("holds the graces of environments whose players wait on another node", () => {
    const node = new Node()
    const elsewhere = elsewhereOf("n1", [report("n1"), report("n2", { waiting: ["env_a"] })])
    assert.deepStrictEqual(node.look(elsewhere), ["env_a"])
    assert.strictEqual(node.holds.heldFrom("env_a"), start)
    assert.isNull(node.holds.heldFrom("env_b"))
  })

  it("takes no account of a node that drains, of its own report and of older releases", () => {
    assert.deepStrictEqual(
      elsewhereOf("n1", [
        report("n1", { waiting: ["env_a"] }),
        report("n2", { draining: true, waiting: ["env_b"] }),
        report("n3")
      ]),
      { isServed: true, waiting: [] }
    )
  })
})

describe("a node before any node serves", () => {
  it("holds all graces, since nobody can return", () => {
    const waiting = new WaitingConnections(() => start)
    const holds = new Holds(waiting, start)
    assert.strictEqual(holds.heldFrom("env_a"), start)
    waiting.serve()
    assert.strictEqual(holds.look(start + 1000, { isServed: false, waiting: [] }), "all")
    assert.isNull(holds.heldFrom("env_a"))
  })

  it("lets graces run when another node serves", () => {
    const holds = new Holds(new WaitingConnections(() => start), start)
    assert.strictEqual(holds.look(start + 1000, served), "all")
    assert.isNull(holds.heldFrom("env_a"))
  })
})
