/** Voice calls on two runner processes: members on both, and the loss of the runner with the call. */
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { poolLayer } from "#sql/database"
import { TestDatabase } from "#testing/app"
import { at, configure, type TestTarget } from "#testing/players"
import { startCluster } from "#testing/runners"
import type { ReceivedFrame } from "#testing/socket-client"
import { errorCode, manage } from "../../support/channel-calls.ts"
import { DatabaseLive } from "../../support/service.ts"
import { awaitCall, joinCall, newMember } from "../../support/voice-calls.ts"
import { connectVoice, eventually } from "../../support/voice-peer.ts"

/** A call with a member on each of two runners. */
const twoMembers = Effect.gen(function* () {
  const { url: databaseUrl } = yield* TestDatabase
  const { runners, target } = yield* startCluster({
    databaseUrl,
    size: 2,
    env: { SVC_VOICE_UDP_PORTS: "0" }
  })
  const [first, second] = runners
  if (first === undefined || second === undefined) return yield* Effect.die("No cluster")
  yield* configure(target, { features: { realtimeChannels: true, voice: true } })
  const channel = "team"
  const voice = { mode: "p2p", relayOnly: false }
  yield* manage(target, "PUT", channel, { maxMembers: 8, voice })
  const ada = yield* newMember({ ...target, url: first.url }, channel)
  const bob = yield* newMember({ ...target, url: second.url }, channel)
  for (const player of [ada, bob]) yield* joinCall(player, channel)
  for (const player of [ada, bob]) yield* awaitCall(player, [ada, bob])
  return { channel, ada, bob, runners, target }
})

/** Makes channels until one of each node has one; returns the name of one by its node. */
const channelsByNode = Effect.fnUntraced(function* (target: TestTarget, nodes: number) {
  const { url } = yield* TestDatabase
  const names = new Map<string, string>()
  yield* Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    for (let made = 0; names.size < nodes; made++) {
      const name = `team-${made}`
      yield* manage(target, "PUT", name, {
        maxMembers: 8,
        voice: { mode: "p2p", relayOnly: false }
      })
      const [row] = yield* sql`select node from channels where name = ${name}`
      names.set(String(row?.["node"]), name)
    }
  }).pipe(Effect.provide(poolLayer({ url: Redacted.make(url), connections: 1 })))
  return names
})

const olderRelease = fileURLToPath(new URL("../../support/main-without-voice.ts", import.meta.url))

describe("a deployment beside runners of a release without voice", { tags: "long" }, () => {
  it.live("answers voice_unavailable on runners without voice, and holds calls on others", () =>
    Effect.gen(function* () {
      const { url: databaseUrl } = yield* TestDatabase
      const { joinAs, runners, target } = yield* startCluster({ databaseUrl, size: 1 })
      const older = yield* joinAs(olderRelease)
      yield* configure(target, { features: { realtimeChannels: true, voice: true } })
      const names = yield* channelsByNode(target, 2)
      const channels = [runners[0]?.node, older.node].map((node) => names.get(node ?? "") ?? "")
      for (const url of [target.url, older.url]) {
        const outcomes = yield* Effect.forEach(
          channels,
          Effect.fnUntraced(function* (channel) {
            const { socket } = yield* newMember({ ...target, url }, channel)
            const reply = yield* socket.request({ t: "voiceJoin", channel })
            return reply["ok"] === true ? "joined" : errorCode(reply)
          })
        )
        assert.deepStrictEqual(outcomes, ["joined", "voice_unavailable"], url)
      }
    }).pipe(Effect.provide(DatabaseLive), Effect.scoped)
  )
})

describe("a voice call on two runners", { tags: "long" }, () => {
  it.live("connects members of a voice call on two runners, in either mode", () =>
    Effect.gen(function* () {
      const { ada, bob, channel, target } = yield* twoMembers
      for (const [from, to] of [
        [ada, bob],
        [bob, ada]
      ] as const) {
        const signal = { t: "voiceSignal", channel, to: to.id, kind: "offer", data: { sdp: "v=0" } }
        const sent = yield* from.socket.request(signal)
        assert.deepStrictEqual(sent["data"], { delivered: 1 })
        const received = yield* to.socket.next("voice_signal")
        assert.deepInclude(received, { from: from.id, data: { sdp: "v=0" } })
      }
      const relayed = "stage"
      yield* manage(target, "PUT", relayed, { voice: { mode: "sfu" } })
      const peers = yield* Effect.forEach(
        [ada, bob],
        Effect.fnUntraced(function* (player) {
          yield* player.socket.request({ t: "channelJoin", channel: relayed })
          const { peer, session } = yield* connectVoice(player, relayed)
          yield* player.socket.request({ t: "voicePublish", channel: relayed, session, on: true })
          return peer
        })
      )
      for (const peer of peers) peer.speak()
      yield* eventually(() => peers.every((peer) => peer.total() > 10), "each hears the other")
    }).pipe(Effect.provide(DatabaseLive), Effect.scoped)
  )

  it.live(
    "ends a voice call on a killed runner for members on the other, who can join it again",
    () =>
      Effect.gen(function* () {
        const { ada, bob: onSecond, channel, runners } = yield* twoMembers
        const { url } = yield* TestDatabase
        const node = yield* Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          const [row] = yield* sql`select node from channels where name = ${channel}`
          return row?.["node"]
        }).pipe(Effect.provide(poolLayer({ url: Redacted.make(url), connections: 1 })))
        const [first, second] = runners
        const [owner, bob] = first?.node === node ? [first, onSecond] : [second, ada]
        yield* owner?.kill ?? Effect.die("No owner")
        const { received } = bob.socket
        const closed = yield* bob.socket.next("voice_closed")
        assert.strictEqual(closed["reason"], "unavailable")
        const session = String(at(yield* joinCall(bob, channel), "session"))
        const isListed = (frame: ReceivedFrame) => JSON.stringify(frame).includes(session)
        yield* eventually(
          () => received.some((frame) => frame.t === "voice_state" && isListed(frame)),
          "bob is in the call again"
        )
      }).pipe(Effect.provide(DatabaseLive), Effect.scoped)
  )
})
