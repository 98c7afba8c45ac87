/** The rule of graces, against a plain count of the time in which the player could return. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import {
  type Absence,
  absent,
  afterGap,
  afterHold,
  graceDeadline,
  graceEnd,
  graces
} from "#entities/reconnect-grace"

const start = 1_800_000_000_000
const second = 1000
const waitingMax = graces.waitingSeconds * second
const absenceMax = graces.absenceSeconds * second

/** A stretch of time: the entity is awake, its graces are held, or it is on no runner. */
interface Stretch {
  readonly kind: "awake" | "held" | "gap"
  readonly millis: number
}

const stretch: fc.Arbitrary<Stretch> = fc.record({
  kind: fc.constantFrom("awake", "held", "gap"),
  millis: fc.integer({ min: 0, max: 200_000 })
})

interface Scenario {
  readonly graceMillis: number
  readonly byService: boolean
  readonly stretches: ReadonlyArray<Stretch>
}

const scenario: fc.Arbitrary<Scenario> = fc.record({
  graceMillis: fc.integer({ min: 0, max: 300 }).map((seconds) => seconds * second),
  byService: fc.boolean(),
  stretches: fc.array(stretch, { maxLength: 12 })
})

const checkProperty = (check: (drawn: Scenario) => void): void =>
  fc.assert(fc.property(scenario, check), { numRuns: 2000 })

/** Counts, stretch by stretch, when the grace ends; undefined if it lasts. */
const countedEnd = ({ byService, graceMillis, stretches }: Scenario): number | undefined => {
  let now = start
  let left = graceMillis
  let waitable = waitingMax
  const last = start + Math.max(absenceMax, graceMillis)
  for (const { kind, millis } of stretches) {
    const standing = kind === "gap" ? millis : kind === "held" ? Math.min(millis, waitable) : 0
    if (kind === "held") waitable -= standing
    if (kind === "gap" && byService) left = graceMillis
    const running = millis - standing
    // Nobody looks at a grace in a gap: what ended there ends when the entity wakes.
    const end = Math.min(now + standing + left, kind === "gap" ? Number.POSITIVE_INFINITY : last)
    if (left <= running && end <= now + millis) return end
    if (now + millis >= last) return kind === "gap" ? now + millis : last
    left -= running
    now += millis
  }
  return undefined
}

/** Lets the same time pass over an absence, as an entity does. */
const actualEnd = ({ byService, graceMillis, stretches }: Scenario): number | undefined => {
  let now = start
  let absence: Absence = absent(start, graceMillis, { byService })
  for (const { kind, millis } of stretches) {
    const from = now
    now += millis
    const heldSince = kind === "held" ? from : null
    const grace = { millis: graceMillis, heldSince }
    if (kind === "gap") absence = afterGap(absence, { from, to: now }, graceMillis)
    const deadline = graceDeadline(absence, grace)
    if (deadline <= now) return kind === "gap" ? now : Math.max(from, deadline)
    if (heldSince !== null) absence = afterHold(absence, heldSince, now, graceMillis)
  }
  return undefined
}

describe("a grace", () => {
  it("ends a grace when the player could have returned for its whole duration", () => {
    checkProperty((drawn) => {
      // Where nothing is left to count, the first look ends the grace.
      if (drawn.graceMillis === 0) return
      assert.strictEqual(actualEnd(drawn), countedEnd(drawn))
    })
  })

  it("ends a grace no earlier than without holds and gaps, and never beyond its bounds", () => {
    checkProperty((drawn) => {
      const end = actualEnd(drawn)
      if (end === undefined) return
      const gaps = drawn.stretches.filter(({ kind }) => kind === "gap")
      const longestGap = Math.max(0, ...gaps.map(({ millis }) => millis))
      assert.isAtLeast(end, start + (drawn.graceMillis === 0 ? 0 : drawn.graceMillis))
      assert.isAtMost(end, start + Math.max(absenceMax, drawn.graceMillis) + longestGap)
    })
  })

  it("bounds a grace that begins late from the time at which the connection was last seen", () => {
    const absence = absent(start, 30 * second, { byService: true, seenAt: start - absenceMax })
    assert.strictEqual(graceEnd(absence, { millis: 30 * second, heldSince: null }, start), start)
  })

  it("moves the end of a grace while it is held, up to the latest one", () => {
    const absence = absent(start, 30 * second, { byService: false })
    const grace = { millis: 30 * second, heldSince: start + 10 * second }
    const endAt = (seconds: number) => graceEnd(absence, grace, start + seconds * second)
    assert.strictEqual(endAt(10), start + 30 * second)
    assert.strictEqual(endAt(50), start + 70 * second)
    assert.strictEqual(endAt(1000), start + 30 * second + waitingMax)
    assert.strictEqual(graceDeadline(absence, grace), start + 30 * second + waitingMax)
  })
})
