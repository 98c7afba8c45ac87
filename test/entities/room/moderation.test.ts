/** Rights in a room: what its host and servers do to players, bars, mutes and the host's succession. */
import { assert, describe, it } from "@effect/vitest"
import { roomLimits } from "#rpc/rooms/limits"
import type { RoomModerateOp } from "#rpc/rooms/authority"
import { isBarred } from "#entities/room/bars"
import { iso, type RoomSettings } from "#entities/room/model"
import { missedEnd } from "#entities/room/removal"
import { type RoomHarness, roomOf } from "../../support/room-harness.ts"

const every: Partial<RoomSettings> = { powers: ["kick", "ban", "mute", "team", "transfer"] }

const byAnn = { playerId: "ann" }

const act = (
  room: RoomHarness,
  op: RoomModerateOp,
  target: string,
  by: "server" | { readonly playerId: string } = byAnn
) => room.refusal({ t: "moderate", by, op, target })

const says = (room: RoomHarness, playerId: string) => {
  room.act({ t: "send", playerId, type: "chat", data: "hi" })
}

describe("a kick", () => {
  it("reaches the player before everybody else, with the end of the bar and the cause", () => {
    const room = roomOf(["ann", "ben", "cat"], every)
    room.act({ t: "moderate", by: byAnn, op: "kick", target: "ben", reason: "afk" })
    assert.deepStrictEqual(room.takeEvents("ben"), [
      {
        t: "removed",
        roomId: "rm_1",
        reason: "kicked",
        until: iso(room.now + 60_000),
        cause: "afk"
      },
      { t: "player_left", playerId: "ben", reason: "kicked" }
    ])
    assert.deepStrictEqual(room.takeEvents("cat"), [
      { t: "player_left", playerId: "ben", reason: "kicked" }
    ])
  })

  it("refuses what the player sends afterwards", () => {
    const room = roomOf(["ann", "ben"], every)
    act(room, "kick", "ben")
    room.takeEvents("ann")
    assert.strictEqual(room.refusal({ t: "send", playerId: "ben", type: "x" }), "not_in_room")
    assert.strictEqual(
      room.refusal({ t: "setState", playerId: "ben", patch: { a: 1 } }),
      "not_in_room"
    )
    assert.deepStrictEqual(room.takeEvents("ann"), [])
  })

  it("bars the player for a minute, as if there were no room", () => {
    const room = roomOf(["ann", "ben"], every)
    act(room, "kick", "ben")
    assert.strictEqual(room.joinRefusal("ben"), "room_not_found")
    assert.strictEqual(room.resumeRefusal("ben"), "resume_expired")
    room.wait(59_999)
    assert.strictEqual(room.joinRefusal("ben"), "room_not_found")
    room.wait(1)
    assert.strictEqual(room.joinRefusal("ben"), "granted")
  })

  it("keeps matchmaking from seating the player again, also after the bar", () => {
    const room = roomOf(["ann", "ben"], { ...every, matched: true })
    act(room, "kick", "ben")
    room.wait(60_000)
    room.seat("ben", "cat")
    assert.deepStrictEqual(Array.from(room.state.members.keys()), ["ann", "cat"])
    act(room, "unban", "ben")
    room.seat("ben")
    assert.isTrue(room.state.members.has("ben"))
  })

  it("removes a player who is away, or has not arrived yet", () => {
    const room = roomOf(["ann", "ben"], every)
    room.drop("ben")
    room.seat("cat")
    assert.deepStrictEqual(
      [act(room, "kick", "ben"), act(room, "kick", "cat")],
      ["granted", "granted"]
    )
    assert.deepStrictEqual(Array.from(room.state.members.keys()), ["ann"])
    assert.strictEqual(room.joinRefusal("cat"), "room_not_found")
  })

  it("closes the room when a server kicks the last player", () => {
    const room = roomOf(["ann"])
    assert.strictEqual(act(room, "kick", "ann", "server"), "granted")
    assert.strictEqual(room.state.closed, "empty")
  })
})

describe("a ban", () => {
  it("bars the player for the room's life, until it is lifted", () => {
    const room = roomOf(["ann", "ben"], every)
    act(room, "ban", "ben")
    const [removed] = room.takeEvents("ben")
    assert.deepStrictEqual(removed, { t: "removed", roomId: "rm_1", reason: "banned", until: null })
    room.wait(3_600_000)
    assert.strictEqual(room.joinRefusal("ben"), "room_not_found")
    assert.strictEqual(act(room, "unban", "ben"), "granted")
    assert.strictEqual(room.joinRefusal("ben"), "granted")
  })

  it("bars a player who has left, and outlasts a later kick", () => {
    const room = roomOf(["ann", "ben"], every)
    room.leave("ben")
    assert.strictEqual(act(room, "ban", "ben"), "granted")
    assert.strictEqual(act(room, "kick", "ben"), "player_not_in_room")
    room.wait(60_000)
    assert.strictEqual(room.joinRefusal("ben"), "room_not_found")
  })

  it("keeps bans when the list of bars is full, and forgets the kick that ends first", () => {
    const room = roomOf(["ann"], every)
    act(room, "ban", "first")
    room.wait(1)
    for (let count = 1; count < roomLimits.barsMax; count++) {
      room.act({ t: "join", ...room.joiningPlayer(`p${count}`) })
      act(room, "kick", `p${count}`)
      room.wait(1)
    }
    act(room, "ban", "last")
    assert.strictEqual(room.state.rights.bars.size, roomLimits.barsMax)
    assert.isTrue(isBarred(room.state, "first", room.now))
    assert.isFalse(room.state.rights.bars.has("p1"))
    assert.isTrue(room.state.rights.bars.has("p2"))
  })
})

describe("a mute", () => {
  it("hides the player's messages, not its state, and is announced to everybody", () => {
    const room = roomOf(["ann", "ben", "cat"], every)
    act(room, "mute", "ben")
    assert.deepStrictEqual(room.takeEvents("cat"), [{ t: "muted", playerId: "ben", muted: true }])
    room.takeEvents("ben")
    says(room, "ben")
    const direct = { t: "send", playerId: "ben", type: "chat", to: ["ben", "cat"] } as const
    assert.deepStrictEqual(room.act(direct), { delivered: 0 })
    assert.deepStrictEqual(room.takeEvents("cat"), [])
    room.act({ t: "setState", playerId: "ben", patch: { a: 1 } })
    room.act({ t: "setMyState", playerId: "ben", patch: { a: 1 } })
    assert.deepStrictEqual(room.takeKinds("cat"), ["state", "player_state"])
    act(room, "unmute", "ben")
    says(room, "ben")
    assert.deepStrictEqual(room.takeKinds("cat"), ["muted", "message"])
  })

  it("refuses to end the mute of a host by itself", () => {
    const room = roomOf(["ann", "ben"], every)
    act(room, "mute", "ben")
    act(room, "host", "ben")
    assert.strictEqual(act(room, "unmute", "ben", { playerId: "ben" }), "invalid_frame")
    assert.isTrue(room.state.rights.muted.has("ben"))
  })

  it("outlasts leaving and joining again", () => {
    const room = roomOf(["ann", "ben"], every)
    act(room, "mute", "ben")
    room.leave("ben")
    room.takeEvents("ann")
    room.join("ben")
    const [joined] = room.takeEvents("ann")
    assert.isTrue(joined?.t === "player_joined" && joined.player.muted)
    says(room, "ben")
    assert.deepStrictEqual(room.takeEvents("ann"), [])
  })

  it("forgets no muted player who is in the room when the list is full", () => {
    const room = roomOf(["ann", "ben"], every)
    act(room, "mute", "ben")
    for (let count = 0; count <= roomLimits.mutesMax; count++) {
      room.act({ t: "join", ...room.joiningPlayer(`p${count}`) })
      act(room, "mute", `p${count}`)
      room.leave(`p${count}`)
    }
    assert.strictEqual(room.state.rights.muted.size, roomLimits.mutesMax)
    assert.isTrue(room.state.rights.muted.has("ben"))
  })
})

describe("the right to moderate", () => {
  it("belongs to the host alone, and only as far as the mode gives it", () => {
    const room = roomOf(["ann", "ben", "cat"], { powers: ["kick"] })
    const byBen = { playerId: "ben" }
    assert.strictEqual(act(room, "kick", "cat", byBen), "host_only")
    assert.strictEqual(act(room, "ban", "cat"), "not_permitted")
    assert.strictEqual(act(room, "host", "cat"), "not_permitted")
    assert.strictEqual(act(room, "kick", "cat"), "granted")
  })

  it("belongs to nobody in a mode without authority", () => {
    const room = roomOf(["ann", "ben"])
    for (const op of ["kick", "ban", "unban", "mute", "unmute", "host"] as const) {
      assert.strictEqual(act(room, op, "ben"), "not_permitted", op)
    }
    assert.strictEqual(
      room.refusal({ t: "startVote", playerId: "ann", op: "kick", target: "ben" }),
      "not_permitted"
    )
  })

  it("belongs to a server, whatever the mode gives", () => {
    const room = roomOf(["ann", "ben", "cat"])
    assert.strictEqual(act(room, "host", "ben", "server"), "granted")
    assert.strictEqual(act(room, "kick", "ben", "server"), "granted")
    assert.strictEqual(room.state.hostId, "ann")
  })

  it("ends with the role of the host", () => {
    const room = roomOf(["ann", "ben", "cat"], every)
    act(room, "host", "ben")
    assert.strictEqual(act(room, "kick", "cat"), "host_only")
  })

  it("does not let a host remove or mute itself", () => {
    const room = roomOf(["ann", "ben"], every)
    for (const op of ["kick", "ban", "mute"] as const) {
      assert.strictEqual(act(room, op, "ann"), "invalid_frame", op)
    }
  })
})

describe("the succession of the host", () => {
  const changes = (room: RoomHarness, playerId: string) =>
    room.takeEvents(playerId).filter((event) => event.t === "host_changed")

  it("passes with one event, whatever removes the host", () => {
    for (const how of ["left", "banned", "deleted"] as const) {
      const room = roomOf(["ann", "ben", "cat"], every)
      room.act({ t: "leave", playerId: "ann", reason: how })
      const event = { t: "host_changed", hostId: "ben", previousHostId: "ann", reason: how }
      assert.deepStrictEqual<unknown>(changes(room, "cat"), [event])
    }
    const room = roomOf(["ann", "ben", "cat"])
    act(room, "kick", "ann", "server")
    assert.deepStrictEqual<unknown>(changes(room, "cat"), [
      { t: "host_changed", hostId: "ben", previousHostId: "ann", reason: "kicked" }
    ])
  })

  it("skips members who are away, and passes once when the host and its heir leave together", () => {
    const room = roomOf(["ann", "ben", "cat", "dan"])
    room.drop("ben")
    room.leave("ann")
    room.leave("ben")
    assert.deepStrictEqual<unknown>(changes(room, "dan"), [
      { t: "host_changed", hostId: "cat", previousHostId: "ann", reason: "left" }
    ])
  })

  it("passes once when the host and its heir drop together, after five seconds", () => {
    const room = roomOf(["ann", "ben", "cat"])
    room.drop("ann")
    room.drop("ben")
    room.wait(4999)
    assert.deepStrictEqual(changes(room, "cat"), [])
    room.wait(1)
    assert.deepStrictEqual<unknown>(changes(room, "cat"), [
      { t: "host_changed", hostId: "cat", previousHostId: "ann", reason: "timeout" }
    ])
    room.resume("ann")
    room.wait(60_000)
    assert.deepStrictEqual(changes(room, "cat"), [])
  })

  it("stays with a host who resumes within five seconds", () => {
    const room = roomOf(["ann", "ben"])
    room.drop("ann")
    room.wait(4999)
    room.resume("ann")
    room.wait(60_000)
    assert.strictEqual(room.state.hostId, "ann")
    assert.deepStrictEqual(changes(room, "ben"), [])
  })

  it("goes to the first who returns when nobody is there", () => {
    const room = roomOf(["ann", "ben"])
    room.drop("ann")
    room.drop("ben")
    room.wait(10_000)
    assert.strictEqual(room.state.hostId, "ann")
    room.resume("ben")
    assert.strictEqual(room.state.hostId, "ben")
  })

  it("passes to whom the host chooses, if that player is connected", () => {
    const room = roomOf(["ann", "ben", "cat"], every)
    room.drop("ben")
    assert.strictEqual(act(room, "host", "ben"), "player_not_in_room")
    assert.strictEqual(act(room, "host", "ann"), "granted")
    assert.deepStrictEqual(changes(room, "cat"), [])
    assert.strictEqual(act(room, "host", "cat"), "granted")
    assert.deepStrictEqual<unknown>(changes(room, "cat"), [
      { t: "host_changed", hostId: "cat", previousHostId: "ann", reason: "transferred" }
    ])
  })
})

describe("a player whose node missed the end of the seat", () => {
  const left = { t: "player_left", reason: "kicked" }

  it("receives the removal that the room remembers, or else that the room is lost", () => {
    const room = roomOf(["ann", "ben", "cat", "dan"], every)
    room.act({ t: "moderate", by: byAnn, op: "kick", target: "ben" })
    room.act({ t: "moderate", by: byAnn, op: "ban", target: "cat" })
    const until = iso(room.now + 60_000)
    assert.deepStrictEqual<unknown>(missedEnd(room.state, "ben"), [
      { t: "removed", roomId: "rm_1", reason: "kicked", until },
      { ...left, playerId: "ben" }
    ])
    assert.deepStrictEqual<unknown>(missedEnd(room.state, "cat"), [
      { t: "removed", roomId: "rm_1", reason: "banned", until: null },
      { ...left, playerId: "cat" }
    ])
    assert.deepStrictEqual<unknown>(missedEnd(room.state, "eve"), [
      { t: "room_closed", roomId: "rm_1", reason: "lost" }
    ])
  })
})
