/**
 * Player session state machine: one connection counts, and it has at most one reservation.
 */
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import * as fc from "fast-check"
import {
  decide,
  noReservation,
  type Reservation,
  type SessionCommand,
  type SessionState
} from "#entities/player-session/state"
import { sessionSteps } from "../../support/generators.ts"

const seat = (roomId: string): Reservation => ({ kind: "seat", roomId })
const ticket = (ticketId: string): Reservation => ({ kind: "ticket", ticketId })

/** A session that handles commands one after the other. */
class Session {
  state: SessionState = { connectionId: null, reservation: noReservation }
  /** The connections that were replaced. */
  readonly replaced: Array<string> = []

  /** The code of the refusal, or `granted`. */
  run(command: SessionCommand): string {
    const result = decide(this.state, command)
    if (Result.isFailure(result)) return result.failure._tag
    this.state = result.success.state
    if (result.success.replaced !== null) this.replaced.push(result.success.replaced)
    return "granted"
  }

  attach(connectionId: string, reservation: Reservation = noReservation): this {
    this.run({ t: "attach", connectionId, reservation })
    return this
  }

  detach(connectionId: string): this {
    this.run({ t: "detach", connectionId })
    return this
  }

  claim(connectionId: string, reservation: Reservation): string {
    return this.run({ t: "claim", connectionId, reservation })
  }
}

describe("the connection of a session", () => {
  it("replaces a connection by a newer one, which keeps the seat", () => {
    const session = new Session().attach("c1")
    session.claim("c1", seat("r1"))
    session.attach("c2")
    assert.deepStrictEqual(session.replaced, ["c1"])
    assert.deepStrictEqual(session.state, { connectionId: "c2", reservation: seat("r1") })
  })

  it("replaces a connection at once when it attaches after a newer one", () => {
    const session = new Session().attach("c2").attach("c1", seat("r1"))
    assert.deepStrictEqual(session.replaced, ["c1"])
    assert.deepStrictEqual(session.state, { connectionId: "c2", reservation: noReservation })
  })

  it("does not replace a connection that attaches again", () => {
    const session = new Session().attach("c1").attach("c1")
    assert.deepStrictEqual(session.replaced, [])
  })

  it("lets only the newest connection claim a reservation", () => {
    const session = new Session().attach("c1").attach("c2")
    assert.strictEqual(session.claim("c1", seat("r1")), "unavailable")
    assert.strictEqual(session.claim("c2", seat("r1")), "granted")
    session.detach("c2")
    assert.strictEqual(session.claim("c2", seat("r1")), "unavailable")
  })

  it("keeps the reservation when an older connection detaches", () => {
    const session = new Session().attach("c1").attach("c2")
    session.claim("c2", ticket("t1"))
    session.detach("c1")
    assert.deepStrictEqual(session.state, { connectionId: "c2", reservation: ticket("t1") })
  })
})

describe("the reservation of a session", () => {
  it("refuses a second seat or a ticket beside a seat, and names the room in the error", () => {
    const session = new Session().attach("c1")
    session.claim("c1", seat("r1"))
    assert.strictEqual(session.claim("c1", ticket("t1")), "already_in_room")
    const refused = decide(session.state, {
      t: "claim",
      connectionId: "c1",
      reservation: seat("r2")
    })
    assert.isTrue(Result.isFailure(refused))
    if (Result.isFailure(refused)) {
      assert.deepInclude(refused.failure, { details: { roomId: "r1" } })
    }
  })

  it("refuses a seat or a second ticket beside a ticket", () => {
    const session = new Session().attach("c1")
    session.claim("c1", ticket("t1"))
    assert.strictEqual(session.claim("c1", ticket("t2")), "already_matching")
    assert.strictEqual(session.claim("c1", seat("r1")), "already_matching")
  })

  it("lets the connection that holds a reservation claim it again", () => {
    const session = new Session().attach("c1")
    for (const reservation of [seat("r1"), ticket("t1")]) {
      session.claim("c1", reservation)
      assert.strictEqual(session.claim("c1", reservation), "granted")
      session.run({ t: "release", reservation })
    }
    assert.deepStrictEqual(session.state.reservation, noReservation)
  })

  it("releases a reservation only for the same room or ticket", () => {
    const session = new Session().attach("c1")
    session.claim("c1", seat("r1"))
    session.run({ t: "release", reservation: seat("r2") })
    session.run({ t: "release", reservation: ticket("r1") })
    assert.deepStrictEqual(session.state.reservation, seat("r1"))
    session.run({ t: "release", reservation: seat("r1") })
    assert.deepStrictEqual(session.state.reservation, noReservation)
  })

  it("keeps a seat after a disconnect, but not a ticket", () => {
    const seated = new Session().attach("c1", seat("r1")).detach("c1").attach("c2")
    assert.deepStrictEqual(seated.state, { connectionId: "c2", reservation: seat("r1") })
    const matching = new Session().attach("c1", ticket("t1")).detach("c1").attach("c2")
    assert.deepStrictEqual(matching.state, { connectionId: "c2", reservation: noReservation })
  })

  it("drops the ticket when a newer connection replaces the older one", () => {
    const session = new Session().attach("c1")
    session.claim("c1", ticket("t1"))
    session.attach("c2")
    assert.deepStrictEqual(session.state.reservation, noReservation)
    assert.strictEqual(
      session.run({ t: "confirm", connectionId: "c1", ticketId: "t1", roomId: "r1" }),
      "unavailable"
    )
  })

  it("restores the reservation from the connection when the session moves", () => {
    const woken = new Session()
    woken.state = { connectionId: null, reservation: seat("old") }
    woken.attach("c1", ticket("t1"))
    assert.deepStrictEqual(woken.state.reservation, ticket("t1"))
    woken.attach("c1", seat("r2"))
    assert.deepStrictEqual(woken.state.reservation, seat("r2"))
    woken.attach("c1", noReservation)
    assert.deepStrictEqual(woken.state.reservation, seat("r2"))
  })
})

describe("a match of a session's ticket", () => {
  it.each(["confirm", "settle"] as const)(
    "turns a matched ticket into a seat by %s, also when the match is repeated",
    (t) => {
      const session = new Session().attach("c1")
      session.claim("c1", ticket("t1"))
      const confirm: SessionCommand = { t, connectionId: "c1", ticketId: "t1", roomId: "r1" }
      assert.strictEqual(session.run(confirm), "granted")
      assert.strictEqual(session.run(confirm), "granted")
      assert.deepStrictEqual(session.state.reservation, seat("r1"))
    }
  )

  it("refuses a match for a foreign ticket, and for a second room", () => {
    const session = new Session().attach("c1")
    session.claim("c1", ticket("t2"))
    assert.strictEqual(
      session.run({ t: "confirm", connectionId: "c1", ticketId: "t1", roomId: "r1" }),
      "unavailable"
    )
    session.run({ t: "confirm", connectionId: "c1", ticketId: "t2", roomId: "r2" })
    assert.strictEqual(
      session.run({ t: "confirm", connectionId: "c1", ticketId: "t2", roomId: "r3" }),
      "unavailable"
    )
    assert.deepStrictEqual(session.state.reservation, seat("r2"))
  })
})

describe("a session under random commands", () => {
  it("moves a player only out of the reservation it has, and only for its newest connection", () => {
    fc.assert(
      fc.property(sessionSteps, (steps) => {
        const session = new Session()
        for (const step of steps) {
          const before = session.state
          const answer = session.run(step)
          const { connectionId, reservation } = session.state
          if (answer !== "granted") assert.strictEqual(session.state, before)
          if (step.t === "attach" && before.connectionId !== null) {
            assert.isTrue(connectionId !== null && connectionId >= before.connectionId)
          }
          if (step.t === "claim") {
            const free = before.reservation.kind === "none"
            const same = JSON.stringify(before.reservation) === JSON.stringify(step.reservation)
            const newest = before.connectionId === step.connectionId
            assert.strictEqual(answer === "granted", newest && (free || same))
            if (answer === "granted") assert.deepStrictEqual(reservation, step.reservation)
          }
          if (reservation.kind === "ticket")
            assert.isNotNull(connectionId, "a disconnect removes a ticket")
          if (before.reservation.kind === "seat" && reservation.kind !== "seat") {
            const expected =
              step.t === "attach" || step.t === "release" ? step.reservation : undefined
            assert.isDefined(expected)
          }
        }
      }),
      { numRuns: 500 }
    )
  })
})
