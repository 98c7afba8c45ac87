/** Rooms of a mode with `durable`: what they acknowledge is stored. */
import { assert, describe, it } from "@effect/vitest"
import { ActorHarness, type Gateway } from "../../support/room-gateways.ts"

const replies = ({ outputs }: Gateway) =>
  outputs.flatMap(({ kind }) => (kind === "reply" ? [kind] : []))

describe("a durable room", () => {
  it("holds replies to changes of a durable room, but not their events, until they are stored", () => {
    for (const isShared of [true, false]) {
      const harness = new ActorHarness({ durable: true }, isShared)
      harness.join("ann", "n1")
      const { n1 } = harness.gateways
      harness.save()
      n1.outputs = []
      harness.writes = false
      harness.send("n1", { t: "setState", playerId: "ann", patch: { round: 1 } })
      harness.send("n1", { t: "setMyState", playerId: "ann", patch: { ready: true } })
      harness.send("n1", { t: "lock", playerId: "ann", locked: true })
      assert.strictEqual(n1.views.get("ann")?.version, 1)
      assert.deepStrictEqual(replies(n1), [])
      harness.send("n1", { t: "send", playerId: "ann", type: "x" })
      assert.deepStrictEqual(replies(n1), ["reply"])
      harness.writes = true
      harness.save()
      assert.deepStrictEqual(replies(n1), Array(4).fill("reply"))
    }
  })
})
