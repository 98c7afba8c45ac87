/**
 * Attacks on rooms: every command by every role over real sockets, frames with a forged sender, floods, and
 * random command sequences against a small model of the rules.
 */
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import * as fc from "fast-check"
import type { RoomCommand, RoomSettings, RoomState } from "#entities/room/model"
import { TestApp } from "#testing/app"
import { at, configure, newPlayer } from "#testing/players"
import type { SocketClient } from "#testing/socket-client"
import { connectAnonymously, errorCode } from "../support/channel-calls.ts"
import { RoomHarness } from "../support/room-harness.ts"
import { AppLive } from "../support/service.ts"

const modes = [{ key: "mesh", transport: "p2p", maxPlayers: 4, p2p: { relayOnly: false } }]

interface RoomTarget {
  readonly roomId: string
  readonly host: string
}

/** The commands, sent to a locked peer-to-peer room whose state only the host may set. */
const commands: Readonly<Record<string, (target: RoomTarget) => object>> = {
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

const notInRoom = Object.fromEntries(Object.keys(commands).map((act) => [act, "not_in_room"]))

/** The code by which the room refuses each role; undefined if it accepts the command. */
const refusals: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  host: {},
  member: { setState: "host_only", lock: "host_only" },
  "a player who left": { ...notInRoom, resume: "resume_expired", join: "room_locked" },
  "a stranger": { ...notInRoom, resume: "resume_expired", join: "room_locked" },
  "a player of the other environment": {
    ...notInRoom,
    resume: "resume_expired",
    join: "room_not_found"
  },
  anonymous: Object.fromEntries(Object.keys(commands).map((act) => [act, "player_required"]))
}

const makeRoom = Effect.gen(function* () {
  const app = yield* TestApp
  for (const target of [app, app.production]) {
    yield* configure(target, { features: { multiplayer: true }, multiplayer: { modes } })
  }
  const host = yield* newPlayer(app, "Host")
  const create = { t: "create", mode: "mesh", hostOnlyState: true }
  const made = yield* host.socket.request(create)
  const roomId = String(at(made, "data", "roomId"))
  const member = yield* newPlayer(app, "Member")
  const left = yield* newPlayer(app, "Left")
  for (const { socket } of [member, left]) yield* socket.request({ t: "join", roomId })
  yield* left.socket.request({ t: "leave" })
  yield* host.socket.request({ t: "lock", locked: true })
  const stranger = yield* newPlayer(app, "Stranger")
  const foreigner = yield* newPlayer(app.production, "Foreigner")
  const sockets: Readonly<Record<string, SocketClient>> = {
    anonymous: yield* connectAnonymously(app),
    "a player of the other environment": foreigner.socket,
    "a stranger": stranger.socket,
    "a player who left": left.socket,
    member: member.socket,
    host: host.socket
  }
  return { app, host, member, roomId, sockets }
})

const types = ({ received: heard }: SocketClient) => heard.map(({ t }) => t)

layer(AppLive, { timeout: "120 seconds", excludeTestServices: true })("rooms", (it) => {
  it.effect("accepts each of 10 commands only from the roles that may send it", () =>
    Effect.gen(function* () {
      const { host, roomId, sockets } = yield* makeRoom
      const wrong: Array<string> = []
      for (const [role, socket] of Object.entries(sockets)) {
        const before = types(host.socket).length
        for (const [act, frame] of Object.entries(commands)) {
          const refusal = errorCode(yield* socket.request(frame({ roomId, host: host.id })))
          if (refusal !== refusals[role]?.[act]) wrong.push(`${role}, ${act}: ${String(refusal)}`)
        }
        if (role === "member" || role === "host") continue
        yield* host.socket.request({ t: "ping" })
        assert.deepStrictEqual(types(host.socket).slice(before), ["reply"], role)
      }
      assert.deepStrictEqual(wrong, [])
    })
  )

  it.effect("names the player of the socket as sender, whatever the frame claims", () =>
    Effect.gen(function* () {
      const { app, host, member, roomId } = yield* makeRoom
      const stranger = yield* newPlayer(app, "Stranger")
      yield* stranger.socket.request({ t: "create", mode: "mesh" })
      const otherRoom = { roomId, room: roomId, code: "x", environmentId: "env_1" }
      const forged = { from: host.id, playerId: host.id, hostId: host.id, at: 1, ...otherRoom }
      const frames = [
        { t: "send", type: "forged", ...forged },
        { t: "setMyState", patch: { forged: true }, ...forged },
        { t: "signal", kind: "offer", to: host.id, ...forged }
      ]
      for (const frame of frames) {
        yield* stranger.socket.request(frame)
        assert.isUndefined(errorCode(yield* member.socket.request(frame)), frame.t)
      }
      assert.strictEqual((yield* host.socket.next("message"))["from"], member.id)
      assert.strictEqual((yield* host.socket.next("player_state"))["playerId"], member.id)
      assert.strictEqual((yield* host.socket.next("signal"))["from"], member.id)
      yield* host.socket.request({ t: "ping" })
      const text = JSON.stringify(host.socket.received)
      assert.notInclude(text, stranger.id)
      assert.strictEqual(types(host.socket).filter((t) => t === "message").length, 1)
    })
  )

  it.effect("closes the socket of a signal flood with 4029 and serves the others", () =>
    Effect.gen(function* () {
      const { host, member, sockets } = yield* makeRoom
      const signal = { t: "signal", to: host.id, kind: "candidate", data: "x" }
      for (let sent = 0; sent < 1000; sent++) yield* member.socket.send(signal)
      assert.strictEqual((yield* member.socket.closed).code, 4029)
      assert.isUndefined(
        errorCode(yield* host.socket.request({ t: "setState", patch: { on: true } }))
      )
      assert.strictEqual(
        errorCode(yield* (sockets["a stranger"] ?? host.socket).request({ t: "ping" })),
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

/** The room command of a step. */
const commandOf = (room: RoomHarness, { act, other, player: playerId }: Step): RoomCommand => {
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

/** The outcome that the rules demand, given who has a seat and who is host. */
const expectedOutcome = (
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

describe("a room", () => {
  it("follows the rules of a room's roles in 1,000 random sequences of commands", () => {
    fc.assert(
      fc.property(
        settings,
        fc.array(step, { minLength: 10, maxLength: 40 }),
        (overrides, steps) => {
          const room = new RoomHarness(overrides)
          const seats = new Set<string>()
          for (const current of steps) {
            const before = room.state
            const outcome = room.refusal(commandOf(room, current))
            assert.strictEqual(
              outcome,
              expectedOutcome(before, seats, current),
              JSON.stringify(current)
            )
            if (outcome === "granted" && current.act === "join") seats.add(current.player)
            if (current.act === "leave" || current.act === "banned") seats.delete(current.player)
            assert.strictEqual(
              Array.from(room.state.members.keys()).join(),
              Array.from(seats).join()
            )
            for (const [id, { playerState: values }] of room.state.members) {
              const own = current.act === "setMyState" && id === current.player
              const earlier = before.members.get(id)
              if (!own && earlier !== undefined) assert.strictEqual(values, earlier.playerState)
            }
            for (const id of ["ann", "ben", "cat", "dan", "eve"]) {
              for (const event of room.takeEvents(id)) {
                const isOwnBan = event.t === "player_left" && event.playerId === id
                if (isOwnBan) assert.strictEqual(`${current.act} ${current.player}`, `banned ${id}`)
                else assert.isTrue(seats.has(id), `${id} receives ${event.t} without a seat`)
                if ("from" in event) assert.strictEqual(event.from, current.player)
              }
            }
            if (room.state.closed !== null) return
            room.wait(1)
          }
        }
      ),
      { numRuns: 1000 }
    )
  })
})
