/** Link to one room, without a room: whom a loss concerns, and what is sent again. */
import { assert, describe, it } from "@effect/vitest"
import { mustReportLoss, renewedEntry } from "#server/links/room-link"

describe("a room that is lost", () => {
  const leave = { t: "leave", playerId: "p1", connectionId: "c1", reason: "left" } as const

  it("announces the loss of a room to a member who stays", () => {
    const lock = { t: "lock", playerId: "p1", locked: true } as const
    assert.isTrue(mustReportLoss({ connectionId: "c1" }, [lock]))
  })

  it("announces no loss of a room to a member who waits for the reply to leave", () => {
    assert.isFalse(mustReportLoss({ connectionId: "c1" }, [leave]))
  })

  it("announces the loss of a room to a newer connection of a player whose older one leaves", () => {
    assert.isTrue(mustReportLoss({ connectionId: "c2" }, [leave]))
  })
})

describe("an entry without a reply", () => {
  const entry = {
    t: "join",
    playerId: "p1",
    displayName: "Ada",
    relayOnly: false,
    blocks: [],
    node: "n1",
    connectionId: "c1"
  } as const

  it("sends an entry again with the name, blocks and relay of now", () => {
    const now = { displayName: "Grace", relayOnly: true, blocks: ["p2"] }
    assert.deepStrictEqual(renewedEntry(entry, now), { ...entry, ...now })
  })

  it("sends an entry again as it was once its connection has ended", () => {
    assert.deepStrictEqual(renewedEntry(entry, undefined), entry)
  })
})
