/** The deadline of a call, with time that the test moves. */
import { assert, it } from "@effect/vitest"
import { onTestFinished, vi } from "vitest"
import { CallDeadline, uploadMillis } from "#server/features/functions/host/call-deadline"

const idleMillis = 30_000

const setUp = (wholeMillis: number) => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
  onTestFinished(() => void vi.useRealTimers())
  const onLate = vi.fn<() => void>()
  return { deadline: new CallDeadline(idleMillis, wholeMillis, onLate), onLate }
}

it("ends a function call in which nothing moves for 30 seconds", () => {
  const { onLate } = setUp(600_000)
  vi.advanceTimersByTime(idleMillis - 1)
  assert.strictEqual(onLate.mock.calls.length, 0)
  vi.advanceTimersByTime(1)
  assert.strictEqual(onLate.mock.calls.length, 1)
})

it("lets an upload go on while it moves, up to its bound over all", () => {
  const { deadline, onLate } = setUp(90_000)
  for (let passed = 0; passed < 100_000; passed += 20_000) {
    vi.advanceTimersByTime(20_000)
    deadline.progressed()
  }
  assert.strictEqual(onLate.mock.calls.length, 0)
  vi.advanceTimersByTime(20_000)
  assert.strictEqual(onLate.mock.calls.length, 1)
  deadline.progressed()
  vi.advanceTimersByTime(600_000)
  assert.strictEqual(onLate.mock.calls.length, 1, "it is late once")
})

it("never restarts the deadline of a function call after its end, even on progress", () => {
  const { deadline, onLate } = setUp(0)
  deadline.end()
  deadline.progressed()
  vi.advanceTimersByTime(600_000)
  assert.strictEqual(onLate.mock.calls.length, 0)
})

it("gives an upload the time of a slow client, and one of unknown size that of the largest", () => {
  const of = (headers: Record<string, string>) => uploadMillis({ headers })
  assert.strictEqual(of({ "content-length": String(16 * 1024 * 100) }), 130_000)
  const largest = 30_000 + 6_400_000
  assert.strictEqual(of({ "transfer-encoding": "chunked" }), largest)
  assert.strictEqual(of({ "content-length": "99999999999999" }), largest)
})
