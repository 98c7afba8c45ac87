/**
 * Room state machine: messages, shared and player state, locks, and its invariants under random
 * commands.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import * as fc from "fast-check"
import type { RoomEvent } from "#rpc/rooms/events"
import { roomLimits } from "#rpc/rooms/limits"
import { type RoomCommand, type RoomSettings, roomView } from "#entities/room/model"
import { nextDeadline } from "#entities/room/seats"
import { decodeSnapshot, fromStored, toRow } from "#entities/room/snapshot"
import { jsonBytes } from "#entities/json-bytes"
import { decide } from "#entities/room/state"
import {
  rightsSettings,
  type RightsStep,
  rightsSteps,
  roomSettings,
  type RoomStep,
  roomSteps
} from "../../support/generators.ts"
import { viewMatches, checkRoom, roomOf, RoomHarness, start } from "../../support/room-harness.ts"

describe("`send`", () => {
  it("delivers a message without `to` to all members except the sender, with a timestamp", () => {
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
    assert.deepStrictEqual(room.takeEvents("ben"), [message])
    assert.deepStrictEqual(room.takeEvents("cat"), [message])
    assert.deepStrictEqual(room.takeEvents("ann"), [])
  })

  it("omits `data` when the sender gave none, and keeps a null", () => {
    const room = roomOf(["ann", "ben"])
    room.act({ t: "send", playerId: "ann", type: "a" })
    room.act({ t: "send", playerId: "ann", type: "b", data: null })
    assert.deepStrictEqual(
      room.takeEvents("ben").map((event) => "data" in event),
      [false, true]
    )
  })

  it("delivers a message with `to` once to each named member, the sender included", () => {
    const room = roomOf(["ann", "ben", "cat"])
    const to = ["ben", "ann", "ben", "nobody", "__proto__"]
    const data = room.act({ t: "send", playerId: "ann", type: "hint", to })
    assert.deepStrictEqual(data, { delivered: 2 })
    assert.deepStrictEqual(room.takeKinds("ann"), ["message"])
    assert.deepStrictEqual(room.takeKinds("ben"), ["message"])
    assert.deepStrictEqual(room.takeKinds("cat"), [])
  })

  it("leaves the room unchanged within a minute of messages, which cost no snapshot", () => {
    const room = roomOf(["ann", "ben"])
    const before = room.state
    room.now = start + 59_999
    room.act({ t: "send", playerId: "ann", type: "move" })
    assert.strictEqual(room.state, before)
    room.now = start + 60_000
    room.act({ t: "send", playerId: "ann", type: "move" })
    assert.deepStrictEqual(room.state, { ...before, lastFrameAt: room.now })
  })

  it("delivers a message with an empty `to` to no member", () => {
    const room = roomOf(["ann", "ben"])
    const data = room.act({ t: "send", playerId: "ann", type: "hint", to: [] })
    assert.deepStrictEqual(data, { delivered: 0 })
    assert.deepStrictEqual(room.takeKinds("ben"), [])
  })

  it("neither sends nor counts messages to members without a connection or claimed seat", () => {
    const room = roomOf(["ann", "ben", "cat"])
    room.drop("ben")
    room.seat("dan")
    room.takeEvents("cat")
    const to = ["ben", "cat", "dan"]
    assert.deepStrictEqual(room.act({ t: "send", playerId: "ann", type: "hint", to }), {
      delivered: 1
    })
    room.act({ t: "send", playerId: "ann", type: "all" })
    assert.deepStrictEqual(room.takeKinds("cat"), ["message", "message"])
    room.resume("ben")
    room.join("dan")
    assert.deepStrictEqual(room.takeKinds("ben"), ["room_joined"])
    assert.deepStrictEqual(room.takeKinds("dan"), ["room_joined"])
  })

  it.for<RoomCommand>([
    { t: "send", playerId: "eve", type: "hello" },
    { t: "setState", playerId: "eve", patch: {} },
    { t: "setMyState", playerId: "eve", patch: {} },
    { t: "lock", playerId: "eve", locked: true },
    { t: "leave", playerId: "eve", reason: "left" }
  ])("refuses a command of a player who is not a member: $t", (command) => {
    assert.strictEqual(roomOf(["ann"]).refusal(command), "not_in_room")
  })
})

describe("`setState`", () => {
  it("merges top-level keys, deletes null keys, and sends all members the patch and version", () => {
    const room = roomOf(["ann", "ben"])
    room.act({ t: "setState", playerId: "ann", patch: { round: 1, map: { x: 1, y: 2 } } })
    const patch = { round: null, map: { x: 3 } }
    assert.deepStrictEqual(room.act({ t: "setState", playerId: "ben", patch }), {})
    const { state, version } = roomView(room.state)
    assert.deepStrictEqual({ state, version }, { state: { map: { x: 3 } }, version: 2 })
    const expected: RoomEvent = { t: "state", patch, from: "ben", version: 2 }
    assert.deepStrictEqual(room.takeEvents("ann").at(-1), expected)
    assert.deepStrictEqual(room.takeEvents("ben").at(-1), expected)
  })

  it("refuses `setState` of members other than the host when `hostOnlyState` is set", () => {
    const room = roomOf(["ann", "ben"], { hostOnlyState: true })
    const write = (playerId: string) =>
      room.refusal({ t: "setState", playerId, patch: { round: 1 } })
    assert.strictEqual(write("ben"), "host_only")
    assert.strictEqual(write("ann"), "granted")
    room.leave("ann")
    assert.strictEqual(write("ben"), "granted")
  })

  it("changes nothing by a `setState` whose result exceeds the size limit", () => {
    const room = roomOf(["ann"])
    room.act({ t: "setState", playerId: "ann", patch: { a: 1 } })
    const before = room.state
    const patch = { a: null, b: "x".repeat(roomLimits.stateMaxBytes) }
    assert.strictEqual(room.refusal({ t: "setState", playerId: "ann", patch }), "state_too_large")
    assert.strictEqual(room.state, before)
  })
})

describe("`setMyState`", () => {
  it("writes the member's own state, which survives a disconnect but not a leave", () => {
    const room = roomOf(["ann", "ben"])
    const patch = { ready: true }
    room.act({ t: "setMyState", playerId: "ben", patch })
    const expected: RoomEvent = { t: "player_state", playerId: "ben", patch }
    assert.deepStrictEqual(room.takeEvents("ann"), [expected])
    assert.deepStrictEqual(room.takeEvents("ben"), [expected])
    assert.strictEqual(roomView(room.state).version, 0)
    room.drop("ben")
    room.resume("ben")
    assert.deepStrictEqual(room.views.get("ben")?.players[1]?.state, patch)
    room.leave("ben")
    room.join("ben")
    assert.deepStrictEqual(room.views.get("ben")?.players[1]?.state, {})
  })

  it("allows `setMyState` to every member when `hostOnlyState` is set", () => {
    const room = roomOf(["ann", "ben"], { hostOnlyState: true })
    const command: RoomCommand = { t: "setMyState", playerId: "ben", patch: { ready: true } }
    assert.strictEqual(room.refusal(command), "granted")
  })

  it("limits the size of a member's own state", () => {
    const room = roomOf(["ann"])
    const fill = (bytes: number) => ({ a: "x".repeat(bytes - jsonBytes({ a: "" })) })
    const write = (bytes: number) =>
      room.refusal({ t: "setMyState", playerId: "ann", patch: fill(bytes) })
    assert.strictEqual(write(roomLimits.playerStateMaxBytes), "granted")
    assert.strictEqual(write(roomLimits.playerStateMaxBytes + 1), "state_too_large")
  })
})

describe("`lock`", () => {
  it("refuses `lock` of members other than the host, and emits one event per change", () => {
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
    assert.deepStrictEqual(room.takeEvents("ann"), expected)
    assert.deepStrictEqual(room.takeEvents("ben"), expected)
  })
})

/** The command of a step that uses rights. */
const rightsCommandOf = (room: RoomHarness, step: RightsStep): RoomCommand => {
  switch (step.kind) {
    case "moderate": {
      const { op, player, target, team } = step
      const by = player === null ? "server" : { playerId: player }
      return { t: "moderate", by, op, target, ...(op === "team" ? { team } : {}) }
    }
    case "startVote": {
      const { player: playerId, target } = step
      return target === null
        ? { t: "startVote", playerId, op: "restart" }
        : { t: "startVote", playerId, op: "kick", target }
    }
    case "castVote": {
      const voteId = room.state.rights.vote?.id ?? "none"
      return { t: "castVote", playerId: step.player, voteId, yes: step.yes }
    }
    case "setTeam":
      return { t: "setTeam", playerId: step.player, team: step.team }
  }
}

type AnyStep = RoomStep | RightsStep

const commandOf = (room: RoomHarness, step: Exclude<AnyStep, { kind: "wait" }>): RoomCommand => {
  switch (step.kind) {
    case "moderate":
    case "startVote":
    case "castVote":
    case "setTeam":
      return rightsCommandOf(room, step)
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
    case "rename":
      return { t: "rename", playerId: step.player, displayName: step.displayName }
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

/** Runs the steps until the room closes; calls `check` after each step. */
const play = (
  room: RoomHarness,
  steps: ReadonlyArray<AnyStep>,
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

describe("a room under random commands", () => {
  const checkProperty = (play: (room: RoomHarness, steps: ReadonlyArray<AnyStep>) => void) => {
    const check = (settings: Partial<RoomSettings>, steps: ReadonlyArray<AnyStep>) => {
      const room = new RoomHarness(settings)
      room.join("ann")
      play(room, steps)
    }
    fc.assert(fc.property(roomSettings, roomSteps, check), { numRuns: 300 })
    fc.assert(fc.property(rightsSettings, rightsSteps, check), { numRuns: 300 })
  }

  it("keeps the view of each connected member equal to the room's state", () => {
    checkProperty((room, steps) =>
      play(
        room,
        steps,
        (millis) => room.wait(millis),
        () => {
          for (const [id, view] of room.views) {
            if (!viewMatches(view, room.state))
              assert.deepStrictEqual(view, roomView(room.state), id)
          }
        }
      )
    )
  })

  it("keeps the invariants of a room when its ticks are on time", () => {
    checkProperty((room, steps) =>
      play(
        room,
        steps,
        (millis) => room.wait(millis),
        () => checkRoom(room.state, room.now, nextDeadline(room.state) > room.now)
      )
    )
  })

  it("keeps the invariants of a room and its members' views when its ticks are late", () => {
    const late = (room: RoomHarness) => (millis: number) => {
      room.now += millis
      room.act({ t: "tick" })
    }
    checkProperty((room, steps) =>
      play(room, steps, late(room), () => {
        checkRoom(room.state, room.now, false)
        for (const view of room.views.values()) assert.isTrue(viewMatches(view, room.state))
      })
    )
  })

  it("finds no work before `nextDeadline`, and completes all of it then", () => {
    checkProperty((room, steps) =>
      play(
        room,
        steps,
        (millis) => room.wait(millis),
        () => {
          const due = nextDeadline(room.state)
          if (due > room.now) {
            const early = Result.getOrThrow(decide(room.state, { t: "tick" }, due - 1))
            assert.strictEqual(early.state, room.state)
            assert.deepStrictEqual(early.emissions, [])
          }
          const at = Math.max(due, room.now)
          const done = Result.getOrThrow(decide(room.state, { t: "tick" }, at))
          assert.notStrictEqual(done.state, room.state)
          if (done.state.closed === null) assert.isAbove(nextDeadline(done.state), at)
        }
      )
    )
  })

  it("restores the same state of a room from its snapshot", () => {
    checkProperty((room, steps) =>
      play(
        room,
        steps,
        (millis) => room.wait(millis),
        () => {
          const row = toRow(room.state, 1, "n1", room.now)
          const restored = fromStored(Effect.runSync(decodeSnapshot(row.snapshot)))
          const again = toRow(restored, 1, "n1", room.now)
          assert.deepStrictEqual(
            { ...again, snapshot: JSON.parse(again.snapshot) },
            { ...row, snapshot: JSON.parse(row.snapshot) }
          )
          const view: unknown = JSON.parse(JSON.stringify(roomView(room.state)))
          assert.deepStrictEqual<unknown>(roomView(restored), view)
        }
      )
    )
  })
})
