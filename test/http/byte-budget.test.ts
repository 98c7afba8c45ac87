/** The budget in bytes that connections share: who is cut when it is exhausted, and when. */
import { assert, describe, it } from "@effect/vitest"
import { ByteBudget, type Holding } from "#server/http/byte-budget"

/** A budget of 100 bytes whose cuts are recorded as `name reason`. */
const makeBudget = () => {
  const budget = new ByteBudget(100)
  const cuts: Array<string> = []
  const hold = (name: string, bytes: number, deadline = 10) => {
    const [owner = name] = name.split("-")
    const holding = budget.open(owner, deadline, (reason) => cuts.push(`${name} ${reason}`))
    holding.add(bytes)
    return holding
  }
  return { budget, cuts, hold }
}

describe("the byte budget", () => {
  it("cuts the oldest holding of the owner with the most bytes", () => {
    const { budget, cuts, hold } = makeBudget()
    hold("ada-1", 30)
    hold("bob-1", 25)
    hold("bob-2", 25)
    hold("cy-1", 20)
    assert.deepStrictEqual(cuts, [])
    hold("dee-1", 1)
    assert.deepStrictEqual(cuts, ["bob-1 exhausted"])
    assert.strictEqual(budget.bytes, 76)
  })

  it("cuts a holding that is larger than the budget, and nothing that fits beside it", () => {
    const { budget, cuts, hold } = makeBudget()
    hold("ada-1", 10)
    hold("bob-1", 101)
    assert.deepStrictEqual(cuts, ["bob-1 exhausted"])
    assert.strictEqual(budget.bytes, 10)
  })

  it("cuts no holding whose bytes wait for the service", () => {
    const { cuts, hold } = makeBudget()
    hold("ada-1", 90).keep()
    hold("bob-1", 20)
    assert.deepStrictEqual(cuts, ["bob-1 exhausted"])
  })

  it("cuts a holding at its deadline, once", () => {
    const { budget, cuts, hold } = makeBudget()
    const late = hold("ada-1", 10, 5)
    hold("bob-1", 10, 6)
    budget.sweep(4)
    assert.deepStrictEqual(cuts, [])
    budget.sweep(5)
    budget.sweep(5)
    assert.deepStrictEqual(cuts, ["ada-1 late"])
    late.add(95)
    late.release()
    assert.strictEqual(budget.bytes, 10)
    assert.deepStrictEqual(cuts, ["ada-1 late"])
  })

  it("cuts no late holding that the cut of another one has just released or kept", () => {
    const left = { release: 0, keep: 5 }
    for (const act of ["release", "keep"] as const) {
      const cuts: Array<string> = []
      const budget = new ByteBudget(100)
      const others: Array<Holding> = []
      budget.open("ada", 10, () => {
        cuts.push("ada")
        for (const other of others) other[act]()
      })
      const bob = budget.open("bob", 10, () => cuts.push("bob"))
      bob.add(5)
      others.push(bob)
      budget.sweep(11)
      budget.sweep(12)
      assert.deepStrictEqual(cuts, ["ada"], act)
      assert.strictEqual(budget.bytes, left[act], act)
    }
  })
})
