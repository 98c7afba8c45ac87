/** Rights in rooms with two runner processes: what holds when the runner of the room is killed. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { at, configure, goOnline, newPlayer, type OnlinePlayer } from "#testing/players"
import { live } from "../../support/security/security-harness.ts"
import { granted, openRoom } from "../../support/opened-room.ts"
import { TwoRunners } from "../../support/two-runners.ts"

const document = {
  version: 1,
  features: { multiplayer: true },
  multiplayer: {
    modes: [
      {
        key: "arena",
        minPlayers: 2,
        maxPlayers: 8,
        authority: {
          host: ["kick", "ban"],
          votes: [{ op: "kick", share: 1, minVoters: 2, seconds: 120, cooldownSeconds: 60 }]
        },
        teams: [
          { key: "red", max: 8 },
          { key: "blue", max: 8 }
        ]
      }
    ]
  }
}

const codeOf = (player: OnlinePlayer, frame: object) =>
  Effect.map(player.socket.request(frame), (reply) => at(reply, "error", "code") ?? "ok")

layer(TwoRunners.layerWith(), live)("rights in rooms on two runners", (it) => {
  it.effect(
    "keeps a ban, an open vote and the teams of a room whose runner dies",
    () =>
      Effect.gen(function* () {
        const { at1, at2, first } = yield* TwoRunners
        yield* configure(at1, document)
        // A room opens near its creator: on the first runner, and all others are on the second.
        const ann = yield* newPlayer(at1, "Ann")
        const ben = yield* newPlayer(at2, "Ben")
        const cat = yield* newPlayer(at2, "Cat")
        const dan = yield* newPlayer(at2, "Dan")
        const { code, roomId } = yield* openRoom([ann, ben, cat, dan], { mode: "arena" })
        yield* granted(ann, { t: "roomModerate", op: "ban", playerId: ben.id })
        assert.strictEqual((yield* ben.socket.next("removed"))["reason"], "banned")
        assert.strictEqual(yield* codeOf(ben, { t: "join", roomId }), "room_not_found")
        const started = yield* granted(cat, { t: "vote", op: "kick", playerId: ann.id })
        const voteId = at(started, "data", "voteId")
        yield* first.kill
        const returned = yield* cat.socket.next("room_joined", ({ resumed }) => resumed === true)
        assert.strictEqual(at(returned, "room", "vote", "voteId"), voteId)
        assert.deepStrictEqual(
          [at(returned, "room", "teams", 0, "key"), at(returned, "room", "teams", 1, "players")],
          ["red", [dan.id]]
        )
        assert.strictEqual(yield* codeOf(ben, { t: "join", roomId }), "room_not_found")
        assert.strictEqual(yield* codeOf(ben, { t: "join", code }), "room_not_found")
        yield* granted(dan, { t: "vote", voteId, yes: true })
        const passed = yield* cat.socket.next("vote", ({ state }) => state === "passed")
        assert.strictEqual(passed["playerId"], ann.id)
        const back = yield* goOnline(at2, ann)
        assert.strictEqual(yield* codeOf(back, { t: "join", roomId }), "room_not_found")
      }),
    { tags: "long" }
  )
})
