/** Receivers of a message in a room. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { deliveries, recipients } from "#entities/room/delivery"
import { type Member, type RoomState, withMember } from "#entities/room/model"
import { mayJoin } from "#entities/room/seats"
import { decodeSnapshot, toRow, wakeFrom } from "#entities/room/snapshot"
import { roomOf } from "../../support/room-harness.ts"

const memberOf = (state: RoomState, id: string): Member => {
  const member = state.members.get(id)
  assert.isDefined(member)
  return member
}

/** A room in which the first player has blocked the second. */
const roomWithBlock = (): RoomState => {
  const { state } = roomOf(["ann", "ben", "cat"])
  return withMember(state, { ...memberOf(state, "ann"), blocks: new Set(["ben"]) })
}

describe("`recipients`", () => {
  it("withholds a message to all from who has blocked the sender", () => {
    const state = roomWithBlock()
    assert.deepStrictEqual(recipients(state, memberOf(state, "ben"), { type: "hi" }), {
      to: null,
      without: ["ann"],
      delivered: 0
    })
  })

  it("withholds a message to all from those whom the sender has blocked", () => {
    const state = roomWithBlock()
    assert.deepStrictEqual(recipients(state, memberOf(state, "ann"), { type: "hi" }).without, [
      "ben"
    ])
  })

  it("counts who has blocked the sender among the receivers, as one who ignores the message", () => {
    const state = roomWithBlock()
    const message = { type: "hi", to: ["ann", "cat", "nobody"] }
    assert.deepStrictEqual(recipients(state, memberOf(state, "ben"), message), {
      to: ["cat"],
      without: [],
      delivered: 2
    })
  })
})

describe("`deliveries`", () => {
  it("emits nothing for a message that everybody has blocked", () => {
    const state = roomWithBlock()
    const ben = memberOf(state, "ben")
    const receivers = recipients(state, ben, { type: "hi", to: ["ann"] })
    const event = { t: "message", from: "ben", type: "hi", at: 1 } as const
    assert.deepStrictEqual(deliveries(event, ben, receivers), [])
  })
})

describe("a host whose blocks nobody has brought back since the room woke", () => {
  it("leaves the question who finds the room to the database, until it is back", () => {
    const room = roomOf(["ann", "ben"])
    room.act({ t: "block", playerId: "ann", blocks: ["cat"] })
    assert.isFalse(mayJoin(room.state, "cat"))
    const { snapshot } = toRow(room.state, 1, "n1", room.now)
    room.state = wakeFrom(Effect.runSync(decodeSnapshot(snapshot)), room.now)
    assert.isUndefined(mayJoin(room.state, "cat"))
    assert.isTrue(mayJoin(room.state, "ben"))
    room.act({ t: "block", playerId: "ann", blocks: ["cat"] })
    assert.isFalse(mayJoin(room.state, "cat"))
    room.act({ t: "block", playerId: "ann", blocks: [] })
    assert.isTrue(mayJoin(room.state, "cat"))
  })
})
