/** Rights in rooms through the public interface: moderation by the host, votes, teams. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestApp } from "#testing/app"
import { at, configure, newPlayer, type OnlinePlayer, request } from "#testing/players"
import { AppLive, DatabaseLive } from "../../support/service.ts"
import { granted, openRoom } from "../../support/opened-room.ts"

const votes = [{ op: "kick", share: 0.5, minVoters: 2, seconds: 10, cooldownSeconds: 60 }]

const document = {
  version: 1,
  features: { multiplayer: true },
  multiplayer: {
    modes: [
      { key: "default", minPlayers: 2, maxPlayers: 8 },
      {
        key: "arena",
        minPlayers: 1,
        maxPlayers: 4,
        fillTimeoutSeconds: 0,
        authority: {
          host: ["kick", "ban", "mute", "transfer"],
          matchedHost: ["kick"],
          votes
        },
        teams: [
          { key: "red", max: 2 },
          { key: "blue", max: 4 }
        ],
        assign: "free"
      }
    ]
  }
}

const arena = { mode: "arena" }

const kick = (playerId: string) => ({ t: "roomModerate", op: "kick", playerId })

const errorOf = (player: OnlinePlayer, frame: object) =>
  Effect.map(player.socket.request(frame), (reply) => at(reply, "error"))

const codeOf = (player: OnlinePlayer, frame: object) =>
  Effect.map(errorOf(player, frame), (error) => at(error, "code"))

const threePlayers = Effect.gen(function* () {
  const app = yield* TestApp
  yield* configure(app, document)
  const ann = yield* newPlayer(app, "Ann")
  const ben = yield* newPlayer(app, "Ben")
  const cat = yield* newPlayer(app, "Cat")
  return { app, ann, ben, cat }
})

layer(AppLive, { timeout: "120 seconds", excludeTestServices: true })("rights in rooms", (it) => {
  it.effect("lets the host kick a player, who learns of it first and is free at once", () =>
    Effect.gen(function* () {
      const { ann, ben, cat } = yield* threePlayers
      const { roomId } = yield* openRoom([ann, ben, cat], arena)
      yield* granted(ann, { ...kick(ben.id), reason: "afk" })
      const removed = yield* ben.socket.next("removed")
      assert.deepInclude(removed, { roomId, reason: "kicked", cause: "afk" })
      const types = ben.socket.received.map(({ t }) => t)
      assert.isBelow(types.indexOf("removed"), types.indexOf("player_left"))
      const left = yield* cat.socket.next("player_left")
      assert.deepInclude(left, { playerId: ben.id, reason: "kicked" })
      assert.strictEqual(yield* codeOf(ben, { t: "send", type: "x" }), "not_in_room")
      yield* granted(ben, { t: "create", ...arena })
    })
  )

  it.effect("answers a barred player exactly as if the room did not exist", () =>
    Effect.gen(function* () {
      const { ann, ben } = yield* threePlayers
      const room = yield* openRoom([ann, ben], arena)
      yield* granted(ann, { t: "roomModerate", op: "ban", playerId: ben.id })
      yield* ben.socket.next("removed")
      const unknown = yield* errorOf(ben, { t: "join", code: "BBBBBB" })
      assert.strictEqual(at(unknown, "code"), "room_not_found")
      assert.deepStrictEqual(yield* errorOf(ben, { t: "join", code: room.code }), unknown)
      assert.deepStrictEqual(yield* errorOf(ben, { t: "join", roomId: room.roomId }), unknown)
      yield* granted(ann, { t: "roomModerate", op: "unban", playerId: ben.id })
      yield* granted(ben, { t: "join", code: room.code })
    })
  )

  it.effect("seats a kicked player in another room when it looks for a match again", () =>
    Effect.gen(function* () {
      const { ann, ben, cat } = yield* threePlayers
      const match = { t: "quickMatch", mode: "arena" }
      const first = yield* granted(ann, match)
      const second = yield* granted(ben, match)
      assert.strictEqual(at(second, "data", "roomId"), at(first, "data", "roomId"))
      yield* granted(ann, kick(ben.id))
      yield* ben.socket.next("removed")
      const again = yield* granted(ben, match)
      assert.notStrictEqual(at(again, "data", "roomId"), at(first, "data", "roomId"))
      yield* granted(cat, match)
      yield* granted(ann, { t: "leave" })
    })
  )

  it.effect("gives the host of a quick match only what the mode gives to strangers", () =>
    Effect.gen(function* () {
      const { ann, ben } = yield* threePlayers
      yield* granted(ann, { t: "quickMatch", mode: "arena" })
      const joined = yield* ann.socket.next("room_joined")
      assert.strictEqual(at(joined, "room", "hostId"), ann.id)
      yield* granted(ben, { t: "join", roomId: at(joined, "room", "id") })
      const ban = { t: "roomModerate", op: "ban", playerId: ben.id }
      assert.strictEqual(yield* codeOf(ann, ban), "not_permitted")
      assert.strictEqual(yield* codeOf(ben, kick(ann.id)), "host_only")
      yield* granted(ann, { t: "leave" })
      yield* granted(ben, { t: "leave" })
    })
  )

  it.effect("lets players vote a player out", () =>
    Effect.gen(function* () {
      const { ann, ben, cat } = yield* threePlayers
      yield* openRoom([ann, ben, cat], arena)
      const reply = yield* granted(ben, { t: "vote", op: "kick", playerId: ann.id })
      const voteId = at(reply, "data", "voteId")
      const open = yield* ann.socket.next("vote")
      assert.deepInclude(open, { voteId, op: "kick", playerId: ann.id, yes: 1, needed: 2 })
      assert.strictEqual(yield* codeOf(ann, { t: "vote", voteId, yes: false }), "not_permitted")
      yield* granted(cat, { t: "vote", voteId, yes: true })
      assert.strictEqual((yield* ann.socket.next("removed"))["reason"], "voted")
      const passed = yield* ben.socket.next("vote", ({ state }) => state !== "open")
      assert.strictEqual(passed["state"], "passed")
      const host = yield* ben.socket.next("host_changed")
      assert.deepInclude(host, { hostId: ben.id, previousHostId: ann.id, reason: "kicked" })
      assert.strictEqual(yield* codeOf(cat, { t: "vote", voteId, yes: true }), "vote_not_found")
    })
  )

  it.effect("lets players choose a team with a free slot", () =>
    Effect.gen(function* () {
      const { ann, ben, cat } = yield* threePlayers
      yield* openRoom([ann, ben, cat], arena)
      const joined = yield* cat.socket.next("room_joined")
      assert.deepStrictEqual(at(joined, "room", "teams"), [
        { key: "red", players: [ann.id, cat.id] },
        { key: "blue", players: [ben.id] }
      ])
      assert.strictEqual(yield* codeOf(ben, { t: "setTeam", team: "red" }), "team_full")
      yield* granted(ann, { t: "setTeam", team: "blue" })
      yield* granted(ben, { t: "setTeam", team: "red" })
      const teams = yield* cat.socket.next("teams", (event) =>
        JSON.stringify(at(event, "teams", 0)).includes(ben.id)
      )
      assert.deepStrictEqual(at(teams, "teams", 1, "players"), [ann.id])
    })
  )

  it.effect("hides the messages of a muted player, and shows that to who joins later", () =>
    Effect.gen(function* () {
      const { ann, ben, cat } = yield* threePlayers
      const { roomId } = yield* openRoom([ann, ben], arena)
      yield* granted(ann, { t: "roomModerate", op: "mute", playerId: ben.id })
      yield* ben.socket.next("muted")
      yield* granted(ben, { t: "send", type: "chat", data: "hidden" })
      yield* granted(ben, { t: "setState", patch: { seen: true } })
      yield* ann.socket.next("state")
      assert.notInclude(
        ann.socket.received.map(({ t }) => t),
        "message"
      )
      yield* granted(cat, { t: "join", roomId })
      const joined = yield* cat.socket.next("room_joined")
      assert.deepInclude(at(joined, "room", "players", 1), { id: ben.id, muted: true })
    })
  )

  it.effect("gives nobody any right in a mode that declares none", () =>
    Effect.gen(function* () {
      const { ann, ben } = yield* threePlayers
      yield* openRoom([ann, ben])
      for (const frame of [
        kick(ben.id),
        { t: "vote", op: "kick", playerId: ben.id },
        { t: "setTeam", team: "red" }
      ]) {
        assert.strictEqual(yield* codeOf(ann, frame), "not_permitted")
      }
      const joined = yield* ben.socket.next("room_joined")
      assert.doesNotHaveAnyKeys(at(joined, "room"), ["teams", "vote"])
    })
  )

  it.effect("says what is wrong with a frame of rights", () =>
    Effect.gen(function* () {
      const { ann, ben } = yield* threePlayers
      yield* openRoom([ann, ben], arena)
      const wrong: ReadonlyArray<readonly [object, string]> = [
        [{ t: "vote" }, "Give op to start a vote, or voteId and yes to vote"],
        [{ t: "vote", op: "kick" }, 'Give playerId with op "kick", and only then'],
        [{ t: "vote", op: "kick", voteId: "v", playerId: "p" }, "Give op to start a vote"],
        [{ t: "roomModerate", op: "team", playerId: "p" }, 'Give team with op "team"'],
        [{ ...kick(ben.id), reason: "He is rude" }, "Expected lowercase snake_case"],
        [{ t: "roomModerate", op: "explode", playerId: "p" }, "Expected "]
      ]
      for (const [frame, message] of wrong) {
        const error = yield* errorOf(ann, frame)
        assert.strictEqual(at(error, "code"), "invalid_frame")
        assert.include(JSON.stringify(error), JSON.stringify(message).slice(1, -1))
      }
      const nobody = yield* newPlayer(yield* TestApp)
      assert.strictEqual(yield* codeOf(nobody, kick(ben.id)), "not_in_room")
    })
  )

  it.effect("publishes the rights and teams of a mode in the definitions", () =>
    Effect.gen(function* () {
      const { app } = yield* threePlayers
      const { body } = yield* request(`${app.url}/v1/gamedata/definitions`, {
        headers: { "x-svc-key": app.publishableKey }
      })
      assert.doesNotHaveAnyKeys(at(body, "modes", 0), ["authority", "teams", "assign"])
      assert.deepStrictEqual(at(body, "modes", 1, "authority", "votes"), votes)
      assert.strictEqual(at(body, "modes", 1, "assign"), "free")
    })
  )
})

const Throttled = TestApp.layerWith({ SVC_THROTTLES: "on" }).pipe(Layer.provide(DatabaseLive))

layer(Throttled, { timeout: "120 seconds", excludeTestServices: true })("votes", (it) => {
  it.effect("refuses a seventh start of a vote within a minute, and still takes ballots", () =>
    Effect.gen(function* () {
      const { ann, ben } = yield* threePlayers
      yield* openRoom([ann, ben], arena)
      const start = { t: "vote", op: "restart" }
      for (let count = 0; count < 6; count++) {
        assert.strictEqual(yield* codeOf(ben, start), "not_permitted")
      }
      assert.strictEqual(yield* codeOf(ben, start), "rate_limited")
      const ballot = { t: "vote", voteId: "v", yes: true }
      assert.strictEqual(yield* codeOf(ben, ballot), "vote_not_found")
    })
  )
})
