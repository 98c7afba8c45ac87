/**
 * Bucket of player sessions: its outputs when connections open and close, streams break and shards
 * move. See `session-harness.ts`.
 */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { idleSeconds } from "#entities/idle-time"
import { playerSessions } from "#entities/player-session/protocol"
import type { Reservation } from "#entities/player-session/state"
import { bucketSteps } from "../../support/generators.ts"
import { SessionHarness } from "../../support/session-harness.ts"

const seat = (roomId: string): Reservation => ({ kind: "seat", roomId })
const ticket = (ticketId: string): Reservation => ({ kind: "ticket", ticketId })

describe("a bucket of sessions", () => {
  it("replies after the bucket has loaded the seat, in the order of the commands", () => {
    const harness = new SessionHarness()
    harness.seats.set("p1", "r1")
    const connection = harness.open("n1", "p1")
    harness.claim(connection, seat("r1"))
    assert.deepStrictEqual(harness.replies, [])
    assert.deepStrictEqual(harness.pendingLoads, [["p1"]])
    harness.completeLoad()
    assert.deepStrictEqual(harness.replies, ["c0001 attach r1", "c0001 claim r1"])
  })

  it("loads the seats of simultaneous players in one query, and no player twice", () => {
    const harness = new SessionHarness()
    harness.move()
    for (const playerId of ["p1", "p2", "p3"]) harness.open("n1", playerId)
    harness.watch("n1")
    assert.deepStrictEqual(harness.pendingLoads, [["p1", "p2", "p3"]])
    harness.completeLoad()
    harness.open("n2", "p1")
    assert.deepStrictEqual(harness.pendingLoads, [])
  })

  it("notifies the older of two connections, on either node, that it was replaced", () => {
    const harness = new SessionHarness()
    harness.open("n1", "p1")
    const newer = harness.open("n2", "p1")
    harness.completeLoad()
    assert.deepStrictEqual(harness.replaced, ["c0001"])
    harness.claim(newer, seat("r1"))
    assert.deepStrictEqual(newer.reservation, seat("r1"))
  })

  it("keeps a newer connection when an older one closes late", () => {
    const harness = new SessionHarness()
    const older = harness.open("n1", "p1")
    harness.completeLoad()
    const newer = harness.open("n2", "p1")
    harness.close(older)
    harness.claim(newer, ticket("t1"))
    assert.deepStrictEqual(newer.reservation, ticket("t1"))
  })

  it("replaces an older connection that its node attaches again after the bucket moved", () => {
    const harness = new SessionHarness()
    harness.open("n1", "p1")
    harness.settle()
    harness.unwatch("n1")
    harness.move()
    harness.watch("n2")
    const newer = harness.open("n2", "p1")
    harness.completeLoad()
    harness.watch("n1")
    assert.deepStrictEqual(harness.replaced, ["c0001"])
    assert.strictEqual(harness.actor.stateOf("p1")?.connectionId, newer.connectionId)
  })

  it("receives reservations from the nodes after a bucket moved, and loads only missing seats", () => {
    const harness = new SessionHarness()
    const seated = harness.open("n1", "p1")
    harness.open("n1", "p2")
    harness.settle()
    harness.claim(seated, ticket("t1"))
    harness.move()
    harness.watch("n1")
    assert.deepStrictEqual(harness.pendingLoads, [["p2"]])
    assert.deepStrictEqual(harness.actor.stateOf("p1")?.reservation, ticket("t1"))
  })

  it("forgets the connections that their node does not attach again", () => {
    const harness = new SessionHarness()
    const { connectionId } = harness.open("n1", "p1")
    harness.open("n1", "p2")
    harness.completeLoad()
    harness.completeLoad()
    harness.gateways.n1.connections.delete(connectionId)
    harness.watch("n1")
    assert.strictEqual(harness.actor.stateOf("p1")?.connectionId, null)
    assert.strictEqual(harness.actor.stateOf("p2")?.connectionId, "c0002")
  })

  it("ignores repeated commands, and those of an earlier attachment", () => {
    const harness = new SessionHarness()
    const { connectionId, playerId } = harness.open("n1", "p1")
    harness.completeLoad()
    const { seq, watch } = harness.gateways.n1
    const claim = { t: "claim", playerId, connectionId, reservation: ticket("t1") } as const
    harness.actor.submit("n1", [{ seq, command: claim }])
    assert.deepStrictEqual(harness.actor.stateOf("p1")?.reservation, { kind: "none" })
    const { activation } = harness.actor
    assert.isTrue(activation.accepts("n1", watch))
    assert.isFalse(activation.accepts("n1", watch - 1))
    assert.isFalse(activation.admit("n3", 0))
    assert.isTrue(activation.admit("n3", 2))
    assert.isFalse(activation.admit("n3", 2))
    assert.isFalse(activation.admit("n3", 1))
  })

  it("grants nothing and ends its streams once a bucket of sessions has lost its lease", () => {
    const harness = new SessionHarness()
    const connection = harness.open("n1", "p1")
    harness.completeLoad()
    harness.hasLease = false
    harness.claim(connection, seat("r1"))
    harness.hasLease = true
    harness.claim(connection, seat("r1"))
    assert.deepStrictEqual(connection.reservation, { kind: "none" })
    assert.isTrue(harness.actor.fenced)
    assert.isUndefined(harness.gateways.n1.watcher)
    assert.isUndefined(harness.gateways.n2.watcher)
  })

  it("refuses commands when too many wait for a load", () => {
    const harness = new SessionHarness()
    const connection = harness.open("n1", "p1")
    for (let i = 0; i < playerSessions.waitingPerSession; i++)
      harness.claim(connection, ticket("t1"))
    assert.deepStrictEqual(harness.replies, ["c0001 claim unavailable"])
  })

  it("forgets a session a minute after its last connection", () => {
    const harness = new SessionHarness()
    const connection = harness.open("n1", "p1")
    harness.completeLoad()
    harness.close(connection)
    harness.wait(idleSeconds * 1000 - 1)
    assert.strictEqual(harness.actor.size, 1)
    const again = harness.open("n1", "p1")
    harness.wait(idleSeconds * 1000)
    assert.strictEqual(harness.actor.size, 1)
    harness.close(again)
    harness.wait(idleSeconds * 1000)
    assert.strictEqual(harness.actor.size, 0)
  })
})

describe("a bucket of sessions under random steps", () => {
  it("keeps one connection and one reservation per player, and agrees with the nodes", () => {
    fc.assert(
      fc.property(bucketSteps, (steps) => {
        const harness = new SessionHarness()
        for (const step of steps) {
          const { connections } = harness
          const connection =
            "index" in step ? connections[step.index % connections.length] : undefined
          if (step.kind === "open") harness.open(step.node, step.playerId)
          else if (step.kind === "watch") harness.watch(step.node)
          else if (step.kind === "unwatch") harness.unwatch(step.node)
          else if (step.kind === "move") harness.move()
          else if (step.kind === "freeze") harness.hasLease = false
          else if (step.kind === "load") harness.completeLoad()
          else if (step.kind === "wait") harness.wait(idleSeconds * 500)
          else if (connection === undefined) continue
          else if (step.kind === "close") harness.close(connection)
          else if (step.kind === "claim") harness.claim(connection, step.reservation)
          else harness.release(connection)
        }
        harness.settle()
        const players = harness.connections.map(({ playerId }) => playerId)
        assert.strictEqual(new Set(players).size, players.length, "a player has one connection")
        for (const { connectionId, reservation, playerId } of harness.connections) {
          const state = harness.actor.stateOf(playerId)
          assert.strictEqual(state?.connectionId, connectionId)
          if (reservation.kind !== "none") assert.deepStrictEqual(state?.reservation, reservation)
        }
        harness.wait(idleSeconds * 1000)
        assert.strictEqual(
          harness.actor.size,
          players.length,
          "sessions without a connection are forgotten"
        )
      }),
      { numRuns: 1000 }
    )
  })
})
