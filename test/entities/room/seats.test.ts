/**
 * Seats of a room and its lifetime: joining, leaving, matched players, and the end of the room.
 */
import { assert, describe, it } from "@effect/vitest"
import { isListed, iso, roomView } from "#entities/room/model"
import { roomOf, RoomHarness, start } from "../../support/room-harness.ts"

const second = 1000
const hour = 3600 * second

describe("a room with seats", () => {
  it("makes the first player who joins the host", () => {
    const room = new RoomHarness()
    assert.deepStrictEqual(room.join("ann"), { roomId: "rm_1", code: "BCDFGH" })
    const [joined] = room.takeEvents("ann")
    assert.deepStrictEqual(joined, {
      t: "room_joined",
      playerId: "ann",
      resumed: false,
      room: roomView(room.state)
    })
    assert.strictEqual(room.state.hostId, "ann")
  })

  it("announces a joining player to the others, and sends the player a snapshot", () => {
    const room = roomOf(["ann"])
    room.join("ben")
    const player = {
      id: "ben",
      displayName: "ben",
      connected: true,
      joinedAt: iso(start + 1),
      state: {}
    }
    assert.deepStrictEqual(room.takeEvents("ann"), [{ t: "player_joined", player }])
    assert.deepStrictEqual(room.takeKinds("ben"), ["room_joined"])
    assert.deepStrictEqual(roomView(room.state).players[1], player)
  })

  it("sends a member that joins again a new snapshot, and the others no event", () => {
    const room = roomOf(["ann", "ben"])
    assert.deepStrictEqual(room.join("ben"), { roomId: "rm_1", code: "BCDFGH" })
    assert.deepStrictEqual(room.takeKinds("ben"), ["room_joined"])
    assert.deepStrictEqual(room.takeKinds("ann"), [])
    assert.strictEqual(room.state.members.size, 2)
  })

  it.each(["join", "resume"] as const)(
    "takes a member's new name from the connection with which it returns by `%s`",
    (t) => {
      const room = roomOf(["ann", "ben"])
      room.act({ t, ...room.joiningPlayer("ben"), displayName: "Benedict" })
      const player = { id: "ben", displayName: "Benedict" }
      assert.deepStrictEqual(room.takeEvents("ann"), [{ t: "player_updated", player }])
      assert.deepStrictEqual(room.takeKinds("ben"), ["room_joined"])
      assert.strictEqual(room.views.get("ben")?.players[1]?.displayName, "Benedict")
    }
  )

  it("keeps a member's name when the connection of an older runner does not carry it", () => {
    const room = roomOf(["ann", "ben"])
    const { displayName: _, ...returning } = room.joiningPlayer("ben")
    room.act({ t: "resume", ...returning })
    assert.deepStrictEqual(room.takeKinds("ann"), [])
    assert.strictEqual(room.state.members.get("ben")?.displayName, "ben")
  })

  it("takes a member's new name from its node, once", () => {
    const room = roomOf(["ann", "ben"])
    const update = {
      t: "relay",
      playerId: "ben",
      relayOnly: false,
      displayName: "Benedict"
    } as const
    room.act(update)
    room.act(update)
    assert.deepStrictEqual(room.takeKinds("ann"), ["player_updated"])
    assert.deepStrictEqual(room.takeKinds("ben"), ["player_updated"])
    assert.strictEqual(room.views.get("ann")?.players[1]?.displayName, "Benedict")
  })

  it("frees the seat of a member at once when it leaves", () => {
    const room = roomOf(["ann", "ben"])
    assert.deepStrictEqual(room.leave("ben"), {})
    assert.deepStrictEqual(room.takeEvents("ann"), [
      { t: "player_left", playerId: "ben", reason: "left" }
    ])
    assert.deepStrictEqual(room.takeEvents("ben"), [])
    assert.strictEqual(room.resumeRefusal("ben"), "resume_expired")
    assert.strictEqual(room.refusal({ t: "leave", playerId: "ben", reason: "left" }), "not_in_room")
  })

  it("closes a room at once when the last member leaves", () => {
    const room = roomOf(["ann", "ben"])
    room.leave("ann")
    assert.isNull(room.state.closed)
    room.leave("ben")
    assert.strictEqual(room.state.closed, "empty")
  })

  it("keeps a room open when a disconnected member remains after the last leave", () => {
    const room = roomOf(["ann", "ben", "cat"])
    room.drop("ben")
    room.wait(1)
    room.leave("ann")
    room.leave("cat")
    assert.isNull(room.state.closed)
    assert.isNull(room.state.hostId)
    room.resume("ben")
    assert.strictEqual(room.state.hostId, "ben")
    assert.deepStrictEqual(room.takeKinds("ben"), ["room_joined"])
    assert.strictEqual(room.views.get("ben")?.hostId, "ben")
  })
})

const duel = { maxPlayers: 2 }
const fullP2p = { maxPlayers: 1, p2p: { relayOnly: true, maxPlayers: 4 } }

const join = (who: string) => (room: RoomHarness) => room.joinRefusal(who)
const resume = (who: string) => (room: RoomHarness) => room.resumeRefusal(who)
const seat = (who: string) => (room: RoomHarness) =>
  room.refusal({ t: "seat", joiningPlayers: [room.joiningPlayer(who)] })

/** The room after these acts. */
const after = (room: RoomHarness, ...acts: ReadonlyArray<(room: RoomHarness) => unknown>) => {
  for (const act of acts) act(room)
  return room
}

const lock = (locked: boolean) => (room: RoomHarness) =>
  room.act({ t: "lock", playerId: "ann", locked })
const drop = (room: RoomHarness) => room.drop("ben")
const grace = (room: RoomHarness) => room.wait(30 * second)

const disconnected = () => after(roomOf(["ann", "ben"], duel), drop)
const expired = () => after(disconnected(), grace)
const p2p = () => roomOf(["ann"], fullP2p)
const locked = () => after(roomOf(["ann", "ben"]), lock(true), drop)
const lockedFull = () => after(roomOf(["ann"], { maxPlayers: 1 }), lock(true))
const unlocked = () => after(roomOf(["ann"]), lock(true), lock(false))

describe("admission to a room", () => {
  it.each([
    ["room_full", "a new player whose seat a disconnected member keeps", disconnected, join("cat")],
    ["granted", "a new player after the grace of that member", expired, join("cat")],
    ["p2p_room_full", "a new player of a full peer-to-peer room", p2p, join("ben")],
    ["granted", "a member of a full peer-to-peer room", p2p, join("ann")],
    ["room_locked", "a new player of a locked room", locked, join("cat")],
    ["granted", "a member who joins a locked room again", locked, join("ben")],
    ["granted", "a member who resumes in a locked room", locked, resume("ben")],
    ["room_locked", "a matched player of a locked room", locked, seat("cat")],
    ["room_locked", "a new player of a locked room that is full", lockedFull, join("ben")],
    ["granted", "a new player of a room that was unlocked", unlocked, join("ben")]
  ])("answers %s to %s", (outcome, _, room, ask) => {
    assert.strictEqual(ask(room()), outcome)
  })
})

describe("a room with seats assigned by matchmaking", () => {
  it("gives a matched room a host at once, and each member a snapshot when it joins", () => {
    const room = new RoomHarness({ matched: true })
    const data = room.seat("ann", "ben")
    assert.deepStrictEqual(data, { seated: ["ann", "ben"], roomId: "rm_1", code: "BCDFGH" })
    assert.strictEqual(room.state.hostId, "ann")
    room.join("ben")
    const [joined] = room.takeEvents("ben")
    assert.isTrue(joined?.t === "room_joined" && !joined.resumed)
    assert.deepStrictEqual(
      room.views.get("ben")?.players.map(({ connected, id }) => [id, connected]),
      [
        ["ann", true],
        ["ben", true]
      ]
    )
  })

  it("seats as many players as fit, and announces them to the members in order", () => {
    const room = roomOf(["ann"], { maxPlayers: 3 })
    assert.deepStrictEqual(room.seat("ben", "cat", "dan")["seated"], ["ben", "cat"])
    assert.deepStrictEqual(room.takeKinds("ann"), ["player_joined", "player_joined"])
  })

  it("does not seat a player twice", () => {
    const room = roomOf(["ann"])
    assert.deepStrictEqual(room.seat("ann", "ben")["seated"], ["ben"])
    assert.deepStrictEqual(room.seat("ben")["seated"], [])
    assert.strictEqual(room.state.members.size, 2)
  })

  it("frees the seat of a matched player who has not joined after ten seconds", () => {
    const room = roomOf(["ann"], { maxPlayers: 2 })
    room.seat("ben")
    room.takeEvents("ann")
    room.wait(10 * second - 1)
    assert.deepStrictEqual(room.takeKinds("ann"), [])
    assert.deepStrictEqual(room.seat("cat")["seated"], [])
    room.wait(1)
    assert.deepStrictEqual(room.takeEvents("ann"), [
      { t: "player_left", playerId: "ben", reason: "timeout" }
    ])
    assert.strictEqual(room.resumeRefusal("ben"), "resume_expired")
    assert.deepStrictEqual(room.seat("cat")["seated"], ["cat"])
  })

  it("passes the role of a host who never joined to a member who did, and to no other", () => {
    const room = roomOf([], { matched: true })
    room.seat("ann", "ben", "cat")
    room.join("cat")
    room.takeEvents("cat")
    room.wait(10 * second)
    const left = room
      .takeEvents("cat")
      .map((event) => [
        event.t,
        event.t === "player_left" ? event.playerId : event.t === "host_changed" ? event.hostId : ""
      ])
    assert.deepStrictEqual(left, [
      ["player_left", "ben"],
      ["player_left", "ann"],
      ["host_changed", "cat"]
    ])
  })

  it("closes a matched room when none of its players joins", () => {
    const room = roomOf([], { matched: true })
    room.seat("ann", "ben")
    room.wait(10 * second)
    assert.strictEqual(room.state.closed, "empty")
  })

  it("keeps the seat of a player who joined and then disconnected for the grace", () => {
    const room = roomOf(["ann"])
    room.seat("ben")
    room.join("ben")
    room.drop("ben")
    room.wait(30 * second - 1)
    assert.strictEqual(room.resumeRefusal("ben"), "granted")
  })

  it("announces no disconnect of a seated player who joins in time", () => {
    const room = roomOf(["ann"])
    room.seat("ben")
    room.wait(10 * second - 1)
    room.join("ben")
    room.takeEvents("ann")
    room.wait(hour)
    assert.deepStrictEqual(room.takeKinds("ann"), [])
  })

  it("announces the disconnect of a seated player who never joined", () => {
    const room = roomOf(["ann"])
    room.seat("ben")
    room.drop("ben")
    assert.deepStrictEqual(room.takeKinds("ann"), ["player_joined", "player_disconnected"])
  })

  it("refuses to seat players while all members are disconnected", () => {
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

describe("the lifetime of a room", () => {
  const hello = { t: "send", playerId: "ann", type: "hello" } as const

  const day = Array.from({ length: 23 }, (_, index) => (index + 1) * hour)
  const minute = [hour, hour + 59 * second]

  /** When a member sends, in milliseconds after the start, and when the room ends. */
  it.each([
    ["two hours after it began, without a frame", [], 2 * hour],
    ["two hours after the last frame, to the minute", minute, 3 * hour],
    ["after a day, even if members send messages", day, 24 * hour]
  ])("ends a room %s", (_, sentAt, endsAt) => {
    const room = new RoomHarness()
    room.join("ann")
    let now = 0
    for (const moment of sentAt) {
      room.wait(moment - now)
      room.act(hello)
      now = moment
    }
    room.wait(endsAt - now - 1)
    assert.isNull(room.state.closed)
    room.wait(1)
    const closed = { t: "room_closed", roomId: "rm_1", reason: "idle" } as const
    assert.deepStrictEqual(room.takeEvents("ann").at(-1), closed)
    assert.strictEqual(room.state.members.size, 0)
  })

  it("ends a room by the `close` command, and sends its members the reason", () => {
    const room = roomOf(["ann", "ben"])
    room.drop("ben")
    room.act({ t: "close", reason: "feature_disabled" })
    assert.deepStrictEqual(room.takeEvents("ann").at(-1), {
      t: "room_closed",
      roomId: "rm_1",
      reason: "feature_disabled"
    })
    assert.strictEqual(room.state.closed, "feature_disabled")
    assert.strictEqual(room.refusal({ t: "send", playerId: "ann", type: "hello" }), "not_in_room")
  })

  it("lists the room while it is public, unlocked, not full and has a connected member", () => {
    assert.isFalse(isListed(new RoomHarness().state))
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

describe("a seat without a grace period", () => {
  it("keeps a seat without grace for a second when a newer connection replaces the old one", () => {
    const room = roomOf(["ann", "ben"], { graceSeconds: 0 })
    room.drop("ann", true)
    room.wait(999)
    room.resume("ann")
    assert.isEmpty(room.takeKinds("ben"))
    room.drop("ann", true)
    room.wait(1000)
    assert.include(room.takeKinds("ben"), "player_left")
  })
})
