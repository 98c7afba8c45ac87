/** Limits of realtime frames: each is tested at n - 1, n and n + 1. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { channelLimits } from "#rpc/channels/limits"
import { frameMaxBytes } from "#rpc/client-limits"
import { ridMaxCharacters } from "#rpc/realtime"
import { roomLimits } from "#rpc/rooms/limits"
import { TestApp } from "#testing/app"
import { at, configure, newPlayer } from "#testing/players"
import { AppLive } from "../support/service.ts"
import { openRoom } from "../support/opened-room.ts"

/** A string whose JSON has `bytes` bytes: one byte per character, or two in UTF-8. */
const ascii = (bytes: number) => "x".repeat(bytes - 2)
const twoByte = (bytes: number) => `${"é".repeat((bytes - 2) >> 1)}${"x".repeat(bytes % 2)}`

/** An object whose JSON has `bytes` bytes. */
const object = (bytes: number) => ({ a: "x".repeat(bytes - '{"a":""}'.length) })

const members = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, 0]))

interface Limit {
  readonly name: string
  readonly n: number
  readonly code: string
  readonly frame: (size: number, context: Context) => object
}

interface Context {
  readonly other: string
  readonly channel: string
}

const invalid = "invalid_frame"
const tooLarge = "payload_too_large"
const stateFull = "state_too_large"

/** The limits for a member of a peer-to-peer room who owns a channel. */
const limits: ReadonlyArray<Limit> = [
  {
    name: "the type of send",
    n: 64,
    code: invalid,
    frame: (size) => ({ t: "send", type: "x".repeat(size) })
  },
  {
    name: "the data of send",
    n: 16 * 1024,
    code: tooLarge,
    frame: (size) => ({ t: "send", type: "x", data: ascii(size) })
  },
  {
    name: "the data of send in UTF-8",
    n: 16 * 1024,
    code: tooLarge,
    frame: (size) => ({ t: "send", type: "x", data: twoByte(size) })
  },
  {
    name: "the receivers of send",
    n: roomLimits.sendTargetsMax,
    code: invalid,
    frame: (size, { other }) => ({
      t: "send",
      type: "x",
      to: Array.from({ length: size }, () => other)
    })
  },
  {
    name: "the data of signal",
    n: 8 * 1024,
    code: tooLarge,
    frame: (size, { other }) => ({ t: "signal", to: other, kind: "offer", data: ascii(size) })
  },
  {
    name: "the data of signal in UTF-8",
    n: 8 * 1024,
    code: tooLarge,
    frame: (size, { other }) => ({ t: "signal", to: other, kind: "offer", data: twoByte(size) })
  },
  {
    name: "the type of channelSend",
    n: 64,
    code: invalid,
    frame: (size, { channel }) => ({ t: "channelSend", channel, type: "x".repeat(size) })
  },
  {
    name: "the data of channelSend",
    n: 16 * 1024,
    code: tooLarge,
    frame: (size, { channel }) => ({ t: "channelSend", channel, type: "x", data: ascii(size) })
  },
  {
    name: "the bytes of a player's state",
    n: roomLimits.playerStateMaxBytes,
    code: stateFull,
    frame: (size) => ({ t: "setMyState", patch: object(size) })
  },
  {
    name: "the keys of a patch's outcome",
    n: roomLimits.stateKeysMax - 1,
    code: stateFull,
    frame: (size) => ({ t: "setMyState", patch: { ...members(size), a: 1 } })
  },
  {
    name: "the characters of a key",
    n: roomLimits.stateKeyMaxCharacters,
    code: stateFull,
    frame: (size) => ({ t: "setMyState", patch: { ["k".repeat(size)]: null } })
  },
  {
    name: "the seconds of a mute",
    n: channelLimits.muteSecondsMax,
    code: invalid,
    frame: (seconds, { channel, other }) => ({
      t: "channelModerate",
      channel,
      op: "mute",
      playerId: other,
      seconds
    })
  },
  {
    name: "the seconds of a ban",
    n: channelLimits.banSecondsMax,
    code: invalid,
    frame: (seconds, { channel }) => ({
      t: "channelModerate",
      channel,
      op: "ban",
      playerId: `pl_${"0".repeat(26)}`,
      seconds
    })
  }
]

layer(AppLive, { timeout: "120 seconds", excludeTestServices: true })("a frame", (it) => {
  it.effect(
    "accepts a frame up to each of its limits and refuses it beyond",
    () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        const features = { multiplayer: true, realtimeChannels: true }
        const mesh = { key: "mesh", transport: "p2p", p2p: { relayOnly: false } }
        yield* configure(app, { features, multiplayer: { modes: [mesh] } })
        const other = yield* newPlayer(app)
        const { roomId } = yield* openRoom([other], { mode: "mesh" })
        const wrong: Array<string> = []
        const test = Effect.fnUntraced(function* ({ code, frame, n, name }: Limit) {
          const { socket } = yield* newPlayer(app)
          yield* socket.request({ t: "join", roomId })
          const created = yield* socket.request({ t: "channelCreate" })
          const context = { other: other.id, channel: String(at(created, "data", "channel")) }
          for (const size of [n - 1, n, n + 1]) {
            const reply = yield* socket.request(frame(size, context))
            const refusal = at(reply, "error", "code")
            if (refusal !== (size > n ? code : undefined)) {
              wrong.push(`${name}, ${size}: ${refusal}`)
            }
          }
          yield* socket.request({ t: "leave" })
        })
        // No more players at once than the room has seats for.
        yield* Effect.forEach(limits, (limit) => Effect.scoped(test(limit)), { concurrency: 3 })
        assert.deepStrictEqual(wrong, [])
        assert.strictEqual((yield* other.socket.request({ t: "ping" }))["ok"], true)
      }),
    60_000
  )

  it.effect("accepts a rid of 64 characters and a frame of 64 KiB, and no more", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      for (const size of [-1, 0, 1]) {
        const { socket } = yield* newPlayer(app)
        const rid = "r".repeat(ridMaxCharacters + size)
        yield* socket.send({ t: "ping", rid })
        const answer = yield* socket.next(size > 0 ? "warn" : "reply")
        assert.strictEqual(answer["rid"], size > 0 ? undefined : rid)
        const head = '{"t":"ping","rid":"r","pad":"'
        const pad = "x".repeat(frameMaxBytes + size - head.length - 2)
        yield* socket.sendText(`${head}${pad}"}`)
        if (size > 0) assert.strictEqual((yield* socket.closed).code, 1009)
        else yield* socket.next("reply", (frame) => frame["rid"] === "r")
      }
    })
  )
})
