/** Deadlines of requests to links. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { replyMillis } from "#server/links/entity-call"
import { makeReplyDeadlines } from "#server/links/reply-deadlines"

const stepMillis = replyMillis / 3

describe("reply deadlines", () => {
  it.effect("calls back for each request that is overdue, and not for one that had its reply", () =>
    Effect.gen(function* () {
      const deadline = yield* makeReplyDeadlines
      const overdue: Array<string> = []
      deadline(() => overdue.push("first"))
      yield* TestClock.adjust(stepMillis)
      const answered = deadline(() => overdue.push("answered"))
      yield* TestClock.adjust(stepMillis)
      deadline(() => overdue.push("third"))
      answered()
      assert.deepStrictEqual(overdue, [])
      yield* TestClock.adjust(stepMillis)
      assert.deepStrictEqual(overdue, ["first"])
      yield* TestClock.adjust(stepMillis)
      assert.deepStrictEqual(overdue, ["first"])
      yield* TestClock.adjust(stepMillis)
      assert.deepStrictEqual(overdue, ["first", "third"])
    })
  )

  it.effect("notices an overdue reply after a time without requests", () =>
    Effect.gen(function* () {
      const deadline = yield* makeReplyDeadlines
      const overdue: Array<string> = []
      deadline(() => overdue.push("first"))()
      yield* TestClock.adjust(10 * replyMillis)
      deadline(() => overdue.push("second"))
      yield* TestClock.adjust(replyMillis)
      assert.deepStrictEqual(overdue, ["second"])
    })
  )
})
