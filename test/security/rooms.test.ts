/**
 * Threats to rooms (spec section 4.4): every act of a room from every role, over real sockets; frames
 * that pretend to come from elsewhere; floods; and random sequences against the rules in a few lines.
 */
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import * as fc from "fast-check"
import type { RoomCommand, RoomSettings, RoomState } from "#entities/room/model"
import { TestApp } from "#testing/app"
import { at, configure, newPlayer } from "#testing/players"
import type { SocketClient } from "#testing/socket-client"
import { anonymous, code } from "../support/channel-calls.ts"
import { ban } from "../support/moderation-calls.ts"
import { RoomWorld } from "../support/room-harness.ts"
import { AppLive } from "../support/service.ts"

const modes = [{ key: "mesh", transport: "p2p", maxPlayers: 4, p2p: { relayOnly: false } }]

interface Scene {
  readonly roomId: string
  readonly host: string
}

/** What may be done to a locked peer-to-peer room whose state is its host's. */
const acts: Readonly<Record<string, (scene: Scene) => object>> = {
  send: () => ({ t: "send", type: "x" }),
  sendTo: ({ host }) => ({ t: "send", type: "x", to: [host] }),
  setState: () => ({ t: "setState", patch: { a: 1 } }),
  setMyState: () => ({ t: "setMyState", patch: { a: 1 } }),
  lock: () => ({ t: "lock", locked: true }),
  signal: ({ host }) => ({ t: "signal", to: host, kind: "offer" }),
  iceServers: () => ({ t: "iceServers" }),
  resume: ({ roomId }) => ({ t: "resume", roomId }),
  join: ({ roomId }) => ({ t: "join", roomId }),
  leave: () => ({ t: "leave" })
}

const outside = Object.fromEntries(Object.keys(acts).map((act) => [act, "not_in_room"]))

/** How each role is refused; undefined: it is let through. */
const refusals: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  host: {},
  member: { setState: "host_only", lock: "host_only" },
  "one who left": { ...outside, resume: "resume_expired", join: "room_locked" },
  "a stranger": { ...outside, resume: "resume_expired", join: "room_locked" },
  "a player of the other environment": {
    ...outside,
    resume: "resume_expired",
    join: "room_not_found"
  },
  anonymous: Object.fromEntries(Object.keys(acts).map((act) => [act, "player_required"]))
}

const scene = Effect.gen(function* () {
  const app = yield* TestApp
  for (const target of [app, app.production]) {
    yield* configure(target, { features: { multiplayer: true }, multiplayer: { modes } })
  }
  const host = yield* newPlayer(app, "Host")
  const create = { t: "create", mode: "mesh", hostOnlyState: true }
  const made = yield* host.socket.ask(create)
  const roomId = String(at(made, "data", "roomId"))
  const member = yield* newPlayer(app, "Member")
  const left = yield* newPlayer(app, "Left")
  for (const { socket } of [member, left]) yield* socket.ask({ t: "join", roomId })
  yield* left.socket.ask({ t: "leave" })
  yield* host.socket.ask({ t: "lock", locked: true })
  const stranger = yield* newPlayer(app, "Stranger")
  const foreigner = yield* newPlayer(app.production, "Foreigner")
  const sockets: Readonly<Record<string, SocketClient>> = {
    anonymous: yield* anonymous(app),
    "a player of the other environment": foreigner.socket,
    "a stranger": stranger.socket,
    "one who left": left.socket,
    member: member.socket,
    host: host.socket
  }
  return { app, host, member, roomId, sockets }
})

const types = ({ heard }: SocketClient) => heard.map(({ t }) => t)

layer(AppLive, { timeout: "60 seconds", excludeTestServices: true })("rooms", (it) => {
  it.effect("let each role do what is its own, and nothing else", () =>
    Effect.gen(function* () {
      const { host, roomId, sockets } = yield* scene
      const wrong: Array<string> = []
      for (const [role, socket] of Object.entries(sockets)) {
        const quiet = types(host.socket).length
        for (const [act, frame] of Object.entries(acts)) {
          const told = code(yield* socket.ask(frame({ roomId, host: host.id })))
          if (told !== refusals[role]?.[act]) wrong.push(`${role}, ${act}: ${String(told)}`)
        }
        if (role === "member" || role === "host") continue
        yield* host.socket.ask({ t: "ping" })
        assert.deepStrictEqual(types(host.socket).slice(quiet), ["reply"], role)
      }
      assert.deepStrictEqual(wrong, [])
    })
  )

  it.effect("tell who says something by the socket, whatever its frame pretends", () =>
    Effect.gen(function* () {
      const { app, host, member, roomId } = yield* scene
      const stranger = yield* newPlayer(app, "Stranger")
      yield* stranger.socket.ask({ t: "create", mode: "mesh" })
      const elsewhere = { roomId, room: roomId, code: "x", environmentId: "env_1" }
      const as = { from: host.id, playerId: host.id, hostId: host.id, at: 1, ...elsewhere }
      const frames = [
        { t: "send", type: "forged", ...as },
        { t: "setMyState", patch: { forged: true }, ...as },
        { t: "signal", kind: "offer", to: host.id, ...as }
      ]
      for (const frame of frames) {
        yield* stranger.socket.ask(frame)
        assert.isUndefined(code(yield* member.socket.ask(frame)), frame.t)
      }
      assert.strictEqual((yield* host.socket.next("message"))["from"], member.id)
      assert.strictEqual((yield* host.socket.next("player_state"))["playerId"], member.id)
      assert.strictEqual((yield* host.socket.next("signal"))["from"], member.id)
      yield* host.socket.ask({ t: "ping" })
      const text = JSON.stringify(host.socket.heard)
      assert.notInclude(text, stranger.id)
      assert.strictEqual(types(host.socket).filter((t) => t === "message").length, 1)
    })
  )

  it.effect("take nothing from a player who is banned, and do not take it in again", () =>
    Effect.gen(function* () {
      const { app, host, member, roomId } = yield* scene
      yield* host.socket.ask({ t: "lock", locked: false })
      yield* ban(app, member.id)
      assert.strictEqual((yield* member.socket.closed).code, 4003)
      assert.strictEqual((yield* host.socket.next("player_left"))["reason"], "left")
      const gone = yield* host.socket.next("player_left")
      assert.deepInclude(gone, { playerId: member.id, reason: "banned" })
      const again = yield* app.online(member)
      yield* again.socket.say({ t: "join", roomId, rid: "j" })
      assert.strictEqual((yield* again.socket.closed).code, 4003)
      yield* host.socket.ask({ t: "ping" })
      assert.notInclude(types(again.socket), "room_joined")
    })
  )

  it.effect("close 4029 on a flood of signals, and the others go on", () =>
    Effect.gen(function* () {
      const { host, member, sockets } = yield* scene
      const signal = { t: "signal", to: host.id, kind: "candidate", data: "x" }
      for (let sent = 0; sent < 1000; sent++) yield* member.socket.say(signal)
      assert.strictEqual((yield* member.socket.closed).code, 4029)
      assert.isUndefined(code(yield* host.socket.ask({ t: "setState", patch: { on: true } })))
      assert.strictEqual(
        code(yield* (sockets["a stranger"] ?? host.socket).ask({ t: "ping" })),
        undefined
      )
    })
  )
})

const player = fc.constantFrom("ann", "ben", "cat", "dan", "eve")

const step = fc.record({
  act: fc.constantFrom(
    ...(["join", "join", "resume", "leave", "drop", "banned", "send", "sendTo"] as const),
    ...(["setState", "setMyState", "lock", "unlock", "signal", "iceTransport"] as const)
  ),
  player,
  other: player
})
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never

/** What a step asks of the room. */
const commandOf = (room: RoomWorld, { act, other, player: playerId }: Step): RoomCommand => {
  switch (act) {
    case "join":
    case "resume":
      return { t: act, ...room.joiningPlayer(playerId) }
    case "leave":
    case "banned":
      return { t: "leave", playerId, reason: act === "leave" ? "left" : act }
    case "drop": {
      const connectionId = room.state.members.get(playerId)?.attachment?.connectionId ?? "none"
      return { t: "disconnect", playerId, connectionId, replaced: false }
    }
    case "send":
      return { t: "send", playerId, type: "x" }
    case "sendTo":
      return { t: "send", playerId, type: "x", to: [other, "nobody"] }
    case "setState":
    case "setMyState":
      return { t: act, playerId, patch: { [playerId]: room.now } }
    case "lock":
    case "unlock":
      return { t: "lock", playerId, locked: act === "lock" }
    case "signal":
      return { t: "signal", playerId, to: other, kind: "offer" }
    case "iceTransport":
      return { t: act, playerId }
  }
}

/** The rules: who may do what, by who has a seat and who is host. */
const ruling = (
  { hostId, locked, settings }: RoomState,
  seats: ReadonlySet<string>,
  { act, other, player: actor }: Step
): string => {
  const seated = seats.has(actor)
  if (act === "drop") return "granted"
  if (act === "resume") return seated ? "granted" : "resume_expired"
  if (act === "join") {
    if (seated) return "granted"
    if (locked) return "room_locked"
    if (seats.size < settings.maxPlayers) return "granted"
    return settings.p2p === null ? "room_full" : "p2p_room_full"
  }
  if (!seated) return "not_in_room"
  if (act === "lock" || act === "unlock") return hostId === actor ? "granted" : "host_only"
  if (act === "setState" && settings.hostOnlyState) {
    return hostId === actor ? "granted" : "host_only"
  }
  if (act !== "signal" && act !== "iceTransport") return "granted"
  if (settings.p2p === null) return "p2p_only"
  return act === "iceTransport" || seats.has(other) ? "granted" : "player_not_in_room"
}

const settings: fc.Arbitrary<Partial<RoomSettings>> = fc.record({
  hostOnlyState: fc.boolean(),
  maxPlayers: fc.constantFrom(2, 3, 4),
  p2p: fc.constantFrom(null, { relayOnly: true, maxPlayers: 4 })
})

describe("a room's roles", () => {
  it("are kept in 1,000 random sequences of acts by members and strangers", () => {
    fc.assert(
      fc.property(settings, fc.array(step, { minLength: 10, maxLength: 40 }), (terms, steps) => {
        const room = new RoomWorld(terms)
        const seats = new Set<string>()
        for (const one of steps) {
          const before = room.state
          const told = room.refusal(commandOf(room, one))
          assert.strictEqual(told, ruling(before, seats, one), JSON.stringify(one))
          if (told === "granted" && one.act === "join") seats.add(one.player)
          if (one.act === "leave" || one.act === "banned") seats.delete(one.player)
          assert.strictEqual(Array.from(room.state.members.keys()).join(), Array.from(seats).join())
          for (const [id, { playerState: values }] of room.state.members) {
            const mine = one.act === "setMyState" && id === one.player
            const earlier = before.members.get(id)
            if (!mine && earlier !== undefined) assert.strictEqual(values, earlier.playerState)
          }
          for (const id of ["ann", "ben", "cat", "dan", "eve"]) {
            for (const event of room.heard(id)) {
              assert.isTrue(seats.has(id), `${id} hears ${event.t} without a seat`)
              if ("from" in event) assert.strictEqual(event.from, one.player)
            }
          }
          if (room.state.closed !== null) return
          room.wait(1)
        }
      }),
      { numRuns: 1000 }
    )
  })
})
