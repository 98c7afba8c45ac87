/**
 * A new display name reaches the rooms and channels of its player, on every runner.
 * @module-tag long
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schedule } from "effect"
import { TestDatabase } from "#testing/app"
import { at, guest, newPlayer, type OnlinePlayer, type TestTarget } from "#testing/players"
import { startCluster } from "#testing/runners"
import { manage } from "../../support/channel-calls.ts"
import { play } from "../../support/moderation-calls.ts"
import { connectNative } from "../../support/native-socket.ts"
import { DatabaseLive } from "../../support/service.ts"
import { openRoom } from "../../support/opened-room.ts"

const channel = "lobby"

const rename = (target: TestTarget, player: OnlinePlayer, displayName: string) =>
  play(target, player, "PATCH", "players/me", { displayName })

const namesOf = (members: unknown) =>
  Array.isArray(members) ? members.map((member) => at(member, "displayName")) : []

/** Takes the updates of a room and a channel, which are in no order with each other. */
const takeUpdates = Effect.fnUntraced(function* ({ socket }: OnlinePlayer) {
  const ofRoom = yield* socket.next("player_updated", (event) => !("channel" in event))
  const ofChannel = yield* socket.next("player_updated", (event) => "channel" in event)
  assert.strictEqual(ofChannel["channel"], channel)
  assert.deepStrictEqual(ofRoom["player"], ofChannel["player"])
  return ofRoom["player"]
})

describe("a display name on two runners", () => {
  it.live(
    "changes a display name in the player's rooms and channels, and for those who come later",
    () =>
      Effect.gen(function* () {
        const database = yield* TestDatabase
        const { runners, target } = yield* startCluster({ databaseUrl: database.url, size: 2 })
        const [here, there] = runners.map(({ url }) => ({ ...target, url }))
        if (here === undefined || there === undefined) return yield* Effect.die("No cluster")
        yield* manage(here, "PUT", channel, {})
        const ada = yield* newPlayer(there, "Ada")
        const bob = yield* newPlayer(here, "Bob")
        const { roomId } = yield* openRoom([bob])
        for (const { socket } of [ada, bob]) {
          yield* socket.request({ t: "join", roomId })
          yield* socket.request({ t: "channelJoin", channel })
        }

        for (const [where, player, displayName] of [
          [here, ada, "Countess"],
          [there, bob, "Robert"]
        ] as const) {
          yield* rename(where, player, displayName)
          for (const member of [ada, bob]) {
            assert.deepStrictEqual(yield* takeUpdates(member), { id: player.id, displayName })
          }
        }
        // The name that a player has already is no change.
        yield* rename(there, bob, "Robert")
        yield* rename(there, ada, "Lovelace")
        for (const member of [ada, bob]) {
          assert.deepStrictEqual(yield* takeUpdates(member), {
            id: ada.id,
            displayName: "Lovelace"
          })
        }

        const cleo = yield* newPlayer(there, "Cleo")
        yield* cleo.socket.request({ t: "join", roomId })
        yield* cleo.socket.request({ t: "channelJoin", channel })
        const names = ["Robert", "Lovelace", "Cleo"]
        const { room } = yield* cleo.socket.next("room_joined")
        assert.sameMembers(namesOf(at(room, "players")), names)
        const { members } = yield* cleo.socket.next("channel_joined")
        assert.sameMembers(namesOf(members), names)

        // The connection has the new name, too.
        yield* ada.socket.request({ t: "leave" })
        yield* ada.socket.request({ t: "create", mode: "default" })
        const own = yield* ada.socket.next(
          "room_joined",
          (event) => at(event, "room", "id") !== roomId
        )
        assert.deepStrictEqual(namesOf(at(own, "room", "players")), ["Lovelace"])

        const eve = yield* guest(there, "Eve")
        const native = yield* connectNative(there.url)
        const stream = yield* native.open({ "x-svc-key": there.secretKey, "x-svc-player": eve.id })
        assert.strictEqual(yield* native.call("channelJoin", { channel }), "ok")
        yield* native.socket.send({ _tag: "Ack", requestId: stream })
        yield* rename(here, bob, "Bob")
        assert.deepStrictEqual(yield* takeUpdates(bob), { id: bob.id, displayName: "Bob" })
        const update = `{"t":"player_updated","channel":"${channel}","player":{"id":"${bob.id}"`
        yield* Effect.suspend(() =>
          JSON.stringify(native.socket.received).includes(update)
            ? Effect.void
            : Effect.fail(`No update: ${JSON.stringify(native.socket.received)}`)
        ).pipe(Effect.retry({ schedule: Schedule.spaced(20), times: 500 }))
      }).pipe(Effect.provide(DatabaseLive), Effect.scoped)
  )
})
