/** The pure rules of stats: periods, also across daylight saving changes, and value checks. */
import { assert, describe, it } from "@effect/vitest"
import { DateTime, Result } from "effect"
import * as fc from "fast-check"
import { decodeConfig } from "#rpc/config-document/document"
import { makePeriods, type Periods, periodsAt } from "#server/features/stats/periods"
import { checkValues, rulesOf } from "#server/features/stats/rules"

const at = (iso: string): number => DateTime.toEpochMillis(DateTime.makeUnsafe(iso))

const periodsOf = (zone: string, iso: string): string => {
  const { day, month, week } = periodsAt(zone, at(iso))
  return `${day} ${week} ${month}`
}

const zones = [
  "UTC",
  "Europe/Berlin",
  "America/New_York",
  "America/Sao_Paulo",
  "Asia/Kolkata",
  "Asia/Tehran",
  "Australia/Lord_Howe",
  "Pacific/Apia",
  "Pacific/Kiritimati",
  "Africa/Cairo"
]

const dayMillis = 86_400_000

describe("periods", () => {
  it("begins periods at local midnight: weeks on Monday, months on the first", () => {
    for (const [zone, iso, expected] of [
      ["UTC", "2026-11-20T23:59:59.999Z", "2026-11-20 2026-11-16 2026-11-01"],
      ["UTC", "2026-11-21T00:00:00.000Z", "2026-11-21 2026-11-16 2026-11-01"],
      // A Sunday is the last day of its week; a Monday the first.
      ["UTC", "2026-11-22T12:00:00.000Z", "2026-11-22 2026-11-16 2026-11-01"],
      ["UTC", "2026-11-23T00:00:00.000Z", "2026-11-23 2026-11-23 2026-11-01"],
      // A week across a year's end starts on its Monday.
      ["UTC", "2027-01-01T00:00:00.000Z", "2027-01-01 2026-12-28 2027-01-01"],
      ["UTC", "2028-02-29T23:00:00.000Z", "2028-02-29 2028-02-28 2028-02-01"],
      ["Asia/Tokyo", "2026-11-20T15:00:00.000Z", "2026-11-21 2026-11-16 2026-11-01"],
      ["Asia/Tokyo", "2026-11-20T14:59:59.999Z", "2026-11-20 2026-11-16 2026-11-01"],
      ["America/New_York", "2026-12-01T04:59:59.999Z", "2026-11-30 2026-11-30 2026-11-01"],
      ["America/New_York", "2026-12-01T05:00:00.000Z", "2026-12-01 2026-11-30 2026-12-01"]
    ] as const) {
      assert.strictEqual(periodsOf(zone, iso), expected, `${zone} ${iso}`)
    }
  })

  it("computes periods across daylight saving: 23 and 25 hour days, skipped midnights", () => {
    for (const [zone, last, first, day] of [
      ["Europe/Berlin", "2026-03-28T22:59:59.999Z", "2026-03-28T23:00:00.000Z", "2026-03-29"],
      ["Europe/Berlin", "2026-03-29T21:59:59.999Z", "2026-03-29T22:00:00.000Z", "2026-03-30"],
      ["Europe/Berlin", "2026-10-24T21:59:59.999Z", "2026-10-24T22:00:00.000Z", "2026-10-25"],
      ["Europe/Berlin", "2026-10-25T22:59:59.999Z", "2026-10-25T23:00:00.000Z", "2026-10-26"],
      // Sao Paulo went from 23:59:59 to 01:00 of the next day.
      ["America/Sao_Paulo", "2018-11-04T02:59:59.999Z", "2018-11-04T03:00:00.000Z", "2018-11-04"],
      // Lord Howe shifts by half an hour.
      ["Australia/Lord_Howe", "2026-04-04T12:59:59.999Z", "2026-04-04T13:00:00.000Z", "2026-04-05"],
      // Samoa skipped 30 December 2011.
      ["Pacific/Apia", "2011-12-30T09:59:59.999Z", "2011-12-30T10:00:00.000Z", "2011-12-31"]
    ] as const) {
      assert.notStrictEqual(periodsAt(zone, at(last)).day, day, `${zone} ${last}`)
      assert.strictEqual(periodsAt(zone, at(first)).day, day, `${zone} ${first}`)
    }
    // A repeated hour belongs to one day.
    const twice = ["2026-10-25T00:30:00.000Z", "2026-10-25T01:30:00.000Z"]
    assert.lengthOf(new Set(twice.map((iso) => periodsOf("Europe/Berlin", iso))), 1)
  })

  it("computes growing periods of the right length that contain their day, in every zone", () => {
    const moment = fc.integer({ min: at("2000-01-01"), max: at("2045-01-01") })
    fc.assert(
      fc.property(fc.constantFrom(...zones), moment, fc.nat(40 * dayMillis), (zone, from, span) => {
        const before = periodsAt(zone, from)
        const after = periodsAt(zone, from + span)
        for (const period of ["day", "week", "month"] as const) {
          assert.isTrue(before[period] <= after[period])
        }
        const { day, month, week } = before
        assert.strictEqual(DateTime.getPartUtc(DateTime.makeUnsafe(week), "weekDay"), 1)
        assert.isTrue(week <= day && at(day) - at(week) < 7 * dayMillis)
        assert.strictEqual(month, `${day.slice(0, 7)}-01`)
        if (span === 0) assert.deepStrictEqual(before, after)
        // No local day is longer than 25 hours, so the date changes within 26.
        assert.notStrictEqual(day, periodsAt(zone, from + (26 * dayMillis) / 24).day)
      }),
      { numRuns: 500 }
    )
  })

  it("returns the same periods from the cache", () => {
    const remembered = makePeriods()
    const zone = fc.constantFrom(...zones)
    const millis = fc.integer({ min: at("2026-10-24T20:00:00Z"), max: at("2026-10-26T02:00:00Z") })
    fc.assert(
      fc.property(zone, millis, (name, now) => {
        const expected: Periods = periodsAt(name, now)
        assert.deepStrictEqual(remembered(name, now), expected)
      }),
      { numRuns: 500 }
    )
  })
})

const configOf = (document: object) => Result.getOrThrow(decodeConfig(document))

const config = configOf({
  features: { stats: true, statsVerification: true },
  stats: [
    { key: "kills", maxPerSubmit: 10 },
    { key: "best", aggregation: "max" },
    { key: "constructor", aggregation: "latest" }
  ],
  integrity: {
    stats: {
      rules: [
        { stat: "kills", min: 0 },
        { stat: "best", max: 100 },
        { stat: "best", min: -5, max: 90 },
        { stat: "unheard", max: 1 }
      ]
    }
  }
})

describe("rules", () => {
  it("reports the first failed check of each value and accepts the others", () => {
    const values = { kills: 11, best: 91, constructor: 1e308, unheard: 0, toString: 1 }
    assert.deepStrictEqual(checkValues(rulesOf(config), values), {
      accepted: [{ stat: "constructor", value: 1e308, aggregation: "latest" }],
      rejected: [
        { stat: "kills", value: 11, reason: "above_max_per_submit" },
        { stat: "best", value: 91, reason: "above_max" },
        { stat: "unheard", value: 0, reason: "unknown_stat" },
        { stat: "toString", value: 1, reason: "unknown_stat" }
      ]
    })
    const { rejected } = checkValues(rulesOf(config), { kills: -1, best: -6 })
    assert.deepStrictEqual(
      rejected.map(({ reason }) => reason),
      ["below_min", "below_min"]
    )
  })

  it("accepts values at the bounds of a rule", () => {
    for (const values of [{ kills: 10 }, { kills: 0 }, { best: 90 }, { best: -5 }]) {
      assert.isEmpty(checkValues(rulesOf(config), values).rejected)
    }
  })

  it("applies ranges only while statsVerification is on, and maxPerSubmit always", () => {
    const off = configOf({
      stats: [{ key: "kills", maxPerSubmit: 10 }],
      integrity: { stats: { rules: [{ stat: "kills", min: 5 }] } }
    })
    assert.isEmpty(checkValues(rulesOf(off), { kills: 1 }).rejected)
    assert.lengthOf(checkValues(rulesOf(off), { kills: 11 }).rejected, 1)
  })

  it("puts every value into exactly one list", () => {
    const report = fc.dictionary(
      fc.constantFrom("kills", "best", "constructor", "other", "__proto__"),
      fc.double({ noNaN: true, noDefaultInfinity: true })
    )
    fc.assert(
      fc.property(report, (values) => {
        const { accepted, rejected } = checkValues(rulesOf(config), values)
        const judged = [...accepted, ...rejected].map(({ stat, value }) => [stat, value])
        assert.sameDeepMembers(judged, Object.entries(values))
      })
    )
  })
})
