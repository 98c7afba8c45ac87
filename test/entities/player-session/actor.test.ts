/**
 * Bucket of live sessions: the outputs for its nodes while connections, streams and shards come and
 * go. See `session-harness.ts`.
 */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { playerSessions } from "#rpc/limits"
import type { Reservation } from "#entities/player-session/state"
import { bucketSteps } from "../../support/generators.ts"
import { SessionWorld } from "../../support/session-harness.ts"

const seat = (roomId: string): Reservation => ({ kind: "seat", roomId })
const ticket = (ticketId: string): Reservation => ({ kind: "ticket", ticketId })

describe("a bucket of sessions", () => {
  it("answers once the seat was looked up, in the order it was asked", () => {
    const world = new SessionWorld()
    world.seats.set("p1", "r1")
    const connection = world.open("n1", "p1")
    world.claim(connection, seat("r1"))
    assert.deepStrictEqual(world.answers, [])
    assert.deepStrictEqual(world.loads, [["p1"]])
    world.load()
    assert.deepStrictEqual(world.answers, ["c0001 attach r1", "c0001 claim r1"])
  })

  it("looks up all that come at once in one go, and nobody twice", () => {
    const world = new SessionWorld()
    world.move()
    for (const playerId of ["p1", "p2", "p3"]) world.open("n1", playerId)
    world.watch("n1")
    assert.deepStrictEqual(world.loads, [["p1", "p2", "p3"]])
    world.load()
    world.open("n2", "p1")
    assert.deepStrictEqual(world.loads, [])
  })

  it("notifies the older of two connections, on either node, that it was replaced", () => {
    const world = new SessionWorld()
    world.open("n1", "p1")
    const newer = world.open("n2", "p1")
    world.load()
    assert.deepStrictEqual(world.replaced, ["c0001"])
    world.claim(newer, seat("r1"))
    assert.deepStrictEqual(newer.reservation, seat("r1"))
  })

  it("lets a newer connection be, when an older one goes late", () => {
    const world = new SessionWorld()
    const older = world.open("n1", "p1")
    world.load()
    const newer = world.open("n2", "p1")
    world.close(older)
    world.claim(newer, ticket("t1"))
    assert.deepStrictEqual(newer.reservation, ticket("t1"))
  })

  it("replaces an older connection that its node brings again after the bucket moved", () => {
    const world = new SessionWorld()
    world.open("n1", "p1")
    world.settle()
    world.unwatch("n1")
    world.move()
    world.watch("n2")
    const newer = world.open("n2", "p1")
    world.load()
    world.watch("n1")
    assert.deepStrictEqual(world.replaced, ["c0001"])
    assert.strictEqual(world.actor.stateOf("p1")?.connectionId, newer.connectionId)
  })

  it("hears the places again when it moved, and looks up the others only", () => {
    const world = new SessionWorld()
    const seated = world.open("n1", "p1")
    world.open("n1", "p2")
    world.settle()
    world.claim(seated, ticket("t1"))
    world.move()
    world.watch("n1")
    assert.deepStrictEqual(world.loads, [["p2"]])
    assert.deepStrictEqual(world.actor.stateOf("p1")?.reservation, ticket("t1"))
  })

  it("forgets the connections that their node no longer names", () => {
    const world = new SessionWorld()
    const { connectionId } = world.open("n1", "p1")
    world.open("n1", "p2")
    world.load()
    world.load()
    world.gateways.n1.held.delete(connectionId)
    world.watch("n1")
    assert.strictEqual(world.actor.stateOf("p1")?.connectionId, null)
    assert.strictEqual(world.actor.stateOf("p2")?.connectionId, "c0002")
  })

  it("takes nothing twice, and nothing from an attachment that is over", () => {
    const world = new SessionWorld()
    const { connectionId, playerId } = world.open("n1", "p1")
    world.load()
    const { seq, watch } = world.gateways.n1
    const claim = { t: "claim", playerId, connectionId, reservation: ticket("t1") } as const
    world.actor.submit("n1", watch, [{ seq, command: claim }])
    world.actor.submit("n1", watch - 1, [{ seq: seq + 1, command: claim }])
    assert.deepStrictEqual(world.actor.stateOf("p1")?.reservation, { kind: "none" })
    assert.isFalse(world.actor.admit("n3", 0))
    assert.isTrue(world.actor.admit("n3", 2))
    assert.isFalse(world.actor.admit("n3", 2))
    assert.isFalse(world.actor.admit("n3", 1))
  })

  it("grants nothing once it may no longer be the judge, and lets its nodes go", () => {
    const world = new SessionWorld()
    const connection = world.open("n1", "p1")
    world.load()
    world.owned = false
    world.claim(connection, seat("r1"))
    world.owned = true
    world.claim(connection, seat("r1"))
    assert.deepStrictEqual(connection.reservation, { kind: "none" })
    assert.isTrue(world.actor.fenced)
    assert.isUndefined(world.gateways.n1.watcher)
    assert.isUndefined(world.gateways.n2.watcher)
  })

  it("refuses what waits beyond the bound", () => {
    const world = new SessionWorld()
    const connection = world.open("n1", "p1")
    for (let i = 0; i < playerSessions.waitingPerSession; i++) world.claim(connection, ticket("t1"))
    assert.deepStrictEqual(world.answers, ["c0001 claim unavailable"])
  })

  it("forgets a session a minute after its last connection", () => {
    const world = new SessionWorld()
    const connection = world.open("n1", "p1")
    world.load()
    world.close(connection)
    world.pass(playerSessions.idleSeconds * 1000 - 1)
    assert.strictEqual(world.actor.size, 1)
    const again = world.open("n1", "p1")
    world.pass(playerSessions.idleSeconds * 1000)
    assert.strictEqual(world.actor.size, 1)
    world.close(again)
    world.pass(playerSessions.idleSeconds * 1000)
    assert.strictEqual(world.actor.size, 0)
  })
})

describe("a bucket of sessions, whatever happens", () => {
  it("has one connection and one seat for each player, and agrees with the nodes", () => {
    fc.assert(
      fc.property(bucketSteps, (steps) => {
        const world = new SessionWorld()
        for (const step of steps) {
          const { connections } = world
          const connection =
            "index" in step ? connections[step.index % connections.length] : undefined
          if (step.kind === "open") world.open(step.node, step.playerId)
          else if (step.kind === "watch") world.watch(step.node)
          else if (step.kind === "unwatch") world.unwatch(step.node)
          else if (step.kind === "move") world.move()
          else if (step.kind === "freeze") world.owned = false
          else if (step.kind === "load") world.load()
          else if (step.kind === "wait") world.pass(playerSessions.idleSeconds * 500)
          else if (connection === undefined) continue
          else if (step.kind === "close") world.close(connection)
          else if (step.kind === "claim") world.claim(connection, step.reservation)
          else world.release(connection)
        }
        world.settle()
        const players = world.connections.map(({ playerId }) => playerId)
        assert.strictEqual(new Set(players).size, players.length, "one connection a player")
        for (const { connectionId, reservation, playerId } of world.connections) {
          const state = world.actor.stateOf(playerId)
          assert.strictEqual(state?.connectionId, connectionId)
          if (reservation.kind !== "none") assert.deepStrictEqual(state?.reservation, reservation)
        }
        world.pass(playerSessions.idleSeconds * 1000)
        assert.strictEqual(world.actor.size, players.length, "who is away is forgotten")
      }),
      { numRuns: 1000 }
    )
  })
})
