/**
 * What two runners decide at the same moment about one voice call.
 *
 * @module-tag long
 */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { at, authenticate, guest, type OnlinePlayer, type TestTarget } from "#testing/players"
import { errorCode, manage } from "../../support/channel-calls.ts"
import { TwoRunners } from "../../support/two-runners.ts"
import {
  awaitCall,
  enableVoice,
  joinCall,
  newMember,
  voiceChannel
} from "../../support/voice-calls.ts"
import { eventually } from "../../support/voice-peer.ts"

const rounds = 4
const p2p = { maxMembers: 8, voice: { mode: "p2p", relayOnly: false } }

const isOpen = ({ socket }: OnlinePlayer): boolean => socket.ws.readyState === socket.ws.OPEN

/** Connects the player and joins, without waiting for any answer. One of two connections is closed. */
const joinAt = Effect.fnUntraced(function* (
  target: TestTarget,
  player: Parameters<typeof authenticate>[1],
  channel: string
) {
  const online = yield* authenticate(target, player)
  const { socket } = online
  yield* Effect.raceFirst(Effect.asVoid(socket.next("welcome")), Effect.asVoid(socket.closed))
  for (const [rid, t] of [
    ["channel", "channelJoin"],
    ["voice", "voiceJoin"]
  ] as const) {
    if (isOpen(online)) yield* socket.send({ t, rid, channel })
  }
  return online
})

const live = { timeout: "120 seconds", excludeTestServices: true } as const

layer(TwoRunners.layerWith({ SVC_VOICE_UDP_PORTS: "0" }), live)(
  "a voice call of two runners",
  (it) => {
    it.effect(
      "keeps one voice session of a player who joins a call on two runners at the same moment",
      () =>
        Effect.gen(function* () {
          const { at1, at2 } = yield* TwoRunners
          yield* enableVoice(at1)
          for (let round = 0; round < rounds; round++) {
            const channel = yield* voiceChannel(at1, p2p)
            const bob = yield* newMember(at1, channel)
            yield* joinCall(bob, channel)
            const player = yield* guest(at1)
            const both = yield* Effect.forEach(
              round % 2 === 0 ? [at1, at2] : [at2, at1],
              (target) => joinAt(target, player, channel),
              { concurrency: "unbounded" }
            )
            yield* eventually(() => both.filter(isOpen).length === 1, "one connection stays")
            const ada = both.find(isOpen) ?? (yield* Effect.die("nobody"))
            const reply = yield* ada.socket.next("reply", ({ rid }) => rid === "voice")
            if (reply["ok"] !== true) yield* ada.socket.request({ t: "channelJoin", channel })
            const data = reply["ok"] === true ? reply["data"] : yield* joinCall(ada, channel)
            yield* awaitCall(bob, [bob, ada])
            const session = String(at(data, "session"))
            const state = () => bob.socket.received.findLast(({ t }) => t === "voice_state")
            yield* eventually(
              () => JSON.stringify(state()).includes(session),
              "bob sees ada's session"
            )
            yield* joinCall(bob, channel, { session: at(state(), "members", 0, "session") })
            yield* awaitCall(bob, [bob, ada])
            assert.include(JSON.stringify(state()), session)
          }
        })
    )

    it.effect(
      "starts a voice call in the new mode of its channel, or refuses the change with voice_in_use",
      () =>
        Effect.gen(function* () {
          const { at1, at2 } = yield* TwoRunners
          yield* enableVoice(at1)
          for (let round = 0; round < rounds; round++) {
            const channel = yield* voiceChannel(at1, p2p)
            const ada = yield* newMember(at2, channel)
            const change = manage(at1, "PUT", channel, { voice: { mode: "sfu" } })
            const join = ada.socket.request({ t: "voiceJoin", channel })
            const [changed, joined] = yield* Effect.all([change, join], { concurrency: 2 })
            const seen = JSON.stringify([changed.body, joined])
            const mode = at(joined, "data", "mode")
            if (changed.status === 200) {
              if (mode === undefined)
                assert.strictEqual(errorCode(joined), "voice_unavailable", seen)
              else assert.strictEqual(mode, "sfu", seen)
            } else {
              assert.strictEqual(at(changed.body, "error", "code"), "voice_in_use", seen)
              assert.strictEqual(mode, "p2p", seen)
            }
            const { body } = yield* manage(at2, "GET", channel)
            const kept = changed.status === 200 ? "sfu" : "p2p"
            assert.strictEqual(at(body, "channel", "voice", "mode"), kept, seen)
          }
        })
    )
  }
)
