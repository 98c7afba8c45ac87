/** Signals of peer-to-peer rooms: delivery, and the removal of addresses for relayed players. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { RoomEvent } from "#rpc/rooms/events"
import type { RoomSettings } from "#entities/room/model"
import { RoomHarness, roomOf } from "../../support/room-harness.ts"

const mesh = (relayOnly: boolean): Partial<RoomSettings> => ({
  transport: "p2p",
  p2p: { relayOnly, maxPlayers: 4 }
})

const host = "candidate:1 1 udp 2122260223 192.168.1.7 56143 typ host generation 0"
const mapped = "candidate:2 1 udp 1686052607 203.0.113.9 56143 typ srflx raddr 192.168.1.7 rport 1"
const reflexive = "candidate:3 1 udp 1 203.0.113.9 5 typ prflx raddr 192.168.1.7 rport 1"
const relay = "candidate:4 1 udp 41885439 198.51.100.2 50001 typ relay"
const related = `${relay} raddr 203.0.113.9 rport 56143`
const addresses = /192\.168\.1\.7|203\.0\.113\.9/

const description = (...candidates: ReadonlyArray<string>): string =>
  [
    "v=0",
    "o=- 46117 2 IN IP4 192.168.1.7",
    "s=-",
    "m=application 56143 UDP/DTLS/SCTP webrtc-datachannel",
    "c=IN IP4 203.0.113.9",
    "a=rtcp:9 IN IP4 203.0.113.9",
    ...candidates.map((candidate) => `a=${candidate}`),
    "a=end-of-candidates",
    ""
  ].join("\r\n")

const kind = "candidate"

/** Sends a signal from ann to ben, and returns the data that ben receives. */
const relaySignal = (room: RoomHarness, data: unknown, signal: "candidate" | "offer" = kind) => {
  const reply = room.act({ t: "signal", playerId: "ann", to: "ben", kind: signal, data })
  const received = room.takeEvents("ben").filter((event) => event.t === "signal")
  assert.lengthOf(received, Number(reply["delivered"]))
  return received[0]?.data
}

const signalsTo = (room: RoomHarness, player: string): ReadonlyArray<RoomEvent> =>
  room.takeEvents(player).filter((event) => event.t === "signal")

describe("a signal", () => {
  it("delivers a signal only to its addressee, unchanged", () => {
    const room = roomOf(["ann", "ben", "cat"], mesh(false))
    const data = { candidate: host, sdpMid: "0" }
    const reply = room.act({ t: "signal", playerId: "ann", to: "ben", kind, data, gen: 3 })
    assert.deepStrictEqual(reply, { delivered: 1 })
    assert.deepStrictEqual(signalsTo(room, "ben"), [
      { t: "signal", from: "ann", kind: "candidate", data, gen: 3 }
    ])
    assert.isEmpty(signalsTo(room, "ann"))
    assert.isEmpty(signalsTo(room, "cat"))
  })

  it("refuses signals outside peer-to-peer rooms, from non-members and to non-members", () => {
    const signal = { t: "signal", playerId: "ann", kind: "offer" } as const
    assert.strictEqual(roomOf(["ann", "ben"]).refusal({ ...signal, to: "ben" }), "p2p_only")
    const room = roomOf(["ann", "ben"], mesh(true))
    assert.strictEqual(room.refusal({ ...signal, to: "eve" }), "player_not_in_room")
    assert.strictEqual(room.refusal({ ...signal, playerId: "eve", to: "ann" }), "not_in_room")
  })

  it("delivers no signal to a disconnected member, and counts no delivery", () => {
    const room = roomOf(["ann", "ben"], mesh(false))
    room.drop("ben")
    assert.isUndefined(relaySignal(room, { candidate: relay }))
  })

  it("leaves the room's state unchanged by a signal", () => {
    const room = roomOf(["ann", "ben"], mesh(false))
    const before = room.state
    room.act({ t: "signal", playerId: "ann", to: "ben", kind: "restart" })
    assert.strictEqual(room.state, before)
  })
})

describe("a relayed signal", () => {
  it("relays only relay candidates, without the related address", () => {
    const room = roomOf(["ann", "ben"], mesh(true))
    for (const candidate of [host, mapped, reflexive]) {
      assert.isUndefined(relaySignal(room, { candidate, sdpMid: "0" }))
      assert.isUndefined(relaySignal(room, candidate))
      assert.isUndefined(relaySignal(room, `a=${candidate}`))
      assert.isUndefined(relaySignal(room, candidate.replace("typ", "TYP")))
    }
    assert.deepStrictEqual(relaySignal(room, { candidate: related, sdpMid: "0" }), {
      candidate: `${relay} raddr 0.0.0.0 rport 0`,
      sdpMid: "0"
    })
  })

  it("keeps the end-of-candidates marker of a relayed signal", () => {
    const room = roomOf(["ann", "ben"], mesh(true))
    assert.deepStrictEqual(relaySignal(room, { candidate: "" }), { candidate: "" })
  })

  it("removes every other address from a session description, in any encoding", () => {
    const room = roomOf(["ann", "ben"], mesh(true))
    const sdp = description(host, mapped, related, reflexive)
    for (const data of [sdp, { type: "offer", sdp }, JSON.stringify({ type: "offer", sdp })]) {
      const text = JSON.stringify(relaySignal(room, data, "offer"))
      assert.notMatch(text, addresses)
      assert.include(text, relay)
      assert.include(text, "a=end-of-candidates")
      assert.include(text, "m=application 56143")
    }
  })

  it("limits signals to and from a child to relay candidates, but not between others", () => {
    const room = new RoomHarness(mesh(false))
    room.act({ t: "join", ...room.joiningPlayer("ann"), relayOnly: true })
    room.join("ben")
    room.join("cat")
    const send = (from: string, to: string) =>
      room.act({ t: "signal", playerId: from, to, kind, data: host })["delivered"]
    assert.strictEqual(send("ann", "ben"), 0)
    assert.strictEqual(send("ben", "ann"), 0)
    assert.strictEqual(send("ben", "cat"), 1)
    const policy = (playerId: string) =>
      room.act({ t: "iceTransport", playerId })["iceTransportPolicy"]
    assert.deepStrictEqual([policy("ann"), policy("ben")], ["relay", "all"])
  })

  it("follows the member's relay requirement when it changes, resumes or joins again", () => {
    const room = new RoomHarness(mesh(false))
    room.join("ann")
    room.join("ben")
    const send = (from: string, to: string) =>
      room.act({ t: "signal", playerId: from, to, kind, data: host })["delivered"]
    assert.strictEqual(send("ann", "ben"), 1)
    room.act({ t: "relay", playerId: "ann", relayOnly: true })
    assert.deepStrictEqual([send("ann", "ben"), send("ben", "ann")], [0, 0])
    room.act({ t: "relay", playerId: "ann", relayOnly: false })
    assert.strictEqual(send("ann", "ben"), 1)
    for (const t of ["resume", "join"] as const) {
      room.act({ t, ...room.joiningPlayer("ann"), relayOnly: true })
      assert.strictEqual(send("ann", "ben"), 0)
      room.act({ t, ...room.joiningPlayer("ann"), relayOnly: false })
      assert.strictEqual(send("ann", "ben"), 1)
    }
    assert.strictEqual(
      room.refusal({ t: "relay", playerId: "zoe", relayOnly: true }),
      "not_in_room"
    )
  })

  it("removes every address from random nested data of a relayed signal", () => {
    const room = roomOf(["ann", "ben"], mesh(true))
    const candidate = fc.constantFrom(host, mapped, reflexive, related, relay)
    const newline = fc.constantFrom("\r\n", "\n", "\r")
    const text = fc.oneof(
      candidate,
      candidate.map((text) => `  a=${text}`),
      fc.array(candidate).map((lines) => description(...lines)),
      fc.tuple(fc.array(candidate), newline).map(([lines, end]) => lines.join(end))
    )
    const data = fc.letrec((tie) => ({
      value: fc.oneof(
        { depthSize: "small" },
        text,
        fc.array(tie("value"), { maxLength: 3 }),
        fc.dictionary(fc.constantFrom("sdp", "candidate", "x"), tie("value"), { maxKeys: 3 }),
        tie("value").map((value) => JSON.stringify(value))
      )
    })).value
    fc.assert(
      fc.property(data, (value) => {
        const received = relaySignal(room, value, "offer")
        assert.notMatch(JSON.stringify(received ?? null), addresses)
      })
    )
  })
})
