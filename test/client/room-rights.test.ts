/** Rights of a room in the client: the frames of its calls, the view of their events, and a removal. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { applyEvent } from "#client/room-reducer"
import type { RoomEvent, RoomSnapshot } from "#client/client"
import { reply, scriptedService, seated } from "../support/client/scripted-service.ts"
import { call } from "../support/client/waits.ts"

const ann = {
  id: "ann",
  displayName: "Ann",
  connected: true,
  joinedAt: "2026-11-20T21:00:00.000Z",
  state: {}
}

describe("the rights of a room in the client", () => {
  it.effect("sends one frame for each call", () =>
    Effect.gen(function* () {
      const service = yield* scriptedService
      const { room, socket } = yield* seated(service)
      const calls: ReadonlyArray<readonly [() => Promise<unknown>, object]> = [
        [() => room.kick("ann"), { t: "roomModerate", op: "kick", playerId: "ann" }],
        [
          () => room.kick("ann", "afk"),
          { t: "roomModerate", op: "kick", playerId: "ann", reason: "afk" }
        ],
        [
          () => room.moderate("team", "ann", { team: "red" }),
          { t: "roomModerate", op: "team", playerId: "ann", team: "red" }
        ],
        [() => room.vote("kick", "ann"), { t: "vote", op: "kick", playerId: "ann" }],
        [() => room.vote("restart"), { t: "vote", op: "restart" }],
        [() => room.castVote("v1", false), { t: "vote", voteId: "v1", yes: false }],
        [() => room.setTeam("red"), { t: "setTeam", team: "red" }]
      ]
      for (const [send, expected] of calls) {
        const sending = yield* call(send)
        const { rid, ...frame } = yield* socket.next
        assert.deepStrictEqual<unknown>(frame, expected)
        yield* socket.say(reply({ ...frame, rid }, { voteId: "v1" }))
        const data = yield* Fiber.join(sending)
        if (frame["op"] !== undefined && frame["t"] === "vote") assert.strictEqual(data, "v1")
      }
    }).pipe(Effect.scoped)
  )

  it.effect("ends the room with the reason of a removal, and is free for another", () =>
    Effect.gen(function* () {
      const service = yield* scriptedService
      const { client, room, socket } = yield* seated(service)
      const seen: Array<unknown> = []
      room.on("removed", ({ cause, reason }) => seen.push([reason, cause]))
      room.on("closed", ({ reason }) => seen.push(reason))
      const playerId = "pl_00000000000000000000000001"
      yield* socket.say(
        { t: "removed", roomId: room.id, reason: "kicked", until: null, cause: "afk" },
        { t: "player_left", playerId, reason: "kicked" }
      )
      yield* Effect.callback<void>((resume) => {
        room.on("closed", () => resume(Effect.void))
      })
      assert.deepStrictEqual(seen, [["kicked", "afk"], "kicked"])
      assert.isNull(client.rooms.current)
    }).pipe(Effect.scoped)
  )

  it("shows votes, teams and mutes in the view", () => {
    const room: RoomSnapshot = {
      id: "rm_1",
      code: "7KMB2P",
      mode: "arena",
      private: false,
      locked: false,
      transport: "server",
      hostId: "ann",
      hostOnlyState: false,
      maxPlayers: 4,
      metadata: {},
      state: {},
      version: 0,
      createdAt: "2026-11-20T21:00:00.000Z",
      players: [ann]
    }
    const after = (...events: ReadonlyArray<RoomEvent>) => events.reduce(applyEvent, room)
    const vote = { voteId: "v1", op: "restart", yes: 1, no: 0, needed: 2, endsAt: "2026" } as const
    const open: RoomEvent = { t: "vote", ...vote, state: "open" }
    assert.deepStrictEqual(after(open).vote, vote)
    assert.doesNotHaveAnyKeys(after(open, { ...open, state: "failed" }), ["vote"])
    const teams = [{ key: "red", players: ["ann"] }]
    assert.deepStrictEqual(after({ t: "teams", teams, version: 1 }).teams, teams)
    const muted: RoomEvent = { t: "muted", playerId: "ann", muted: true }
    assert.deepStrictEqual(after(muted).players, [{ ...ann, muted: true }])
    assert.deepStrictEqual(after(muted, { ...muted, muted: false }).players, [ann])
  })
})
