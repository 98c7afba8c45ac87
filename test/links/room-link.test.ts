/** Link to one room, without a room: whom a loss concerns. */
import { assert, describe, it } from "@effect/vitest"
import { mustReportLoss } from "#server/links/room-link"

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
