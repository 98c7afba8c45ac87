/** The budget that the sockets of a node share: whose sockets are closed when it is exhausted. */
import { assert, describe, it } from "@effect/vitest"
import { type Backlog, OutboxBudget } from "#server/platform/outbox-budget"

/** A budget of 800 bytes, and sockets named `environment-number` whose ends are recorded. */
const makeBudget = () => {
  const budget = new OutboxBudget(800)
  const ends: Array<string> = []
  const socketOf = (name: string) => {
    const socket: { -readonly [Key in keyof Backlog]: Backlog[Key] } = {
      environmentId: name.split("-", 1).join(""),
      waitingBytes: 0,
      isClosing: false,
      closeSlow: () => {
        socket.isClosing = true
        ends.push(`${name} closed`)
      },
      cut: () => ends.push(`${name} cut`)
    }
    const wait = (bytes: number): void => {
      socket.waitingBytes = bytes
      budget.count(socket)
    }
    return { socket, wait }
  }
  const behind = (name: string, bytes: number) => {
    const opened = socketOf(name)
    opened.wait(bytes)
    return opened
  }
  return { behind, budget, ends }
}

describe("the budget of outboxes", () => {
  it("closes the largest backlogs of the environment with the most unsent bytes", () => {
    const { behind, ends } = makeBudget()
    behind("b-1", 190)
    for (const [n, bytes] of [100, 150, 100, 150, 100].entries()) behind(`a-${n}`, bytes)
    assert.deepStrictEqual(ends, [])
    behind("a-5", 20)
    assert.deepStrictEqual(ends, ["a-3 closed", "a-1 closed", "a-1 cut"])
  })

  it("counts what sockets have sent meanwhile before the budget closes any", () => {
    const { behind, budget, ends } = makeBudget()
    const first = behind("a-1", 700)
    first.socket.waitingBytes = 0
    behind("a-2", 200)
    assert.deepStrictEqual(ends, [])
    assert.strictEqual(budget.bytes, 200)
  })

  it("cuts closed sockets whose clients do not read, before the budget is exceeded", () => {
    const { behind, budget, ends } = makeBudget()
    behind("a-1", 400)
    behind("a-2", 300)
    behind("a-3", 101)
    assert.deepStrictEqual(ends, ["a-1 closed", "a-1 cut"])
    assert.strictEqual(budget.bytes, 401)
    behind("b-1", 390)
    behind("b-2", 10)
    assert.deepStrictEqual(ends.slice(2), ["a-2 closed", "a-2 cut"])
  })

  it("keeps outboxes within the budget however many sockets fall behind, and treats environments alike", () => {
    const { behind, budget, ends } = makeBudget()
    const quiet = behind("b-1", 50)
    for (let n = 0; n < 1000; n++) {
      behind(`a-${n}`, 1 + (n % 100))
      assert.isAtMost(budget.bytes, 800)
    }
    assert.isFalse(quiet.socket.isClosing, ends.join(", "))
  })

  it("forgets a socket whose connection has ended", () => {
    const { behind, budget } = makeBudget()
    const { socket } = behind("a-1", 400)
    budget.release(socket)
    assert.strictEqual(budget.bytes, 0)
  })
})
