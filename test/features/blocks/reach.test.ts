/** Blocks in what is alive: rooms and channels, also those that a player was in before. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestApp } from "#testing/app"
import { at, configure, guest, goOnline, newPlayer } from "#testing/players"
import { block, endBlock, untilInChannel, untilInRoom } from "../../support/block-calls.ts"
import { manage, uniqueName } from "../../support/channel-calls.ts"
import { granted, openRoom } from "../../support/opened-room.ts"
import { AppLive } from "../../support/service.ts"

const threePlayers = Effect.gen(function* () {
  const app = yield* TestApp
  return [
    yield* newPlayer(app, "Ada"),
    yield* newPlayer(app, "Bob"),
    yield* newPlayer(app, "Cat")
  ] as const
})

layer(AppLive, { timeout: "120 seconds", excludeTestServices: true })("a block", (it) => {
  it.effect(
    "holds messages back in both directions of a room that both are in, until it ends",
    () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        const [ada, bob] = yield* threePlayers
        yield* openRoom([ada, bob])
        yield* untilInRoom(true, bob, ada)
        yield* block(app, ada, bob)
        yield* untilInRoom(false, bob, ada)
        yield* untilInRoom(false, ada, bob)
        yield* endBlock(app, ada, bob.id)
        yield* untilInRoom(true, bob, ada)
        yield* untilInRoom(true, ada, bob)
      })
  )

  it.effect(
    "holds messages back in both directions of a channel that both are in, until it ends",
    () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        yield* configure(app, { features: { multiplayer: true, realtimeChannels: true } })
        const [ada, bob, cat] = yield* threePlayers
        const channel = yield* uniqueName
        yield* manage(app, "PUT", channel, {})
        for (const player of [ada, bob, cat]) yield* granted(player, { t: "channelJoin", channel })
        yield* untilInChannel(true, channel, [bob, ada, cat])
        yield* block(app, ada, bob)
        yield* untilInChannel(false, channel, [bob, ada, cat])
        yield* untilInChannel(false, channel, [ada, bob, cat])
        yield* endBlock(app, ada, bob.id)
        yield* untilInChannel(true, channel, [bob, ada, cat])
        yield* untilInChannel(true, channel, [ada, bob, cat])
      })
  )

  it.effect(
    "made before the connection counts from the first message, and counts as received",
    () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        const ada = yield* guest(app)
        const bob = yield* newPlayer(app)
        yield* block(app, ada, bob)
        const online = yield* goOnline(app, ada)
        const cat = yield* newPlayer(app)
        yield* openRoom([cat, online, bob])
        const to = [ada.id, cat.id]
        assert.deepStrictEqual(at(yield* granted(bob, { t: "send", type: "chat", to }), "data"), {
          delivered: 2
        })
        yield* cat.socket.next("message")
        yield* granted(bob, { t: "setMyState", patch: { sent: true } })
        yield* online.socket.next("player_state")
        assert.notInclude(
          online.socket.received.map(({ t }) => t),
          "message"
        )
      })
  )

  it.effect(
    "hides the room of a host from whom it has blocked, by id and code, but not from members",
    () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        const [ada, bob, cat] = yield* threePlayers
        const { code, roomId } = yield* openRoom([ada, cat])
        yield* block(app, ada, bob)
        yield* block(app, ada, cat)
        const none = yield* bob.socket.request({ t: "join", roomId: `rm_${"0".repeat(26)}` })
        assert.strictEqual(at(none, "error", "code"), "room_not_found")
        for (const room of [{ roomId }, { code }]) {
          const refused = yield* bob.socket.request({ t: "join", ...room })
          const { rid: _, ...answer } = refused
          const { rid: __, ...unknown } = none
          assert.deepStrictEqual(answer, unknown)
        }
        const back = yield* goOnline(app, cat)
        yield* granted(back, { t: "resume", roomId })
        yield* granted(bob, { t: "create", mode: "default" })
      })
  )

  it.effect("lets a player join whom a member other than the host has blocked", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const [ada, bob, cat] = yield* threePlayers
      yield* block(app, cat, bob)
      yield* openRoom([ada, cat, bob])
      yield* untilInRoom(true, bob, ada)
      yield* untilInRoom(false, bob, cat)
    })
  )
})
