/** Times of the dashboard, as people read them. */
import { afterEach, assert, beforeEach, describe, it, vi } from "@effect/vitest"
import { DateTime } from "effect"
import { relativeTime } from "#dashboard/core/time"

describe("a relative time", () => {
  const now = DateTime.makeUnsafe("2026-11-26T12:00:00Z")
  beforeEach(() => void vi.useFakeTimers({ now: DateTime.toEpochMillis(now) }))
  afterEach(() => void vi.useRealTimers())
  const after = (seconds: number) =>
    relativeTime(DateTime.formatIso(DateTime.add(now, { seconds })))

  it("distinguishes a moment to come from one that has passed", () => {
    assert.deepStrictEqual([-5, -30, 5, 59].map(after), [
      "just now",
      "less than a minute ago",
      "in less than a minute",
      "in less than a minute"
    ])
  })

  it("counts in the largest unit that fits", () => {
    assert.deepStrictEqual([-60, 90 * 60, -86_400, 3 * 86_400].map(after), [
      "1 minute ago",
      "in 2 hours",
      "yesterday",
      "in 3 days"
    ])
  })
})
