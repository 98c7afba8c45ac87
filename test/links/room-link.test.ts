/** Link to one room, without a room: whom a loss concerns. */
import { assert, describe, it } from "@effect/vitest"
import { isNewsOfLoss } from "#server/links/room-link"

describe("a room that is lost", () => {
  const leave = { t: "leave", playerId: "p1", connectionId: "c1", reason: "left" } as const

  it("is news to a member who stays", () => {
    const lock = { t: "lock", playerId: "p1", locked: true } as const
    assert.isTrue(isNewsOfLoss({ connectionId: "c1" }, [lock]))
  })

  it("is no news to a member who waits for the reply to leave", () => {
    assert.isFalse(isNewsOfLoss({ connectionId: "c1" }, [leave]))
  })

  it("is news to a newer connection of a player whose older one waits for that reply", () => {
    assert.isTrue(isNewsOfLoss({ connectionId: "c2" }, [leave]))
  })
})
