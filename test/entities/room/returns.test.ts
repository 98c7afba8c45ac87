/** Seats of players who cannot return for a while: the room is on no runner, or admission makes them wait. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { graces } from "#entities/reconnect-grace"
import { iso } from "#entities/room/model"
import { decodeSnapshot, wakeFrom } from "#entities/room/snapshot"
import { ActorHarness, roomOfThree, seatedPlayers } from "../../support/room-gateways.ts"

const second = 1000
const minute = 60 * second
const grace = 30 * second

const isSeated = (harness: ActorHarness, player: string): boolean =>
  seatedPlayers(harness).includes(player)

/** Asserts that the seat stays for this long, and not a millisecond longer. */
const assertLasts = (harness: ActorHarness, player: string, millis: number): void => {
  const graceUntil = harness.actor.peek(player)?.graceUntil
  assert.strictEqual(graceUntil, iso(harness.now + millis), "the end in `welcome`")
  harness.wait(millis - 1)
  assert.isTrue(isSeated(harness, player), "the seat stays")
  harness.wait(1)
  assert.isFalse(isSeated(harness, player), "the seat is free")
}

/** All connections close, as when their node drains. */
const drain = (harness: ActorHarness): void => {
  for (const player of ["ann", "ben", "cat"]) harness.drop(player, true, true)
}

describe("a seat in a room whose runner stops", () => {
  it.for([5, 45, 300])(
    "keeps a seat for its whole grace after the service was away for %i s",
    (away) => {
      const harness = roomOfThree()
      drain(harness)
      harness.wait(2 * second)
      harness.stop(away * second)
      assertLasts(harness, "ben", grace)
    }
  )

  it("keeps the seat of a player who dropped before the room stopped for the rest of its grace", () => {
    const harness = roomOfThree()
    harness.drop("ben")
    harness.wait(10 * second)
    harness.stop(5 * minute)
    harness.watch("n1")
    assertLasts(harness, "ben", 20 * second)
  })

  it("gives the seat back to a player who returns within its grace after the room was away", () => {
    const harness = roomOfThree()
    drain(harness)
    harness.stop(5 * minute)
    harness.watch("n1")
    harness.wait(29 * second)
    harness.join("ben", "n1", "resume")
    harness.wait(5 * minute)
    assert.deepStrictEqual(seatedPlayers(harness), ["ben"])
  })

  it("keeps a seat for ten minutes from the drop at most, however often the room moves", () => {
    const harness = roomOfThree()
    const droppedAt = harness.now
    drain(harness)
    for (let move = 0; move < 3; move++) {
      harness.stop(3 * minute)
      harness.wait(10 * second)
    }
    harness.stop(20 * second)
    const end = droppedAt + graces.absenceSeconds * second
    assert.isAbove(end, harness.now)
    assertLasts(harness, "ben", end - harness.now)
  })

  it("frees the seats of absent players when the service was away for over ten minutes", () => {
    const harness = roomOfThree()
    drain(harness)
    harness.stop(11 * minute)
    harness.wait(1)
    assert.deepStrictEqual(seatedPlayers(harness), [])
  })
})

describe("a seat in a room whose runner is lost", () => {
  it("starts the grace of a seat when a room that moved notices that the node is gone too", () => {
    const harness = roomOfThree()
    harness.crash(5 * minute)
    harness.watch("n1")
    harness.wait(5 * second)
    assertLasts(harness, "ben", grace)
  })

  it("keeps a seat for what was left of its grace when a lost runner wrote the last snapshot", () => {
    const harness = roomOfThree()
    harness.drop("ben")
    harness.wait(10 * second)
    harness.crash(5 * minute)
    harness.watch("n1")
    assertLasts(harness, "ben", grace)
  })

  it("counts ten minutes from the last snapshot for a connection that never came back", () => {
    const harness = roomOfThree()
    harness.crash(11 * minute)
    harness.watch("n1")
    harness.wait(5 * second)
    assert.deepStrictEqual(seatedPlayers(harness), ["ann", "cat"])
  })

  it("refuses a player who returns eleven minutes after the loss, before the room notices it", () => {
    const harness = roomOfThree()
    harness.crash(11 * minute)
    assert.isNull(harness.actor.peek("ben"))
    harness.watch("n1")
    harness.join("ben", "n1", "resume")
    assert.strictEqual(harness.gateways.n1.outputs.at(-1)?.kind, "refuse")
  })

  it("keeps a member whose gateway has survived, however long the room was away", () => {
    const harness = roomOfThree()
    harness.crash(11 * minute)
    harness.watch("n1")
    harness.watch("n2")
    harness.wait(5 * minute)
    assert.deepStrictEqual(seatedPlayers(harness), ["ann", "ben", "cat"])
  })
})

describe("the host of a room that wakes", () => {
  it("keeps the role of an absent host for five seconds after the room wakes", () => {
    const harness = roomOfThree()
    harness.drop("ann")
    harness.wait(4 * second)
    harness.stop(5 * minute)
    harness.watch("n2")
    harness.wait(5 * second - 1)
    assert.strictEqual(harness.actor.state?.hostId, "ann")
    harness.wait(1)
    assert.strictEqual(harness.actor.state?.hostId, "ben")
  })
})

describe("a seat while players of its environment wait for admission", () => {
  it("holds the grace of a seat while players wait, and lets it go on when nobody waits", () => {
    const harness = roomOfThree()
    harness.drop("ben")
    harness.wait(10 * second)
    harness.hold(true)
    harness.wait(minute)
    assert.isTrue(isSeated(harness, "ben"))
    harness.hold(false)
    assertLasts(harness, "ben", 20 * second)
  })

  it("holds the grace of a player who drops while others wait from the drop on", () => {
    const harness = roomOfThree()
    harness.hold(true)
    harness.drop("ben")
    harness.wait(minute)
    harness.hold(false)
    assertLasts(harness, "ben", grace)
  })

  it("holds the grace of a seat for two minutes at most, in all waits together", () => {
    const harness = roomOfThree()
    const droppedAt = harness.now
    harness.drop("ben")
    for (let wait = 0; wait < 4; wait++) {
      harness.hold(true)
      harness.wait(50 * second)
      harness.hold(false)
    }
    assert.isFalse(isSeated(harness, "ben"))
    const left = harness.gateways.n1.frames.find(({ event }) => event.t === "player_left")
    assert.isDefined(left)
    assert.isAtLeast(harness.now, droppedAt + graces.waitingSeconds * second + grace)
  })

  it("frees a seat while players still wait, when two minutes and its grace are over", () => {
    const harness = roomOfThree()
    harness.drop("ben")
    harness.hold(true)
    harness.wait(graces.waitingSeconds * second + grace - 1)
    assert.isTrue(isSeated(harness, "ben"))
    harness.wait(1)
    assert.isFalse(isSeated(harness, "ben"))
  })

  it("holds the grace of a seat over a move of the room, and counts both", () => {
    const harness = roomOfThree()
    harness.drop("ben")
    harness.wait(5 * second)
    harness.hold(true)
    harness.wait(30 * second)
    harness.stop(4 * minute)
    harness.watch("n1")
    harness.wait(30 * second)
    harness.hold(false)
    assertLasts(harness, "ben", 25 * second)
  })

  it("announces an absence with the moved end of its grace", () => {
    const harness = roomOfThree()
    harness.hold(true)
    harness.drop("ben", true)
    harness.wait(second)
    const event = harness.gateways.n1.frames.at(-1)?.event
    assert.deepStrictEqual(event, {
      t: "player_disconnected",
      playerId: "ben",
      graceUntil: iso(harness.now + grace)
    })
  })

  it.for(["left", "banned", "deleted"] as const)(
    "frees a seat whose grace is held at once when its player is %s",
    (how) => {
      const harness = roomOfThree()
      harness.drop("ben")
      harness.hold(true)
      if (how === "left") harness.send("n2", { t: "leave", playerId: "ben", reason: "left" })
      else harness.actor.removePlayer("ben", how)
      assert.isFalse(isSeated(harness, "ben"))
    }
  )

  it("leaves a room without absent members as it is while players wait, and writes nothing", () => {
    const harness = roomOfThree()
    const before = harness.actor.state
    const { length } = harness.snapshots
    harness.hold(true)
    harness.wait(minute - 1)
    harness.hold(false)
    assert.strictEqual(harness.actor.state, before)
    assert.lengthOf(harness.snapshots, length)
  })
})

describe("a snapshot of release 0.1", () => {
  const older = (snapshot: string): string =>
    JSON.stringify(JSON.parse(snapshot), (key, value: unknown) =>
      ["droppedAt", "waitedMillis", "byService", "seenAt", "heldSince", "writtenAt"].includes(key)
        ? undefined
        : value
    )

  it("keeps the seats of absent members when a room wakes from a snapshot of release 0.1", () => {
    const harness = roomOfThree()
    drain(harness)
    const stored = Effect.runSync(decodeSnapshot(older(harness.snapshots.at(-1) ?? "")))
    const state = wakeFrom(stored, harness.now + 5 * minute)
    assert.deepStrictEqual(
      Array.from(state.members.values(), ({ absence }) => absence?.since),
      ["ann", "ben", "cat"].map(() => harness.now + 5 * minute)
    )
  })
})
