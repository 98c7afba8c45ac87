/**
 * What each realtime feature promises on two runner processes, on one pair of them. Faults and races of the
 * features are in their folders.
 */
import { assert, layer } from "@effect/vitest"
import { Clock, Effect, Layer } from "effect"
import { Reactivity } from "effect/reactivity"
import { at, authenticate, newPlayer, type OnlinePlayer } from "#testing/players"
import { connectAnonymously, errorCode, manage, moderate } from "../support/channel-calls.ts"
import { assertDelivery, twoMembers } from "../support/channel-members.ts"
import { configureModes, matchBurst } from "../support/match-arrivals.ts"
import { ban, codeOf, play } from "../support/moderation-calls.ts"
import { openRoom } from "../support/opened-room.ts"
import { closedByRevocation, makeKeys, openSockets } from "../support/security/revoked-sockets.ts"
import { live } from "../support/security/security-harness.ts"
import { TwoRunners } from "../support/two-runners.ts"
import {
  awaitCall,
  enableVoice,
  joinCall,
  newMember,
  voiceChannel
} from "../support/voice-calls.ts"

const median = (numbers: ReadonlyArray<number>): number =>
  numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN

const rounds = 10

const p2p = { maxMembers: 8, voice: { mode: "p2p", relayOnly: false } }

const Runners = TwoRunners.layerWith({ SVC_SIGNUPS: "open", SVC_VOICE_UDP_PORTS: "0" })

layer(Layer.merge(Runners, Reactivity.layer), live)("features on two runners", (it) => {
  it.effect("reaches, counts and moderates members of a channel on both runners", () =>
    Effect.gen(function* () {
      const { far, farAt, name, near, nearAt } = yield* twoMembers("open", { open: true })
      yield* assertDelivery(near, far, name, "there")
      yield* assertDelivery(far, near, name, "back")
      const listener = yield* connectAnonymously(farAt)
      yield* listener.request({ t: "channelJoin", channel: name })
      for (const target of [nearAt, farAt]) {
        const sent = yield* manage(target, "POST", `${name}/messages`, { type: "news" })
        assert.deepStrictEqual(sent.body, { delivered: 3 })
        yield* listener.next("channel_message", (frame) => frame["type"] === "news")
      }
      yield* moderate(nearAt, name, { op: "mute", playerId: far.id })
      assert.strictEqual((yield* far.socket.next("channel_self"))["canSend"], false)
      const muted = yield* far.socket.request({ t: "channelSend", channel: name, type: "x" })
      assert.strictEqual(errorCode(muted), "muted")
      yield* moderate(farAt, name, { op: "ban", playerId: near.id })
      assert.strictEqual((yield* near.socket.next("channel_closed"))["reason"], "banned")
      const left = yield* listener.next("channel_player_left")
      assert.deepInclude(left, { playerId: near.id, reason: "banned" })
      // One after the other: the second connection of a player replaces the first.
      const isRefused = Effect.fnUntraced(function* ({ socket }: OnlinePlayer) {
        const back = yield* socket.request({ t: "channelJoin", channel: name })
        assert.strictEqual(errorCode(back), "channel_banned")
      })
      yield* isRefused(near)
      const elsewhere = yield* authenticate(farAt, near)
      yield* elsewhere.socket.next("welcome")
      yield* isRefused(elsewhere)
    })
  )

  it.effect(
    "closes the socket of a banned player on any runner, and ends the seat and the membership",
    () =>
      Effect.gen(function* () {
        const { at1, at2 } = yield* TwoRunners
        const name = "lobby"
        yield* manage(at1, "PUT", name, {})
        const host = yield* newPlayer(at1, "Host")
        const { roomId } = yield* openRoom([host])
        yield* host.socket.request({ t: "channelJoin", channel: name })
        const afterCall: Array<number> = []
        const afterAnswer: Array<number> = []
        for (let round = 0; round < rounds; round++) {
          const [there, here] = round % 2 === 0 ? [at2, at1] : [at1, at2]
          const player = yield* newPlayer(there, "Player")
          yield* player.socket.request({ t: "join", roomId })
          yield* player.socket.request({ t: "channelJoin", channel: name })
          const called = yield* Clock.currentTimeMillis
          const [answered, closed] = yield* Effect.all(
            [
              Effect.andThen(ban(here, player.id), Clock.currentTimeMillis),
              Effect.andThen(player.socket.closed, (end) =>
                Effect.map(Clock.currentTimeMillis, (millis) => ({ ...end, millis }))
              )
            ],
            { concurrency: 2 }
          )
          assert.strictEqual(closed.code, 4003)
          afterCall.push(closed.millis - called)
          afterAnswer.push(closed.millis - answered)
          const left = yield* host.socket.next(
            "player_left",
            (one) => one["playerId"] === player.id
          )
          assert.strictEqual(left["reason"], "banned")
          const gone = yield* host.socket.next(
            "channel_player_left",
            (one) => one["playerId"] === player.id
          )
          assert.strictEqual(gone["reason"], "banned")
          for (const target of [at1, at2]) {
            const write = yield* play(target, player, "PATCH", "players/me", { displayName: "X" })
            assert.strictEqual(codeOf(write), "player_banned")
            const again = yield* authenticate(target, player)
            assert.strictEqual((yield* again.socket.closed).code, 4003)
          }
        }
        yield* Effect.log(
          `4003 after the ban's call: median ${median(afterCall)} ms, at most ` +
            `${Math.max(...afterCall)} ms; after its answer: median ${median(afterAnswer)} ms, at ` +
            `most ${Math.max(...afterAnswer)} ms (${rounds} bans)`
        )
      })
  )

  it.effect("opens 13 rooms of eight for 100 players who arrive at once", () =>
    Effect.gen(function* () {
      const { at1, at2 } = yield* TwoRunners
      yield* configureModes(at1)
      yield* matchBurst([at1, at2])
    })
  )

  it.effect("keeps one voice call of members on both runners", () =>
    Effect.gen(function* () {
      const { at1, at2 } = yield* TwoRunners
      yield* enableVoice(at1)
      const channel = yield* voiceChannel(at1, p2p)
      const ada = yield* newMember(at1, channel)
      const bob = yield* newMember(at2, channel)
      for (const player of [ada, bob]) yield* joinCall(player, channel)
      for (const player of [ada, bob]) yield* awaitCall(player, [ada, bob])
    })
  )

  it.effect(
    "closes the sockets of a revoked key over both endpoints on every runner, and no others",
    () =>
      Effect.gen(function* () {
        const { here, keys, newKey, there } = yield* makeKeys("dev-1@example.com")
        const millis: Array<number> = []
        const bystander = yield* openSockets(there, keys.publishableKey, keys.secretKey)
        for (const url of [here, there]) {
          const [publishable, secret] = yield* Effect.all([newKey("publishable"), newKey("secret")])
          const opened = yield* openSockets(url, publishable.plain, secret.plain)
          yield* publishable.revoke
          millis.push(yield* closedByRevocation(opened.publishable))
          assert.strictEqual(yield* opened.server.call("ping"), "ok")
          yield* secret.revoke
          const exit = yield* opened.server.about("Exit", opened.events)
          assert.strictEqual(at(exit, "exit", "cause", 0, "error", "_tag"), "invalid_key")
          millis.push(yield* closedByRevocation([opened.server.socket]))
        }
        assert.isBelow(Math.max(...millis), 1000, millis.join(", "))
        assert.strictEqual(yield* bystander.server.call("ping"), "ok")
        for (const { ws } of bystander.publishable) assert.strictEqual(ws.readyState, ws.OPEN)
      })
  )
})
