/** Votes in a room: who may vote, when a vote passes, fails or is cancelled, and what it leaves behind. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { RoomEvent } from "#rpc/rooms/events"
import { iso } from "#entities/room/model"
import { decodeSnapshot, toRow, wakeFrom } from "#entities/room/snapshot"
import { type RoomHarness, roomOf } from "../../support/room-harness.ts"

const rule = { op: "kick", share: 0.6, minVoters: 3, seconds: 30, cooldownSeconds: 60 }
const restart = { ...rule, op: "restart", share: 0.5 }

const powers = ["kick", "ban"]

const everyone = ["ann", "ben", "cat", "dan", "eve", "fay"]

const room6 = (overrides: Partial<typeof rule> = {}) =>
  roomOf(everyone, { maxPlayers: 8, powers, votes: [{ ...rule, ...overrides }, restart] })

const begin = (room: RoomHarness, playerId: string, target: string): string =>
  String(room.act({ t: "startVote", playerId, op: "kick", target })["voteId"])

const beginRefusal = (room: RoomHarness, playerId: string, target: string): string =>
  room.refusal({ t: "startVote", playerId, op: "kick", target })

const cast = (room: RoomHarness, playerId: string, voteId: string, yes = true): string =>
  room.refusal({ t: "castVote", playerId, voteId, yes })

type VoteEvent = Extract<RoomEvent, { t: "vote" }>

/** The states of a vote that a player has seen since the last call. */
const statesFor = (room: RoomHarness, playerId: string): ReadonlyArray<VoteEvent["state"]> =>
  room.takeEvents(playerId).flatMap((event) => (event.t === "vote" ? [event.state] : []))

describe("a vote", () => {
  it("counts the yes of its starter, and is announced to everybody, the target too", () => {
    const room = room6()
    const voteId = begin(room, "ben", "fay")
    const event = {
      t: "vote",
      voteId,
      op: "kick",
      playerId: "fay",
      yes: 1,
      no: 0,
      needed: 3,
      endsAt: iso(room.now + 30_000),
      state: "open"
    }
    assert.deepStrictEqual<unknown>(room.takeEvents("fay"), [event])
    assert.deepStrictEqual<unknown>(room.takeEvents("ben"), [event])
  })

  it("passes exactly at the share, and removes the player in the same step", () => {
    const room = room6()
    const voteId = begin(room, "ben", "fay")
    room.takeEvents("fay")
    cast(room, "cat", voteId)
    assert.isTrue(room.state.members.has("fay"))
    cast(room, "dan", voteId)
    assert.isFalse(room.state.members.has("fay"))
    assert.deepStrictEqual(room.takeKinds("fay"), ["vote", "vote", "removed", "player_left"])
    assert.strictEqual(room.joinRefusal("fay"), "room_not_found")
    assert.deepStrictEqual(statesFor(room, "ann"), ["open", "open", "passed"])
  })

  it("rounds no share up: 0.55 of 20 voters are 11", () => {
    const players = Array.from({ length: 21 }, (_, index) => `p${index}`)
    const room = roomOf(players, { maxPlayers: 32, votes: [{ ...rule, share: 0.55 }] })
    begin(room, "p0", "p20")
    assert.strictEqual(room.state.rights.vote?.needed, 11)
  })

  it("needs two yes at least: no player decides alone", () => {
    const room = roomOf(["ann", "ben", "cat"], { votes: [{ ...rule, share: 0.5, minVoters: 2 }] })
    begin(room, "ann", "cat")
    assert.isTrue(room.state.members.has("cat"))
    assert.strictEqual(room.state.rights.vote?.needed, 2)
  })

  it("fails as soon as the share is out of reach, also through voters who leave", () => {
    const room = room6()
    const voteId = begin(room, "ben", "fay")
    cast(room, "ann", voteId, false)
    cast(room, "cat", voteId, false)
    assert.isNotNull(room.state.rights.vote)
    room.leave("dan")
    assert.isNull(room.state.rights.vote)
    assert.deepStrictEqual(statesFor(room, "fay"), ["open", "open", "open", "failed"])
    assert.isTrue(room.state.members.has("fay"))
  })

  it("keeps the ballot of a voter who leaves", () => {
    const room = room6()
    const voteId = begin(room, "ben", "fay")
    cast(room, "cat", voteId)
    room.leave("cat")
    cast(room, "dan", voteId)
    assert.isFalse(room.state.members.has("fay"))
  })

  it("fails when its time ends, without a later ballot", () => {
    const room = room6()
    const voteId = begin(room, "ben", "fay")
    room.wait(29_999)
    assert.isNotNull(room.state.rights.vote)
    room.now += 1
    assert.strictEqual(cast(room, "cat", voteId), "vote_not_found")
    room.wait(0)
    assert.deepStrictEqual(statesFor(room, "fay"), ["open", "failed"])
    assert.strictEqual(cast(room, "cat", voteId), "vote_not_found")
  })

  it("ends as cancelled when its target or its starter leaves, however", () => {
    const ends: ReadonlyArray<(room: RoomHarness) => void> = [
      (room) => room.leave("fay"),
      (room) => room.leave("ben"),
      (room) => room.act({ t: "leave", playerId: "fay", reason: "banned" }),
      (room) => room.act({ t: "moderate", by: "server", op: "kick", target: "fay" }),
      (room) => room.act({ t: "moderate", by: { playerId: "ann" }, op: "ban", target: "ben" })
    ]
    for (const end of ends) {
      const room = room6()
      begin(room, "ben", "fay")
      end(room)
      assert.deepStrictEqual(statesFor(room, "dan"), ["open", "cancelled"])
    }
  })

  it("goes on while its target or its starter is only away", () => {
    const room = room6()
    const voteId = begin(room, "ben", "fay")
    room.drop("fay")
    room.drop("ben")
    cast(room, "cat", voteId)
    cast(room, "dan", voteId)
    assert.isFalse(room.state.members.has("fay"))
  })

  it("removes a host, whose role passes on with one event", () => {
    const room = room6()
    const voteId = begin(room, "ben", "ann")
    cast(room, "cat", voteId)
    room.takeEvents("dan")
    cast(room, "dan", voteId)
    assert.deepStrictEqual<unknown>(room.takeEvents("dan").slice(1), [
      { t: "player_left", playerId: "ann", reason: "kicked" },
      { t: "host_changed", hostId: "ben", previousHostId: "ann", reason: "kicked" }
    ])
  })

  it("removes nobody twice when the host kicks the target in the instant of the last ballot", () => {
    const room = room6()
    const voteId = begin(room, "ben", "fay")
    cast(room, "cat", voteId)
    room.act({ t: "moderate", by: { playerId: "ann" }, op: "kick", target: "fay" })
    assert.strictEqual(cast(room, "dan", voteId), "vote_not_found")
    assert.deepStrictEqual(statesFor(room, "dan"), ["open", "open", "cancelled"])
  })

  it("only announces its result when it is for a restart", () => {
    const room = room6()
    const voteId = String(room.act({ t: "startVote", playerId: "ben", op: "restart" })["voteId"])
    cast(room, "cat", voteId)
    cast(room, "dan", voteId)
    assert.deepStrictEqual(statesFor(room, "ann"), ["open", "open", "passed"])
    assert.strictEqual(room.state.members.size, 6)
  })
})

describe("the voters of a vote", () => {
  it("stay those who were connected at its start, without the target", () => {
    const room = room6()
    room.drop("eve")
    const voteId = begin(room, "ben", "fay")
    room.join("gus")
    room.resume("eve")
    assert.strictEqual(room.state.rights.vote?.needed, 3)
    for (const playerId of ["fay", "gus", "eve"]) {
      assert.strictEqual(cast(room, playerId, voteId), "not_permitted", playerId)
    }
  })

  it("vote once, and may repeat the same ballot", () => {
    const room = room6()
    const voteId = begin(room, "ben", "fay")
    assert.strictEqual(cast(room, "cat", voteId, false), "granted")
    assert.strictEqual(cast(room, "cat", voteId, false), "granted")
    assert.strictEqual(cast(room, "cat", voteId, true), "not_permitted")
    assert.deepStrictEqual(statesFor(room, "dan"), ["open", "open"])
  })

  it("number at least as many as the mode wants", () => {
    const room = roomOf(["ann", "ben", "cat"], { votes: [rule] })
    assert.strictEqual(beginRefusal(room, "ann", "cat"), "not_permitted")
    room.join("dan")
    assert.strictEqual(beginRefusal(room, "ann", "cat"), "granted")
  })
})

describe("the start of a vote", () => {
  it("fails while another is open, and for what the mode does not permit", () => {
    const room = room6()
    begin(room, "ben", "fay")
    assert.strictEqual(beginRefusal(room, "cat", "dan"), "vote_running")
    assert.strictEqual(
      room.refusal({ t: "startVote", playerId: "cat", op: "surrender" }),
      "not_permitted"
    )
    assert.strictEqual(beginRefusal(room6(), "ben", "nobody"), "player_not_in_room")
    assert.strictEqual(beginRefusal(room6(), "ben", "ben"), "invalid_frame")
  })

  it("waits after a failed vote of the same starter, or against the same player", () => {
    const room = room6()
    begin(room, "ben", "fay")
    room.wait(30_000)
    assert.strictEqual(beginRefusal(room, "ben", "cat"), "vote_cooldown")
    assert.strictEqual(beginRefusal(room, "cat", "fay"), "vote_cooldown")
    assert.strictEqual(room.refusal({ t: "startVote", playerId: "ben", op: "restart" }), "granted")
    room.wait(30_000)
    assert.strictEqual(beginRefusal(room, "cat", "dan"), "granted")
    room.leave("cat")
    room.wait(30_000)
    assert.strictEqual(beginRefusal(room, "ben", "fay"), "granted")
  })

  it("needs no wait after the target has left for a moment", () => {
    const room = room6()
    begin(room, "ben", "fay")
    room.leave("fay")
    room.join("fay")
    assert.strictEqual(beginRefusal(room, "ben", "fay"), "granted")
  })
})

describe("an open vote in a snapshot", () => {
  it("goes on with its ballots where the room wakes, for the time that it had left", () => {
    const room = room6()
    const voteId = begin(room, "ben", "fay")
    cast(room, "cat", voteId)
    room.wait(10_000)
    const { snapshot } = toRow(room.state, 1, "n1", room.now)
    room.now += 600_000
    room.state = wakeFrom(Effect.runSync(decodeSnapshot(snapshot)), room.now)
    assert.strictEqual(room.state.rights.vote?.endsAt, room.now + 20_000)
    assert.strictEqual(cast(room, "dan", voteId), "granted")
    assert.isFalse(room.state.members.has("fay"))
    assert.strictEqual(room.joinRefusal("fay"), "room_not_found")
  })

  it("shows in the view of a player who returns", () => {
    const room = room6()
    const voteId = begin(room, "ben", "fay")
    room.drop("cat")
    room.resume("cat")
    assert.strictEqual(room.views.get("cat")?.vote?.voteId, voteId)
  })
})
