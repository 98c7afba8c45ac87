/**
 * Matchmaking queue state machine: when a match forms, with whom, and in which order.
 */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import {
  cancel,
  dropNode,
  emptyQueue,
  endOpening,
  enqueue,
  fillDeadline,
  type Match,
  matchmaking,
  nextDeadline,
  nextMatch,
  type QueueMode,
  type QueueState,
  requeue,
  setFreeSeats,
  type Ticket,
  waiting
} from "#entities/matchmaking-queue/state"
import { queueStateSteps, queueModes } from "../../support/generators.ts"

const second = 1000
const mode: QueueMode = { minPlayers: 2, maxPlayers: 4, fillTimeoutSeconds: 15 }

const ticketOf = (ticketId: string, queuedAt = 0): Ticket => ({
  ticketId,
  joiningPlayer: {
    playerId: ticketId,
    displayName: ticketId,
    relayOnly: false,
    node: "n1",
    connectionId: "c1"
  },
  queuedAt
})

const queueOf = (settings: QueueMode, ...tickets: ReadonlyArray<string>) => {
  const state = emptyQueue(settings)
  for (const ticketId of tickets) enqueue(state, ticketOf(ticketId))
  return state
}

/** Ends the making of a match without a room. */
const fail = (state: QueueState, match: Match | undefined): void => {
  requeue(state, match?.tickets ?? [])
  if (match?.kind === "open") endOpening(state, match.opening)
}

const ids = (match: Match | undefined) => match?.tickets.map(({ ticketId }) => ticketId)

describe("the state of a queue", () => {
  it("forms a match as soon as `minPlayers` wait, first come first served", () => {
    const state = queueOf(mode, "a")
    assert.isUndefined(nextMatch(state, 0))
    enqueue(state, ticketOf("b"))
    assert.deepStrictEqual(ids(nextMatch(state, 0)), ["a", "b"])
    assert.strictEqual(waiting(state), 0)
  })

  it("puts at most `maxPlayers` tickets into one match", () => {
    const state = queueOf(mode, "a", "b", "c", "d", "e", "f", "g")
    assert.deepStrictEqual(ids(nextMatch(state, 0)), ["a", "b", "c", "d"])
    assert.deepStrictEqual(ids(nextMatch(state, 0)), ["e", "f", "g"])
  })

  it("forms a match at the fill timeout, even with a single ticket", () => {
    const state = queueOf(mode, "a")
    assert.strictEqual(fillDeadline(state), 15 * second)
    assert.isUndefined(nextMatch(state, 15 * second - 1))
    assert.deepStrictEqual(ids(nextMatch(state, 15 * second)), ["a"])
  })

  it("waits without limit for `minPlayers` when the fill timeout is 0", () => {
    const state = queueOf({ ...mode, fillTimeoutSeconds: 0 }, "a")
    assert.strictEqual(fillDeadline(state), Number.POSITIVE_INFINITY)
    assert.isUndefined(nextMatch(state, Number.MAX_SAFE_INTEGER))
  })

  it("fills open rooms before it opens one, oldest first, even with one ticket", () => {
    const state = queueOf(mode, "a", "b", "c", "d")
    setFreeSeats(state, "r1", 1, 10)
    setFreeSeats(state, "r2", 5, 10)
    assert.deepInclude(nextMatch(state, 0), { kind: "fill", roomId: "r1" })
    const next = nextMatch(state, 0)
    assert.deepInclude(next, { kind: "fill", roomId: "r2" })
    assert.deepStrictEqual(ids(next), ["b", "c", "d"])
    for (const ticketId of ["e", "f", "g", "h"]) enqueue(state, ticketOf(ticketId))
    const last = nextMatch(state, 0)
    assert.deepInclude(last, { kind: "fill", roomId: "r2" })
    assert.deepStrictEqual(ids(last), ["e", "f"])
    assert.deepInclude(nextMatch(state, 0), { kind: "open" })
  })

  it("keeps no full rooms, and at most the given number of open ones", () => {
    const state = queueOf(mode, "a")
    for (const room of ["r1", "r2", "r3"]) setFreeSeats(state, room, 2, 2)
    setFreeSeats(state, "r1", 0, 2)
    assert.deepStrictEqual(Array.from(state.open.keys()), ["r2"])
  })

  it("keeps a ticket once, until a match or a cancellation removes it", () => {
    const state = queueOf(mode, "a", "a", "b")
    assert.strictEqual(waiting(state), 2)
    assert.isTrue(cancel(state, "a"))
    assert.isFalse(cancel(state, "a"))
    enqueue(state, ticketOf("c"))
    assert.deepStrictEqual(ids(nextMatch(state, 0)), ["b", "c"])
    assert.isFalse(cancel(state, "b"))
  })

  it("puts refused tickets before all others, with their original time", () => {
    const state = queueOf(mode, "a")
    const match = nextMatch(state, 15 * second)
    enqueue(state, ticketOf("b", 16 * second))
    fail(state, match)
    assert.strictEqual(fillDeadline(state), 15 * second)
    assert.deepStrictEqual(ids(nextMatch(state, 16 * second)), ["a", "b"])
  })

  it("opens the room of the node with the most tickets, of the oldest among equals", () => {
    const roomOf = (...nodes: ReadonlyArray<string>) => {
      const state = emptyQueue(mode)
      for (const [index, node] of nodes.entries()) {
        const ticket = ticketOf(`t${index}`)
        const joiningPlayer = { ...ticket.joiningPlayer, node }
        // Nodes of an older version send no room ids.
        const id = node === "old" ? {} : { roomId: `${node}${index}` }
        enqueue(state, { ...ticket, joiningPlayer, ...id })
      }
      const match = nextMatch(state, 0)
      return match?.kind === "open" ? match.roomId : "none"
    }
    assert.strictEqual(roomOf("a", "b", "b"), "b1")
    assert.strictEqual(roomOf("a", "b", "a", "b"), "a0")
    assert.strictEqual(roomOf("a", "b", "c", "c"), "c2")
    assert.strictEqual(roomOf("old", "b", "old"), "b1")
    assert.isUndefined(roomOf("old", "old"))
  })

  it("uses each room id once, also when matches fail", () => {
    const state = emptyQueue(mode)
    for (const id of ["a", "b"]) enqueue(state, { ...ticketOf(id), roomId: `room-${id}` })
    const used = Array.from({ length: 3 }, () => {
      const match = nextMatch(state, 0)
      fail(state, match)
      return match?.kind === "open" ? match.roomId : "none"
    })
    assert.deepStrictEqual(used, ["room-a", "room-b", undefined])
  })

  it("keeps the room ids of tickets that an open room refused", () => {
    const state = emptyQueue(mode)
    for (const id of ["a", "b"]) enqueue(state, { ...ticketOf(id), roomId: `room-${id}` })
    setFreeSeats(state, "full", 2, 10)
    requeue(state, nextMatch(state, 0)?.tickets ?? [])
    assert.deepInclude(nextMatch(state, 0), { kind: "open", roomId: "room-a" })
  })

  it("matches first come first served under random cancellations", () => {
    fc.assert(
      fc.property(queueModes, queueStateSteps, (settings, steps) => {
        const state = emptyQueue(settings)
        const expected: Array<string> = []
        for (const [index, step] of steps.entries()) {
          if (step.kind === "cancel") {
            const [gone] = expected.splice(step.index, 1)
            assert.strictEqual(cancel(state, gone ?? "none"), gone !== undefined)
          } else if (step.kind === "open") {
            setFreeSeats(state, step.room, step.free, 10)
          } else if (step.kind === "match") {
            const match = nextMatch(state, index)
            const taken = ids(match) ?? []
            if (match?.kind === "open") endOpening(state, match.opening)
            assert.deepStrictEqual(taken, expected.splice(0, taken.length))
          } else {
            enqueue(state, ticketOf(`t${index}`, index))
            expected.push(`t${index}`)
          }
          assert.strictEqual(waiting(state), expected.length)
        }
      })
    )
  })
})

describe("a queue while a room is being opened", () => {
  const hasty: QueueMode = { minPlayers: 1, maxPlayers: 3, fillTimeoutSeconds: 15 }

  const opened = (state: QueueState, now = 0) => {
    const match = nextMatch(state, now)
    assert.strictEqual(match?.kind, "open")
    if (match?.kind !== "open") throw new Error("No room is opened")
    return match
  }

  it("keeps the tickets that fit for it, and gives them its seats", () => {
    const state = queueOf(hasty, "a")
    const { opening } = opened(state)
    for (const ticketId of ["b", "c"]) enqueue(state, ticketOf(ticketId))
    assert.isUndefined(nextMatch(state, 0))
    assert.strictEqual(waiting(state), 2)
    endOpening(state, opening)
    setFreeSeats(state, "r1", 2, 10)
    const match = nextMatch(state, 0)
    assert.deepInclude(match, { kind: "fill", roomId: "r1" })
    assert.deepStrictEqual(ids(match), ["b", "c"])
  })

  it("opens another for the tickets that do not fit", () => {
    const state = queueOf(hasty, "a")
    const { opening } = opened(state)
    for (const ticketId of ["b", "c", "d"]) enqueue(state, ticketOf(ticketId))
    assert.deepStrictEqual(ids(opened(state)), ["d"])
    enqueue(state, ticketOf("e"))
    assert.isUndefined(nextMatch(state, 0))
    endOpening(state, opening)
    setFreeSeats(state, "r1", 2, 10)
    assert.deepStrictEqual(ids(nextMatch(state, 0)), ["b", "c"])
    assert.isUndefined(nextMatch(state, 0))
    assert.strictEqual(waiting(state), 1)
  })

  it("does not count tickets that fit towards `minPlayers` of another", () => {
    const state = queueOf(mode, "a", "b")
    opened(state)
    for (const ticketId of ["c", "d", "e"]) enqueue(state, ticketOf(ticketId))
    assert.isUndefined(nextMatch(state, 0))
    enqueue(state, ticketOf("f"))
    assert.deepStrictEqual(ids(opened(state)), ["e", "f"])
  })

  it("keeps tickets for a room that the fill timeout opens", () => {
    const state = queueOf(mode, "a")
    opened(state, 15 * second)
    enqueue(state, ticketOf("b", 0))
    assert.isUndefined(nextMatch(state, 15 * second))
  })

  it("returns the tickets in order of arrival when the opening fails", () => {
    const state = queueOf(hasty, "a")
    const match = opened(state)
    for (const ticketId of ["b", "c"]) enqueue(state, ticketOf(ticketId))
    assert.isUndefined(nextMatch(state, 0))
    enqueue(state, ticketOf("d"))
    fail(state, match)
    assert.deepStrictEqual(ids(opened(state)), ["a", "b", "c"])
    assert.deepStrictEqual(ids(opened(state)), ["d"])
  })

  it("lets the tickets open another when it takes too long", () => {
    const state = queueOf(hasty, "a")
    const { opening } = opened(state)
    enqueue(state, ticketOf("b"))
    assert.isUndefined(nextMatch(state, 0))
    assert.strictEqual(nextDeadline(state), matchmaking.openingMillis)
    assert.isUndefined(nextMatch(state, matchmaking.openingMillis - 1))
    assert.deepStrictEqual(ids(opened(state, matchmaking.openingMillis)), ["b"])
    endOpening(state, opening)
    assert.strictEqual(waiting(state), 0, "its late end returns no ticket twice")
  })

  it("fills a seat that becomes free elsewhere meanwhile", () => {
    const state = queueOf(hasty, "a")
    opened(state)
    for (const ticketId of ["b", "c"]) enqueue(state, ticketOf(ticketId))
    assert.isUndefined(nextMatch(state, 0))
    setFreeSeats(state, "r2", 1, 10)
    assert.deepStrictEqual(ids(nextMatch(state, 0)), ["b"])
    enqueue(state, ticketOf("d"))
    assert.isUndefined(nextMatch(state, 0), "the seat that the ticket gave back is taken again")
  })

  it("gives the seat of a cancelled ticket, and those of a lost node, to the next", () => {
    const state = queueOf(hasty, "a")
    opened(state)
    const { joiningPlayer, ...lost } = ticketOf("b")
    enqueue(state, { ...lost, joiningPlayer: { ...joiningPlayer, node: "n2" } })
    enqueue(state, ticketOf("c"))
    assert.isUndefined(nextMatch(state, 0))
    assert.isTrue(cancel(state, "c"))
    assert.isFalse(cancel(state, "c"))
    dropNode(state, "n2")
    assert.strictEqual(waiting(state), 0)
    for (const ticketId of ["d", "e"]) enqueue(state, ticketOf(ticketId))
    assert.isUndefined(nextMatch(state, 0))
    enqueue(state, ticketOf("f"))
    assert.deepStrictEqual(ids(opened(state)), ["f"])
  })

  it("keeps the seats that the mode had when the opening began", () => {
    const state = queueOf(hasty, "a")
    opened(state)
    state.mode = { ...hasty, maxPlayers: 2 }
    for (const ticketId of ["b", "c"]) enqueue(state, ticketOf(ticketId))
    assert.isUndefined(nextMatch(state, 0))
    enqueue(state, ticketOf("d"))
    assert.deepStrictEqual(ids(opened(state)), ["d"])
  })
})
