/** Threats to sockets (spec sections 4.4, 4.5 and 8): every limit of a frame at n - 1, n and n + 1. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { channels, rooms, socket as sockets } from "#rpc/limits"
import { TestApp } from "#testing/app"
import { at, configure, newPlayer } from "#testing/players"
import { AppLive } from "../support/service.ts"

/** JSON of so many bytes, of one and of two bytes a character. */
const ascii = (bytes: number) => "x".repeat(bytes - 2)
const wide = (bytes: number) => `${"é".repeat((bytes - 2) >> 1)}${"x".repeat(bytes % 2)}`

/** An object whose JSON has so many bytes. */
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
const large = "payload_too_large"
const full = "state_too_large"

/** What a member of a peer-to-peer room, who owns a channel, may say. */
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
    code: large,
    frame: (size) => ({ t: "send", type: "x", data: ascii(size) })
  },
  {
    name: "the data of send in UTF-8",
    n: 16 * 1024,
    code: large,
    frame: (size) => ({ t: "send", type: "x", data: wide(size) })
  },
  {
    name: "the receivers of send",
    n: rooms.sendTargetsMax,
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
    code: large,
    frame: (size, { other }) => ({ t: "signal", to: other, kind: "offer", data: ascii(size) })
  },
  {
    name: "the data of signal in UTF-8",
    n: 8 * 1024,
    code: large,
    frame: (size, { other }) => ({ t: "signal", to: other, kind: "offer", data: wide(size) })
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
    code: large,
    frame: (size, { channel }) => ({ t: "channelSend", channel, type: "x", data: ascii(size) })
  },
  {
    name: "the bytes of a player's state",
    n: rooms.playerStateMaxBytes,
    code: full,
    frame: (size) => ({ t: "setMyState", patch: object(size) })
  },
  {
    name: "the keys of a patch's outcome",
    n: rooms.stateKeysMax - 1,
    code: full,
    frame: (size) => ({ t: "setMyState", patch: { ...members(size), a: 1 } })
  },
  {
    name: "the characters of a key",
    n: rooms.stateKeyMaxCharacters,
    code: full,
    frame: (size) => ({ t: "setMyState", patch: { ["k".repeat(size)]: null } })
  },
  {
    name: "the seconds of a mute",
    n: channels.muteSecondsMax,
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
    n: channels.banSecondsMax,
    code: invalid,
    frame: (seconds, { channel }) => ({
      t: "channelModerate",
      channel,
      op: "ban",
      playerId: "pl_nobody",
      seconds
    })
  }
]

layer(AppLive, { timeout: "60 seconds", excludeTestServices: true })("a frame", (it) => {
  it.effect(
    "is taken up to each of its limits, and not one beyond",
    () =>
      Effect.gen(function* () {
        const app = yield* TestApp
        const features = { multiplayer: true, realtimeChannels: true }
        const mesh = { key: "mesh", transport: "p2p", p2p: { relayOnly: false } }
        yield* configure(app, { features, multiplayer: { modes: [mesh] } })
        const other = yield* newPlayer(app)
        const made = yield* other.socket.ask({ t: "create", mode: "mesh" })
        const wrong: Array<string> = []
        const reach = Effect.fnUntraced(function* ({ code, frame, n, name }: Limit) {
          const { socket } = yield* newPlayer(app)
          yield* socket.ask({ t: "join", roomId: at(made, "data", "roomId") })
          const created = yield* socket.ask({ t: "channelCreate" })
          const context = { other: other.id, channel: String(at(created, "data", "channel")) }
          for (const size of [n - 1, n, n + 1]) {
            const reply = yield* socket.ask(frame(size, context))
            const told = at(reply, "error", "code")
            if (told !== (size > n ? code : undefined)) wrong.push(`${name}, ${size}: ${told}`)
          }
          yield* socket.ask({ t: "leave" })
        })
        // As many as find a seat beside the other.
        yield* Effect.forEach(limits, (limit) => Effect.scoped(reach(limit)), { concurrency: 3 })
        assert.deepStrictEqual(wrong, [])
        assert.strictEqual((yield* other.socket.ask({ t: "ping" }))["ok"], true)
      }),
    60_000
  )

  it.effect("has a rid of at most 64 characters, and 64 KiB in all", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      for (const size of [-1, 0, 1]) {
        const { socket } = yield* newPlayer(app)
        const rid = "r".repeat(sockets.ridMaxCharacters + size)
        yield* socket.say({ t: "ping", rid })
        const answer = yield* socket.next(size > 0 ? "warn" : "reply")
        assert.strictEqual(answer["rid"], size > 0 ? undefined : rid)
        const head = '{"t":"ping","rid":"r","pad":"'
        const pad = "x".repeat(sockets.frameMaxBytes + size - head.length - 2)
        yield* socket.sayText(`${head}${pad}"}`)
        if (size > 0) assert.strictEqual((yield* socket.closed).code, 1009)
        else yield* socket.next("reply", (frame) => frame["rid"] === "r")
      }
    })
  )
})
