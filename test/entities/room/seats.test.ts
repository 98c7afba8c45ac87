/**
 * Seats of a room and its life: joining, leaving, matched players, and the end of the room.
 */
import { assert, describe, it } from "@effect/vitest"
import { isListed, iso, roomView } from "#entities/room/model"
import { roomOf, RoomWorld, start } from "../../support/room-harness.ts"

const second = 1000
const hour = 3600 * second

describe("a room's seats", () => {
  it("make the first to join the host", () => {
    const room = new RoomWorld()
    assert.deepStrictEqual(room.join("ann"), { roomId: "rm_1", code: "BCDFGH" })
    const [joined] = room.heard("ann")
    assert.deepStrictEqual(joined, {
      t: "room_joined",
      playerId: "ann",
      resumed: false,
      room: roomView(room.state)
    })
    assert.strictEqual(room.state.hostId, "ann")
  })

  it("are announced to the others, and are in the snapshot of the joining player", () => {
    const room = roomOf(["ann"])
    room.join("ben")
    const player = {
      id: "ben",
      displayName: "ben",
      connected: true,
      joinedAt: iso(start + 1),
      state: {}
    }
    assert.deepStrictEqual(room.heard("ann"), [{ t: "player_joined", player }])
    assert.deepStrictEqual(room.kinds("ben"), ["room_joined"])
    assert.deepStrictEqual(roomView(room.state).players[1], player)
  })

  it("are no more than maxPlayers, those in their grace included", () => {
    const room = roomOf(["ann", "ben"], { maxPlayers: 2 })
    room.drop("ben")
    assert.strictEqual(room.joinRefusal("cat"), "room_full")
    room.wait(30 * second)
    assert.strictEqual(room.joinRefusal("cat"), "granted")
  })

  it("are refused as p2p_room_full in a peer-to-peer room", () => {
    const room = roomOf(["ann"], { maxPlayers: 1, p2p: { relayOnly: true, maxPlayers: 4 } })
    assert.strictEqual(room.joinRefusal("ben"), "p2p_room_full")
    assert.strictEqual(room.joinRefusal("ann"), "granted")
  })

  it("send a member that joins again a new snapshot, and the others no event", () => {
    const room = roomOf(["ann", "ben"])
    assert.deepStrictEqual(room.join("ben"), { roomId: "rm_1", code: "BCDFGH" })
    assert.deepStrictEqual(room.kinds("ben"), ["room_joined"])
    assert.deepStrictEqual(room.kinds("ann"), [])
    assert.strictEqual(room.state.members.size, 2)
  })

  it("are freed at once by leave", () => {
    const room = roomOf(["ann", "ben"])
    assert.deepStrictEqual(room.leave("ben"), {})
    assert.deepStrictEqual(room.heard("ann"), [
      { t: "player_left", playerId: "ben", reason: "left" }
    ])
    assert.deepStrictEqual(room.heard("ben"), [])
    assert.strictEqual(room.resumeRefusal("ben"), "resume_expired")
    assert.strictEqual(room.refusal({ t: "leave", playerId: "ben", reason: "left" }), "not_in_room")
  })

  it("close the room at once when the last member leaves", () => {
    const room = roomOf(["ann", "ben"])
    room.leave("ann")
    assert.isNull(room.state.closed)
    room.leave("ben")
    assert.strictEqual(room.state.closed, "empty")
  })

  it("keep the room when its last connected member leaves others in their grace", () => {
    const room = roomOf(["ann", "ben", "cat"])
    room.drop("ben")
    room.wait(1)
    room.leave("ann")
    room.leave("cat")
    assert.isNull(room.state.closed)
    assert.isNull(room.state.hostId)
    room.resume("ben")
    assert.strictEqual(room.state.hostId, "ben")
    assert.deepStrictEqual(room.kinds("ben"), ["room_joined"])
    assert.strictEqual(room.views.get("ben")?.hostId, "ben")
  })
})

describe("a locked room", () => {
  it("refuses strangers, not those who have a seat", () => {
    const room = roomOf(["ann", "ben"])
    room.act({ t: "lock", playerId: "ann", locked: true })
    room.drop("ben")
    assert.strictEqual(room.joinRefusal("cat"), "room_locked")
    assert.strictEqual(room.resumeRefusal("ben"), "granted")
    assert.strictEqual(room.joinRefusal("ben"), "granted")
    assert.strictEqual(
      room.refusal({ t: "seat", joiningPlayers: [room.joiningPlayer("cat")] }),
      "room_locked"
    )
  })

  it("says that it is locked before it says that it is full", () => {
    const room = roomOf(["ann"], { maxPlayers: 1 })
    room.act({ t: "lock", playerId: "ann", locked: true })
    assert.strictEqual(room.joinRefusal("ben"), "room_locked")
  })

  it("opens again", () => {
    const room = roomOf(["ann"])
    room.act({ t: "lock", playerId: "ann", locked: true })
    room.act({ t: "lock", playerId: "ann", locked: false })
    assert.strictEqual(room.joinRefusal("ben"), "granted")
  })
})

describe("seats given by matchmaking", () => {
  it("make a room with a host, whose members hear it when they come in", () => {
    const room = new RoomWorld({ matched: true })
    const data = room.seat("ann", "ben")
    assert.deepStrictEqual(data, { seated: ["ann", "ben"], roomId: "rm_1", code: "BCDFGH" })
    assert.strictEqual(room.state.hostId, "ann")
    room.join("ben")
    const [joined] = room.heard("ben")
    assert.isTrue(joined?.t === "room_joined" && !joined.resumed)
    assert.deepStrictEqual(
      room.views.get("ben")?.players.map(({ connected, id }) => [id, connected]),
      [
        ["ann", true],
        ["ben", true]
      ]
    )
  })

  it("are announced to the members, in order and as many as fit", () => {
    const room = roomOf(["ann"], { maxPlayers: 3 })
    assert.deepStrictEqual(room.seat("ben", "cat", "dan")["seated"], ["ben", "cat"])
    assert.deepStrictEqual(room.kinds("ann"), ["player_joined", "player_joined"])
  })

  it("are not given twice", () => {
    const room = roomOf(["ann"])
    assert.deepStrictEqual(room.seat("ann", "ben")["seated"], ["ben"])
    assert.deepStrictEqual(room.seat("ben")["seated"], [])
    assert.strictEqual(room.state.members.size, 2)
  })

  it("wait ten seconds for their player, then keep the grace", () => {
    const room = roomOf(["ann"])
    room.seat("ben")
    room.heard("ann")
    const seatedAt = room.now
    room.wait(10 * second - 1)
    assert.deepStrictEqual(room.kinds("ann"), [])
    room.wait(1)
    assert.deepStrictEqual(room.heard("ann"), [
      {
        t: "player_disconnected",
        playerId: "ben",
        graceUntil: iso(seatedAt + 40 * second)
      }
    ])
    room.wait(30 * second - 1)
    assert.strictEqual(room.resumeRefusal("ben"), "granted")
  })

  it("count as taken by those who came in time", () => {
    const room = roomOf(["ann"])
    room.seat("ben")
    room.wait(10 * second - 1)
    room.join("ben")
    room.heard("ann")
    room.wait(hour)
    assert.deepStrictEqual(room.kinds("ann"), [])
  })

  it("end with the drop of a player that never came in", () => {
    const room = roomOf(["ann"])
    room.seat("ben")
    room.drop("ben")
    assert.deepStrictEqual(room.kinds("ann"), ["player_joined", "player_disconnected"])
  })

  it("are not given where everybody has dropped: that room waits for its members", () => {
    const room = roomOf(["ann", "ben"])
    room.drop("ben")
    room.leave("ann")
    assert.isNull(room.state.hostId)
    const joiningPlayers = [room.joiningPlayer("cat")]
    assert.strictEqual(room.refusal({ t: "seat", joiningPlayers }), "room_locked")
    room.resume("ben")
    assert.deepStrictEqual(room.seat("cat")["seated"], ["cat"])
  })
})

describe("a room's life", () => {
  const closing = (room: RoomWorld, player: string) =>
    assert.deepStrictEqual(room.heard(player).at(-1), {
      t: "room_closed",
      roomId: "rm_1",
      reason: "idle"
    })

  it("ends after two hours without a frame", () => {
    const room = new RoomWorld()
    room.join("ann")
    room.wait(2 * hour - 1)
    assert.isNull(room.state.closed)
    room.wait(1)
    closing(room, "ann")
    assert.strictEqual(room.state.members.size, 0)
  })

  it("goes on for two hours after a frame, give or take the minute that frames are noted to", () => {
    const room = roomOf(["ann"])
    room.wait(hour)
    room.act({ t: "send", playerId: "ann", type: "hello" })
    room.wait(59 * second)
    room.act({ t: "send", playerId: "ann", type: "hello" })
    room.wait(2 * hour - 60 * second)
    assert.isNull(room.state.closed)
    room.wait(60 * second)
    closing(room, "ann")
  })

  it("ends after a day, whatever is said", () => {
    const room = new RoomWorld()
    room.join("ann")
    for (let i = 1; i < 24; i++) {
      room.wait(hour)
      room.act({ t: "send", playerId: "ann", type: "hello" })
    }
    room.wait(hour - 1)
    assert.isNull(room.state.closed)
    room.wait(1)
    closing(room, "ann")
  })

  it("closes on command", () => {
    const room = roomOf(["ann", "ben"])
    room.drop("ben")
    room.act({ t: "close", reason: "feature_disabled" })
    assert.deepStrictEqual(room.heard("ann").at(-1), {
      t: "room_closed",
      roomId: "rm_1",
      reason: "feature_disabled"
    })
    assert.strictEqual(room.state.closed, "feature_disabled")
    assert.strictEqual(room.refusal({ t: "send", playerId: "ann", type: "hello" }), "not_in_room")
  })

  it("shows in the list while public, unlocked, not full and somebody is connected", () => {
    assert.isFalse(isListed(new RoomWorld().state))
    const room = roomOf(["ann", "ben"], { maxPlayers: 3 })
    assert.isTrue(isListed(room.state))
    assert.isFalse(isListed(roomOf(["ann"], { private: true }).state))
    room.act({ t: "lock", playerId: "ann", locked: true })
    assert.isFalse(isListed(room.state))
    room.act({ t: "lock", playerId: "ann", locked: false })
    room.join("cat")
    assert.isFalse(isListed(room.state))
    room.leave("cat")
    assert.isTrue(isListed(room.state))
    room.drop("ann")
    room.drop("ben")
    assert.isFalse(isListed(room.state))
  })
})

describe("a seat without a grace", () => {
  it("of a replaced connection waits a moment for the connection that replaces it", () => {
    const room = roomOf(["ann", "ben"], { graceSeconds: 0 })
    room.drop("ann", true)
    room.wait(999)
    room.resume("ann")
    assert.isEmpty(room.kinds("ben"))
    room.drop("ann", true)
    room.wait(1000)
    assert.include(room.kinds("ben"), "player_left")
  })
})
