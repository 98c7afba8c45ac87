/** The state machine of entity links, and its decisions after a stream has ended. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { RoomNotFound, Unavailable } from "#rpc/errors/codes"
import * as State from "#server/links/link-state"

const roomMissing = { _tag: "room_missing", message: "" }

/** Attached to activation `epoch` through attachment `attachment`. */
const attachedTo = (epoch: number, attachment = 1): State.LinkState =>
  State.receive(State.open(State.initialState, attachment), epoch, true)

type Step = (state: State.LinkState) => State.LinkState

const epochs = fc.integer({ min: 1, max: 4 })

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.constant<Step>((state) => State.open(state, state.attachment + 1)),
  fc.tuple(epochs, fc.boolean()).map(
    ([epoch, isEmpty]): Step =>
      (state) =>
        State.receive(state, epoch, isEmpty)
  ),
  fc.constant<Step>(State.leave),
  fc.constant<Step>(State.beginCall),
  fc.constant<Step>((state) => State.completeCall(state, state.calls)),
  fc.constant<Step>((state) => State.failCall(state, state.calls)),
  fc.constant<Step>(State.close)
)

const run = (steps: ReadonlyArray<Step>): ReadonlyArray<State.LinkState> => {
  const states: Array<State.LinkState> = [State.initialState]
  let state: State.LinkState = State.initialState
  for (const next of steps) states.push((state = next(state)))
  return states
}

describe("the attachment of a link", () => {
  it("attaches a link with the first empty batch of a stream", () => {
    const attaching = State.open(State.initialState, 7)
    assert.strictEqual(State.receive(attaching, 3, false), attaching)
    assert.deepInclude(State.receive(attaching, 3, true), {
      tag: "attached",
      epoch: 3,
      attachment: 7
    })
  })

  it("ends the attachment of a link at a batch of a newer activation, and ignores older ones", () => {
    const attached = attachedTo(3)
    assert.strictEqual(State.receive(attached, 2, false), attached)
    assert.strictEqual(State.receive(attached, 4, false).tag, "moved")
  })

  it("ignores batches while the stream closes and while the link waits", () => {
    const moved = State.leave(attachedTo(3))
    assert.strictEqual(State.receive(moved, 4, true), moved)
    const waiting = State.close(moved)
    assert.strictEqual(State.receive(waiting, 4, true), waiting)
  })

  it("attaches no link to an older activation on a new stream", () => {
    const again = State.open(State.close(attachedTo(3)), 2)
    assert.strictEqual(State.receive(again, 2, true), again)
    assert.strictEqual(State.receive(again, 3, true).tag, "attached")
  })

  it("never counts an epoch, an attachment or a call down", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const states = run(steps)
        for (const [index, after] of states.entries()) {
          const before = states[index - 1] ?? State.initialState
          assert.isAtLeast(after.epoch, before.epoch)
          assert.isAtLeast(after.attachment, before.attachment)
          assert.isAtLeast(after.calls, before.calls)
        }
      })
    )
  })

  it("attaches a link only from a stream that was opened for it", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const states = run(steps)
        for (const [index, after] of states.entries()) {
          const before = states[index - 1] ?? State.initialState
          if (after.tag === "attached" && before.tag !== "attached") {
            assert.strictEqual(before.tag, "attaching")
            assert.isFalse(after.calling)
          }
        }
      })
    )
  })
})

describe("calls of a link", () => {
  it("runs the calls of a link one at a time, and only while it is attached", () => {
    assert.strictEqual(State.beginCall(State.initialState), State.initialState)
    const calling = State.beginCall(attachedTo(1))
    assert.deepInclude(calling, { calling: true, calls: 1 })
    assert.strictEqual(State.beginCall(calling), calling)
    assert.deepInclude(State.completeCall(calling, 1), { calling: false, calls: 1 })
  })

  it("ends the attachment of a link when a call fails", () => {
    assert.strictEqual(State.failCall(State.beginCall(attachedTo(1)), 1).tag, "moved")
  })

  it("ignores the calls of an earlier attachment", () => {
    const again = State.receive(State.open(State.close(State.beginCall(attachedTo(1))), 2), 1, true)
    assert.strictEqual(State.failCall(again, 1), again)
    const calling = State.beginCall(again)
    assert.strictEqual(State.completeCall(calling, 1), calling)
    assert.strictEqual(State.failCall(calling, 1), calling)
  })
})

describe("a link that has ended", () => {
  it("keeps an ended link ended, with its first error", () => {
    const error = new RoomNotFound()
    fc.assert(
      fc.property(
        fc.array(step, { maxLength: 20 }),
        fc.array(step, { maxLength: 20 }),
        (before, after) => {
          const last = run(before).at(-1) ?? State.initialState
          let state = State.end(last, error)
          for (const next of after) state = next(state)
          state = State.end(state, new Unavailable())
          assert.deepInclude(state, { tag: "ended", error })
        }
      )
    )
  })
})

describe("after a stream has ended", () => {
  const first = State.firstRetry(0)

  it("ends a link when its entity does not exist", () => {
    const error = new RoomNotFound()
    const decision = State.afterStream(first, { wasAttached: true, error, now: 1 })
    assert.deepStrictEqual(decision, { tag: "lost", error })
  })

  it("retries with growing delays up to half a second after a stream has ended", () => {
    const delays: Array<number> = []
    let retry = first
    for (let i = 0; i < 12; i++) {
      const stream = { wasAttached: false, error: undefined, now: 1 }
      const decision = State.afterStream(retry, stream)
      if (decision.tag === "lost") return assert.fail("the entity is not lost")
      delays.push(decision.delayMillis)
      retry = decision.retry
    }
    assert.deepStrictEqual(delays.slice(0, 3), [20, 30, 45])
    assert.deepStrictEqual(
      delays,
      delays.toSorted((a, b) => a - b)
    )
    assert.strictEqual(delays.at(-1), 500)
  })

  it("resets the delay when a stream attaches", () => {
    const retry = { attempts: 8, attachedAt: 0, missingSince: undefined }
    const stream = { wasAttached: true, error: undefined, now: 50_000 }
    const decision = State.afterStream(retry, stream)
    assert.deepInclude(decision, { tag: "retry", delayMillis: 20, failsCommands: false })
  })

  it("fails commands once the entity was unreachable for six seconds", () => {
    const after = (now: number) =>
      State.afterStream(first, { wasAttached: false, error: new Unavailable(), now })
    assert.deepInclude(after(5999), { tag: "retry", failsCommands: false })
    assert.deepInclude(after(6000), { tag: "retry", failsCommands: true })
  })

  it("waits three seconds for a link to attach, less while its commands fail before, and three after", () => {
    const at = (now: number) => State.attachMillis(first, now)
    assert.deepStrictEqual([at(0), at(3000), at(4500), at(5999)], [3000, 3000, 1500, 1])
    assert.deepStrictEqual([at(6000), at(50_000)], [3000, 3000], "the commands have failed")
  })

  it("gives up a missing entity after six seconds, until which its commands wait", () => {
    const missing = { wasAttached: false, error: roomMissing }
    const decision = State.afterStream(first, { ...missing, now: 20_000 })
    assert.deepInclude(decision, { tag: "retry", failsCommands: false })
    if (decision.tag !== "retry") return
    const later = (now: number) => State.afterStream(decision.retry, { ...missing, now })
    assert.strictEqual(later(25_999).tag, "retry")
    assert.deepStrictEqual(later(26_000), { tag: "lost", error: roomMissing })
  })

  it("restarts the patience with a missing entity after another error", () => {
    const retry = { attempts: 0, attachedAt: 0, missingSince: 0 }
    const stream = { wasAttached: false, error: new Unavailable(), now: 6000 }
    const decision = State.afterStream(retry, stream)
    assert.strictEqual(decision.tag === "retry" && decision.retry.missingSince, undefined)
  })
})
