/**
 * Members without a connection, and host migration when the host is one of them. Every deadline is
 * exact to the millisecond.
 */
import { assert, describe, it } from "@effect/vitest"
import { iso, roomView } from "#entities/room/model"
import { roomOf } from "../../support/room-harness.ts"

const second = 1000
const hour = 3600 * second

describe("a disconnected member", () => {
  it("announces a disconnected member at once, with the end of its grace period", () => {
    const room = roomOf(["ann", "ben"])
    room.drop("ben")
    assert.deepStrictEqual(room.takeEvents("ann"), [
      {
        t: "player_disconnected",
        playerId: "ben",
        graceUntil: iso(room.now + 30 * second)
      }
    ])
    assert.isFalse(roomView(room.state).players[1]?.connected)
  })

  it("lets a member resume until the last millisecond of the grace period", () => {
    const room = roomOf(["ann", "ben"])
    room.act({ t: "setMyState", playerId: "ben", patch: { hat: "red" } })
    room.drop("ben")
    room.wait(30 * second - 1)
    room.takeEvents("ann")
    room.resume("ben")
    assert.deepStrictEqual(room.takeEvents("ann"), [{ t: "player_reconnected", playerId: "ben" }])
    const joined = room.takeEvents("ben").at(-1)
    assert.isTrue(joined?.t === "room_joined" && joined.resumed)
    assert.deepStrictEqual(room.views.get("ben")?.players[1]?.state, { hat: "red" })
  })

  it("frees the seat of a disconnected member at the end of the grace period", () => {
    const room = roomOf(["ann", "ben"])
    room.drop("ben")
    room.wait(30 * second - 1)
    room.takeEvents("ann")
    room.wait(1)
    assert.deepStrictEqual(room.takeEvents("ann"), [
      { t: "player_left", playerId: "ben", reason: "timeout" }
    ])
    assert.strictEqual(room.resumeRefusal("ben"), "resume_expired")
  })

  it("takes the grace period from the room's mode", () => {
    const room = roomOf(["ann", "ben"], { graceSeconds: 2 })
    room.drop("ben")
    room.wait(2 * second - 1)
    assert.isTrue(room.state.members.has("ben"))
    room.wait(1)
    assert.isFalse(room.state.members.has("ben"))
  })

  it("closes the room when the last grace period ends", () => {
    const room = roomOf(["ann", "ben"])
    room.drop("ann")
    room.wait(second)
    room.drop("ben")
    room.wait(30 * second - 1)
    assert.isNull(room.state.closed)
    room.wait(1)
    assert.strictEqual(room.state.closed, "empty")
  })

  it("lets a disconnected member return with a join, and sets `resumed` in its snapshot", () => {
    const room = roomOf(["ann", "ben"])
    room.drop("ben")
    room.takeEvents("ann")
    room.join("ben")
    assert.deepStrictEqual(room.takeKinds("ann"), ["player_reconnected"])
    const [joined] = room.takeEvents("ben")
    assert.isTrue(joined?.t === "room_joined" && joined.resumed)
  })

  it("keeps a member connected when an older connection ends", () => {
    const room = roomOf(["ann", "ben"])
    const old = room.state.members.get("ben")?.attachment?.connectionId ?? ""
    room.join("ben", "n2")
    room.act({ t: "disconnect", playerId: "ben", connectionId: old, replaced: true })
    room.act({ t: "disconnect", playerId: "nobody", connectionId: old, replaced: false })
    room.wait(30 * second)
    assert.deepStrictEqual(room.takeKinds("ann"), [])
  })

  it("keeps a newer connection when a join of an older one arrives late", () => {
    const room = roomOf(["ann"])
    const late = room.joiningPlayer("ben", "n1")
    room.join("ben", "n2")
    assert.strictEqual(room.refusal({ t: "join", ...late }), "unavailable")
    assert.strictEqual(room.refusal({ t: "resume", ...late }), "unavailable")
    assert.strictEqual(room.state.members.get("ben")?.attachment?.node, "n2")
  })

  it("announces the members of a lost node together, in the order of joining", () => {
    const room = roomOf(["ann"])
    for (const [player, node] of [
      ["ben", "n2"],
      ["cat", "n1"],
      ["dan", "n2"]
    ] as const) {
      room.join(player, node)
    }
    room.takeEvents("cat")
    room.act({ t: "dropNode", node: "n2" })
    assert.deepStrictEqual(
      room.takeEvents("cat").map((event) => ("playerId" in event ? event.playerId : event.t)),
      ["ben", "dan"]
    )
  })

  it.for(["banned", "deleted"] as const)(
    "frees a disconnected member's seat at once when %s",
    (reason) => {
      const room = roomOf(["ann", "ben"])
      room.drop("ann")
      room.takeEvents("ben")
      room.act({ t: "leave", playerId: "ann", reason })
      assert.deepStrictEqual(room.takeEvents("ben"), [
        { t: "player_left", playerId: "ann", reason },
        { t: "host_changed", hostId: "ben", previousHostId: "ann", reason }
      ])
    }
  )
})

describe("a replaced connection", () => {
  it("emits no event when a newer connection follows within a second", () => {
    const room = roomOf(["ann", "ben"])
    room.drop("ben", true)
    room.wait(second - 1)
    room.resume("ben")
    room.wait(hour)
    assert.deepStrictEqual(room.takeKinds("ann"), [])
  })

  it("announces a replaced connection after a second, with grace from the disconnect", () => {
    const room = roomOf(["ann", "ben"])
    const droppedAt = room.now
    room.drop("ben", true)
    room.wait(second - 1)
    assert.deepStrictEqual(room.takeKinds("ann"), [])
    room.wait(1)
    assert.deepStrictEqual(room.takeEvents("ann"), [
      {
        t: "player_disconnected",
        playerId: "ben",
        graceUntil: iso(droppedAt + 30 * second)
      }
    ])
  })

  it("shows a replaced connection as connected to players who join within a second", () => {
    const room = roomOf(["ann", "ben"])
    room.drop("ben", true)
    room.join("cat")
    assert.isTrue(room.views.get("cat")?.players[1]?.connected)
    room.resume("ben")
    assert.deepStrictEqual(room.views.get("cat"), roomView(room.state))
  })

  it("keeps the host role when the newer connection resumes in time", () => {
    const room = roomOf(["ann", "ben"])
    room.drop("ann", true)
    room.wait(5 * second - 1)
    room.resume("ann")
    assert.strictEqual(room.state.hostId, "ann")
    assert.notInclude(room.takeKinds("ben"), "host_changed")
  })
})

describe("the host role", () => {
  it("passes the host role to the earliest connected member when the host leaves", () => {
    const room = roomOf(["ann", "ben", "cat", "dan"])
    room.drop("ben")
    room.takeEvents("cat")
    room.leave("ann")
    assert.deepStrictEqual(room.takeEvents("cat"), [
      { t: "player_left", playerId: "ann", reason: "left" },
      { t: "host_changed", hostId: "cat", previousHostId: "ann", reason: "left" }
    ])
  })

  it("passes the host role on five seconds after the host disconnects", () => {
    const room = roomOf(["ann", "ben"])
    room.drop("ann")
    room.wait(5 * second - 1)
    assert.strictEqual(room.state.hostId, "ann")
    room.takeEvents("ben")
    room.wait(1)
    assert.deepStrictEqual(room.takeEvents("ben"), [
      { t: "host_changed", hostId: "ben", previousHostId: "ann", reason: "timeout" }
    ])
  })

  it("does not return the host role to a former host who resumes", () => {
    const room = roomOf(["ann", "ben"])
    room.drop("ann")
    room.wait(5 * second)
    room.resume("ann")
    room.wait(hour)
    assert.strictEqual(room.state.hostId, "ben")
    assert.strictEqual(room.views.get("ann")?.hostId, "ben")
  })

  it("leaves the host role with a host who resumes within five seconds", () => {
    const room = roomOf(["ann", "ben"])
    room.drop("ann")
    room.wait(5 * second - 1)
    room.resume("ann")
    room.wait(10 * second)
    assert.strictEqual(room.state.hostId, "ann")
    assert.deepStrictEqual(room.takeKinds("ben"), ["player_disconnected", "player_reconnected"])
  })

  it("passes the host role to the first member who resumes when all were disconnected", () => {
    const room = roomOf(["ann", "ben", "cat"])
    for (const player of ["ann", "ben", "cat"]) room.drop(player)
    room.wait(10 * second)
    assert.strictEqual(room.state.hostId, "ann")
    room.resume("cat")
    assert.strictEqual(room.views.get("cat")?.hostId, "cat")
    room.resume("ann")
    assert.strictEqual(room.state.hostId, "cat")
  })

  it("leaves the host role with a host who resumes first, even after five seconds", () => {
    const room = roomOf(["ann", "ben"])
    room.drop("ann")
    room.drop("ben")
    room.wait(20 * second)
    room.resume("ann")
    assert.strictEqual(room.state.hostId, "ann")
  })

  it("passes the host role to a joining player when all members are disconnected", () => {
    const room = roomOf(["ann"])
    room.drop("ann")
    room.wait(4 * second)
    room.join("ben")
    assert.strictEqual(room.state.hostId, "ann")
    room.wait(second)
    assert.deepStrictEqual(room.takeEvents("ben").at(-1), {
      t: "host_changed",
      hostId: "ben",
      previousHostId: "ann",
      reason: "timeout"
    })
  })

  it("passes the host role on with the seat when the grace is shorter than five seconds", () => {
    const room = roomOf(["ann", "ben"], { graceSeconds: 3 })
    room.drop("ann")
    room.takeEvents("ben")
    room.wait(3 * second)
    assert.deepStrictEqual(room.takeEvents("ben"), [
      { t: "player_left", playerId: "ann", reason: "timeout" },
      { t: "host_changed", hostId: "ben", previousHostId: "ann", reason: "timeout" }
    ])
  })
})
