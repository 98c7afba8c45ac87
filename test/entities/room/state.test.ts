/**
 * Room state machine: messages, shared and player state, locks, and its invariants under random
 * commands.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import * as fc from "fast-check"
import { rooms } from "#rpc/limits"
import type { RoomEvent } from "#rpc/rooms"
import { type RoomCommand, roomView } from "#entities/room/model"
import { nextDeadline, tick } from "#entities/room/seats"
import { decodeSnapshot, fromStored, toRow } from "#entities/room/snapshot"
import { jsonBytes } from "#entities/room/json-state"
import { roomSettings, type RoomStep, roomSteps } from "../../support/generators.ts"
import { agrees, checkRoom, roomOf, RoomWorld, start } from "../../support/room-harness.ts"

describe("send", () => {
  it("reaches everyone but the sender, with the time", () => {
    const room = roomOf(["ann", "ben", "cat"])
    const data = room.act({ t: "send", playerId: "ann", type: "move", data: { x: 1 } })
    assert.deepStrictEqual(data, {})
    const message: RoomEvent = {
      t: "message",
      from: "ann",
      type: "move",
      data: { x: 1 },
      at: start + 3
    }
    assert.deepStrictEqual(room.heard("ben"), [message])
    assert.deepStrictEqual(room.heard("cat"), [message])
    assert.deepStrictEqual(room.heard("ann"), [])
  })

  it("has no data where none was given, and keeps null", () => {
    const room = roomOf(["ann", "ben"])
    room.act({ t: "send", playerId: "ann", type: "a" })
    room.act({ t: "send", playerId: "ann", type: "b", data: null })
    assert.deepStrictEqual(
      room.heard("ben").map((event) => "data" in event),
      [false, true]
    )
  })

  it("reaches exactly those named, oneself included, each once", () => {
    const room = roomOf(["ann", "ben", "cat"])
    const to = ["ben", "ann", "ben", "nobody", "__proto__"]
    const data = room.act({ t: "send", playerId: "ann", type: "hint", to })
    assert.deepStrictEqual(data, { delivered: 2 })
    assert.deepStrictEqual(room.kinds("ann"), ["message"])
    assert.deepStrictEqual(room.kinds("ben"), ["message"])
    assert.deepStrictEqual(room.kinds("cat"), [])
  })

  it("leaves the room's state be, so that messages cost no snapshot", () => {
    const room = roomOf(["ann", "ben"])
    const before = room.state
    room.now = start + 59_999
    room.act({ t: "send", playerId: "ann", type: "move" })
    assert.strictEqual(room.state, before)
    room.now = start + 60_000
    room.act({ t: "send", playerId: "ann", type: "move" })
    assert.deepStrictEqual(room.state, { ...before, lastFrameAt: room.now })
  })

  it("counts nobody when nobody is named", () => {
    const room = roomOf(["ann", "ben"])
    const data = room.act({ t: "send", playerId: "ann", type: "hint", to: [] })
    assert.deepStrictEqual(data, { delivered: 0 })
    assert.deepStrictEqual(room.kinds("ben"), [])
  })

  it("does not reach those who are away or have not come in, nor counts them", () => {
    const room = roomOf(["ann", "ben", "cat"])
    room.drop("ben")
    room.seat("dan")
    room.heard("cat")
    const to = ["ben", "cat", "dan"]
    assert.deepStrictEqual(room.act({ t: "send", playerId: "ann", type: "hint", to }), {
      delivered: 1
    })
    room.act({ t: "send", playerId: "ann", type: "all" })
    assert.deepStrictEqual(room.kinds("cat"), ["message", "message"])
    room.resume("ben")
    room.join("dan")
    assert.deepStrictEqual(room.kinds("ben"), ["room_joined"])
    assert.deepStrictEqual(room.kinds("dan"), ["room_joined"])
  })

  it.for<RoomCommand>([
    { t: "send", playerId: "eve", type: "hello" },
    { t: "setState", playerId: "eve", patch: {} },
    { t: "setMyState", playerId: "eve", patch: {} },
    { t: "lock", playerId: "eve", locked: true },
    { t: "leave", playerId: "eve", reason: "left" }
  ])("is for members only, as is $t", (command) => {
    assert.strictEqual(roomOf(["ann"]).refusal(command), "not_in_room")
  })
})

describe("setState", () => {
  it("merges top-level keys, null deletes, and everyone hears the patch with the next version", () => {
    const room = roomOf(["ann", "ben"])
    room.act({ t: "setState", playerId: "ann", patch: { round: 1, map: { x: 1, y: 2 } } })
    const patch = { round: null, map: { x: 3 } }
    assert.deepStrictEqual(room.act({ t: "setState", playerId: "ben", patch }), {})
    const { state, version } = roomView(room.state)
    assert.deepStrictEqual({ state, version }, { state: { map: { x: 3 } }, version: 2 })
    const expected: RoomEvent = { t: "state", patch, from: "ben", version: 2 }
    assert.deepStrictEqual(room.heard("ann").at(-1), expected)
    assert.deepStrictEqual(room.heard("ben").at(-1), expected)
  })

  it("is the host's alone where the room says so", () => {
    const room = roomOf(["ann", "ben"], { hostOnlyState: true })
    const write = (playerId: string) =>
      room.refusal({ t: "setState", playerId, patch: { round: 1 } })
    assert.strictEqual(write("ben"), "host_only")
    assert.strictEqual(write("ann"), "granted")
    room.leave("ann")
    assert.strictEqual(write("ben"), "granted")
  })

  it("leaves everything as it was when it does not fit", () => {
    const room = roomOf(["ann"])
    room.act({ t: "setState", playerId: "ann", patch: { a: 1 } })
    const before = room.state
    const patch = { a: null, b: "x".repeat(rooms.stateMaxBytes) }
    assert.strictEqual(room.refusal({ t: "setState", playerId: "ann", patch }), "state_too_large")
    assert.strictEqual(room.state, before)
  })
})

describe("setMyState", () => {
  it("writes one's own entry, which outlives a drop and not a leave", () => {
    const room = roomOf(["ann", "ben"])
    const patch = { ready: true }
    room.act({ t: "setMyState", playerId: "ben", patch })
    const expected: RoomEvent = { t: "player_state", playerId: "ben", patch }
    assert.deepStrictEqual(room.heard("ann"), [expected])
    assert.deepStrictEqual(room.heard("ben"), [expected])
    assert.strictEqual(roomView(room.state).version, 0)
    room.drop("ben")
    room.resume("ben")
    assert.deepStrictEqual(room.views.get("ben")?.players[1]?.state, patch)
    room.leave("ben")
    room.join("ben")
    assert.deepStrictEqual(room.views.get("ben")?.players[1]?.state, {})
  })

  it("is open to all where the room's state is the host's", () => {
    const room = roomOf(["ann", "ben"], { hostOnlyState: true })
    const command: RoomCommand = { t: "setMyState", playerId: "ben", patch: { ready: true } }
    assert.strictEqual(room.refusal(command), "granted")
  })

  it("has a cap of its own", () => {
    const room = roomOf(["ann"])
    const fill = (bytes: number) => ({ a: "x".repeat(bytes - jsonBytes({ a: "" })) })
    const write = (bytes: number) =>
      room.refusal({ t: "setMyState", playerId: "ann", patch: fill(bytes) })
    assert.strictEqual(write(rooms.playerStateMaxBytes), "granted")
    assert.strictEqual(write(rooms.playerStateMaxBytes + 1), "state_too_large")
  })
})

describe("lock", () => {
  it("is for the host only, and emits one event to everyone", () => {
    const room = roomOf(["ann", "ben"])
    const lock = (playerId: string, locked: boolean) =>
      room.refusal({ t: "lock", playerId, locked })
    assert.strictEqual(lock("ben", true), "host_only")
    assert.strictEqual(lock("ann", true), "granted")
    assert.strictEqual(lock("ann", true), "granted")
    assert.strictEqual(lock("ann", false), "granted")
    const expected: ReadonlyArray<RoomEvent> = [
      { t: "locked", locked: true },
      { t: "locked", locked: false }
    ]
    assert.deepStrictEqual(room.heard("ann"), expected)
    assert.deepStrictEqual(room.heard("ben"), expected)
  })
})

const commandOf = (room: RoomWorld, step: Exclude<RoomStep, { kind: "wait" }>): RoomCommand => {
  switch (step.kind) {
    case "join":
    case "resume":
      return { t: step.kind, ...room.joiningPlayer(step.player, step.node) }
    case "seat":
      return {
        t: "seat",
        joiningPlayers: step.players.map((id) => room.joiningPlayer(id, step.node))
      }
    case "leave":
      return { t: "leave", playerId: step.player, reason: step.reason }
    case "send": {
      const command = { t: "send", playerId: step.player, type: "x" } as const
      return step.to === null ? command : { ...command, to: step.to }
    }
    case "setState":
    case "setMyState":
      return { t: step.kind, playerId: step.player, patch: step.patch }
    case "lock":
      return { t: "lock", playerId: step.player, locked: step.locked }
    case "drop": {
      const attachment = room.state.members.get(step.player)?.attachment
      const connectionId = attachment?.connectionId ?? "none"
      const { player: playerId, replaced } = step
      return { t: "disconnect", playerId, connectionId, replaced }
    }
    case "dropNode":
      return { t: "dropNode", node: step.node }
  }
}

/** Plays a life of a room up to its end; `check` is called between any two steps. */
const play = (
  room: RoomWorld,
  steps: ReadonlyArray<RoomStep>,
  wait: (millis: number) => void,
  check: () => void
): void => {
  for (const step of steps) {
    if (step.kind === "wait") wait(step.millis)
    else room.decide(commandOf(room, step))
    if (room.state.closed !== null) return
    check()
  }
}

describe("a room, whatever happens to it", () => {
  const life = (play: (room: RoomWorld, steps: ReadonlyArray<RoomStep>) => void) =>
    fc.assert(
      fc.property(roomSettings, roomSteps, (settings, steps) => {
        const room = new RoomWorld(settings)
        room.join("ann")
        play(room, steps)
      }),
      { numRuns: 300 }
    )

  it("is what each member that hears it believes it to be", () => {
    life((room, steps) =>
      play(
        room,
        steps,
        (millis) => room.wait(millis),
        () => {
          for (const [id, view] of room.views) {
            if (!agrees(view, room.state)) assert.deepStrictEqual(view, roomView(room.state), id)
          }
        }
      )
    )
  })

  it("keeps its invariants, ticked in time", () => {
    life((room, steps) =>
      play(
        room,
        steps,
        (millis) => room.wait(millis),
        () => checkRoom(room.state, room.now, nextDeadline(room.state) > room.now)
      )
    )
  })

  it("keeps its invariants and its members' trust when its ticks come late", () => {
    const late = (room: RoomWorld) => (millis: number) => {
      room.now += millis
      room.act({ t: "tick" })
    }
    life((room, steps) =>
      play(room, steps, late(room), () => {
        checkRoom(room.state, room.now, false)
        for (const view of room.views.values()) assert.isTrue(agrees(view, room.state))
      })
    )
  })

  it("has nothing to do before nextDeadline, and nothing left after it", () => {
    life((room, steps) =>
      play(
        room,
        steps,
        (millis) => room.wait(millis),
        () => {
          const due = nextDeadline(room.state)
          if (due > room.now) {
            const early = Result.getOrThrow(tick(room.state, due - 1))
            assert.strictEqual(early.state, room.state)
            assert.deepStrictEqual(early.emissions, [])
          }
          const at = Math.max(due, room.now)
          const done = Result.getOrThrow(tick(room.state, at))
          assert.notStrictEqual(done.state, room.state)
          if (done.state.closed === null) assert.isAbove(nextDeadline(done.state), at)
        }
      )
    )
  })

  it("wakes from its snapshot as it was", () => {
    life((room, steps) =>
      play(
        room,
        steps,
        (millis) => room.wait(millis),
        () => {
          const row = toRow(room.state, 1, "n1", room.now)
          const woken = fromStored(Effect.runSync(decodeSnapshot(row.snapshot)))
          const again = toRow(woken, 1, "n1", room.now)
          assert.deepStrictEqual(
            { ...again, snapshot: JSON.parse(again.snapshot) },
            { ...row, snapshot: JSON.parse(row.snapshot) }
          )
          const view: unknown = JSON.parse(JSON.stringify(roomView(room.state)))
          assert.deepStrictEqual<unknown>(roomView(woken), view)
        }
      )
    )
  })
})
