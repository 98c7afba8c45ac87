/** Teams of a room: who gets which, moves between them, and their events. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { RoomSettings } from "#entities/room/model"
import { decodeSnapshot, fromStored, toRow } from "#entities/room/snapshot"
import { RoomHarness, roomOf } from "../../support/room-harness.ts"

const redAndBlue: Partial<RoomSettings> = {
  maxPlayers: 8,
  teams: [
    { key: "red", min: 1, max: 2 },
    { key: "blue", min: 1, max: 4 }
  ]
}

const teamOf = (room: RoomHarness, playerId: string) => room.state.members.get(playerId)?.team

const move = (room: RoomHarness, target: string, team: string, by: "server" | string = "server") =>
  room.refusal({
    t: "moderate",
    by: by === "server" ? by : { playerId: by },
    op: "team",
    target,
    team
  })

const choose = (room: RoomHarness, playerId: string, team: string) =>
  room.refusal({ t: "setTeam", playerId, team })

describe("the team of a player", () => {
  it("becomes the smallest with a free slot, first one below its minimum", () => {
    const room = roomOf(["a", "b", "c", "d", "e"], redAndBlue)
    assert.deepStrictEqual(room.views.get("a")?.teams, [
      { key: "red", players: ["a", "c"] },
      { key: "blue", players: ["b", "d", "e"] }
    ])
  })

  it("fills every minimum of a match of the least players", () => {
    const room = new RoomHarness({
      maxPlayers: 8,
      matched: true,
      teams: [
        { key: "seeker", min: 1, max: 2 },
        { key: "hider", min: 4, max: 6 }
      ]
    })
    room.join("a")
    room.seat("b", "c", "d", "e")
    const sizes = ["seeker", "hider"].map(
      (key) => Array.from(room.state.members.values()).filter(({ team }) => team === key).length
    )
    assert.deepStrictEqual(sizes, [1, 4])
  })

  it("stays through a drop, and is free after a leave", () => {
    const room = roomOf(["a", "b", "c"], redAndBlue)
    room.drop("a")
    room.join("d")
    assert.deepStrictEqual([teamOf(room, "a"), teamOf(room, "d")], ["red", "blue"])
    room.resume("a")
    assert.strictEqual(teamOf(room, "a"), "red")
    room.leave("c")
    room.join("e")
    assert.strictEqual(teamOf(room, "e"), "red")
  })

  it("does not exist in a mode without teams", () => {
    const room = roomOf(["a", "b"])
    assert.isUndefined(room.views.get("a")?.teams)
    assert.strictEqual(choose(room, "a", "red"), "not_permitted")
    assert.strictEqual(move(room, "a", "red"), "not_permitted")
  })

  it("survives in a snapshot", () => {
    const room = roomOf(["a", "b", "c"], redAndBlue)
    move(room, "c", "blue")
    const row = toRow(room.state, 1, "n1", room.now)
    const restored = fromStored(Effect.runSync(decodeSnapshot(row.snapshot)))
    assert.strictEqual(restored.members.get("c")?.team, "blue")
  })

  it("exists for each player of 64 in 64 teams", () => {
    const teams = Array.from({ length: 64 }, (_, index) => ({ key: `t${index}`, min: 1, max: 1 }))
    const room = new RoomHarness({ maxPlayers: 64, teams })
    for (let index = 0; index < 64; index++) room.join(`p${index}`)
    assert.strictEqual(
      new Set(Array.from(room.state.members.values(), ({ team }) => team)).size,
      64
    )
    assert.strictEqual(room.joinRefusal("one-too-many"), "room_full")
    assert.strictEqual(move(room, "p0", "t1"), "team_full")
  })
})

describe("`setTeam`", () => {
  const free = { ...redAndBlue, freeTeams: true }

  it("moves the player to a team with a free slot", () => {
    const room = roomOf(["a", "b", "c"], free)
    assert.strictEqual(choose(room, "b", "red"), "team_full")
    assert.strictEqual(choose(room, "a", "blue"), "granted")
    assert.strictEqual(choose(room, "b", "red"), "granted")
    assert.strictEqual(choose(room, "b", "green"), "invalid_frame")
  })

  it("fails in a locked room, and where players do not choose", () => {
    const room = roomOf(["a", "b"], free)
    room.act({ t: "lock", playerId: "a", locked: true })
    assert.strictEqual(choose(room, "a", "blue"), "not_permitted")
    assert.strictEqual(choose(roomOf(["a"], redAndBlue), "a", "blue"), "not_permitted")
  })
})

describe("the host", () => {
  it("moves players between teams where the mode lets it, also in a locked room", () => {
    const room = roomOf(["a", "b"], { ...redAndBlue, powers: ["team"] })
    room.act({ t: "lock", playerId: "a", locked: true })
    assert.strictEqual(move(room, "b", "red", "a"), "granted")
    assert.strictEqual(move(room, "a", "red", "b"), "host_only")
    assert.strictEqual(move(room, "b", "red", "a"), "granted")
    assert.strictEqual(move(roomOf(["a", "b"], redAndBlue), "b", "red", "a"), "not_permitted")
  })
})

describe("the event `teams`", () => {
  it("comes once for each change of the teams, after what caused it, and not to who enters", () => {
    const room = roomOf(["a", "b"], redAndBlue)
    room.join("c")
    assert.deepStrictEqual(room.takeKinds("a"), ["player_joined", "teams"])
    assert.deepStrictEqual(room.takeKinds("c"), ["room_joined"])
    room.leave("b")
    assert.deepStrictEqual(room.takeKinds("a"), ["player_left", "teams"])
    room.act({ t: "moderate", by: "server", op: "kick", target: "c" })
    assert.deepStrictEqual(room.takeKinds("a"), ["player_left", "teams"])
    assert.deepStrictEqual(room.takeKinds("c"), ["player_left", "teams", "removed", "player_left"])
    move(room, "a", "red")
    room.drop("a")
    assert.deepStrictEqual(room.takeKinds("a"), [])
  })

  it("numbers the changes", () => {
    const room = roomOf(["a", "b"], redAndBlue)
    const { teamsVersion } = room.state
    move(room, "a", "blue")
    const [event] = room.takeEvents("b")
    assert.deepStrictEqual(event, {
      t: "teams",
      teams: [
        { key: "red", players: [] },
        { key: "blue", players: ["a", "b"] }
      ],
      version: teamsVersion + 1
    })
  })

  it("never comes in a room without teams, whose snapshot has nothing of rights", () => {
    const room = roomOf(["a", "b"])
    room.join("c")
    room.leave("b")
    assert.deepStrictEqual(room.takeKinds("a"), ["player_joined", "player_left"])
    const { snapshot } = toRow(room.state, 1, "n1", room.now)
    for (const field of ["rights", "team", "teamsVersion", "votes", "powers"]) {
      assert.notInclude(snapshot, `"${field}"`)
    }
  })
})
