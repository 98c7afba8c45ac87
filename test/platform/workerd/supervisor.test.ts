/** Gate, watchdog and restarts of the supervisor, on processes that only exist here. */
import { assert, describe, it } from "@effect/vitest"
import { CpuAccounts } from "#server/platform/workerd/cpu-accounts"
import { parseStat, type ProcessUsage } from "#server/platform/process-usage"
import { RestartPace } from "#server/platform/workerd/restart-pace"
import { CpuBudget } from "#server/platform/workerd/cpu-budget"
import {
  type Call,
  type EndReason,
  type EntryKind,
  Supervisor
} from "#server/platform/workerd/supervisor"

class FakeProcess {
  readonly #exit = Promise.withResolvers<void>()
  readonly exited = this.#exit.promise
  readonly pid: number
  killed = false
  usage: ProcessUsage = { cpuMillis: 0, memoryBytes: 0 }

  constructor(pid: number) {
    this.pid = pid
  }

  kill(): void {
    this.killed = true
    this.#exit.resolve()
  }
}

/** Time passes with each look at the clock. */
const stepMillis = 3

const setup = (budgetMillis = 0) => {
  const refusals = new Map<EntryKind, Error>()
  const started: Array<FakeProcess> = []
  const ends: Array<EndReason> = []
  let failure: Error | undefined
  let time = 0
  const supervisor = new Supervisor<FakeProcess>({
    start: async () => {
      if (failure !== undefined) throw failure
      const process = new FakeProcess(started.length)
      started.push(process)
      return process
    },
    limits: () => ({ cpuMillis: 50, memoryBytes: 1000 }),
    usageOf: (pid) => started[pid]?.usage,
    budget: new CpuBudget(budgetMillis, 0),
    refusalOf: (kind) => refusals.get(kind),
    onCheck: () => undefined,
    now: () => (time += stepMillis),
    onEnd: (reason) => ends.push(reason),
    onCpu: () => undefined,
    waitingMax: 2,
    waitMillis: 60_000
  })
  return {
    supervisor,
    refusals,
    started,
    ends,
    fail: (error: Error | undefined) => {
      failure = error
    }
  }
}

/** The reason for which the call ends. */
const endOf = (call: Call<FakeProcess>): Promise<EndReason> =>
  new Promise((resolve) => call.onProcessEnd(resolve))

describe("supervisor", () => {
  it("starts one process for calls that come at once", async () => {
    const { started, supervisor } = setup()
    const calls = await Promise.all([supervisor.enter("call"), supervisor.enter("call")])
    assert.lengthOf(started, 1)
    for (const call of calls) call.end()
    assert.strictEqual(supervisor.load, 0)
  })

  it("ends a call that uses too much CPU time, and serves the next one", async () => {
    const { ends, started, supervisor } = setup()
    const call = await supervisor.enter("call")
    const ended = endOf(call)
    started[0]!.usage = { cpuMillis: 10_000, memoryBytes: 0 }
    assert.strictEqual(await ended, "cpu")
    assert.isTrue(started[0]!.killed)
    const next = await supervisor.enter("call")
    assert.strictEqual(next.process, started[1])
    assert.deepStrictEqual(ends, ["cpu"])
    next.end()
  })

  it("ends a process that uses too much memory and its call, and serves the next one", async () => {
    const { ends, started, supervisor } = setup()
    const call = await supervisor.enter("call")
    const ended = endOf(call)
    started[0]!.usage = { cpuMillis: 0, memoryBytes: 1001 }
    assert.strictEqual(await ended, "memory")
    assert.isTrue(started[0]!.killed)
    const next = await supervisor.enter("call")
    assert.strictEqual(next.process, started[1])
    assert.deepStrictEqual(ends, ["memory"])
    next.end()
  })

  it("starts a call that finds the process over its limit on the next one", async () => {
    const { ends, started, supervisor } = setup()
    const before = await supervisor.enter("call")
    before.end()
    started[0]!.usage = { cpuMillis: 0, memoryBytes: 1001 }
    const call = await supervisor.enter("call")
    assert.strictEqual(call.process, started[1])
    assert.deepStrictEqual(ends, ["memory"])
    call.end()
  })

  it("charges a call only with what was used during it", async () => {
    const { started, supervisor } = setup()
    const first = await supervisor.enter("call")
    started[0]!.usage = { cpuMillis: 30, memoryBytes: 0 }
    first.end()
    const second = await supervisor.enter("call")
    assert.strictEqual(second.account?.used, 0)
    second.end()
  })

  it("reports a crash to the calls under way, and starts again", async () => {
    const { ends, started, supervisor } = setup()
    const call = await supervisor.enter("call")
    const ended = endOf(call)
    started[0]!.kill()
    assert.strictEqual(await ended, "crash")
    const next = await supervisor.enter("call")
    assert.lengthOf(started, 2)
    assert.deepStrictEqual(ends, ["crash"])
    next.end()
  })

  it("lets calls end, and others wait, while something runs without the process", async () => {
    const { started, supervisor } = setup()
    const call = await supervisor.enter("call")
    const steps: Array<string> = []
    const work = supervisor.exclusively(60_000, async () => {
      steps.push("work")
    })
    const waiting = supervisor.enter("call").then((next) => {
      steps.push("next")
      return next
    })
    assert.isFalse(started[0]!.killed)
    call.end()
    await work
    const next = await waiting
    assert.deepStrictEqual(steps, ["work", "next"])
    assert.isTrue(started[0]!.killed)
    assert.strictEqual(next.process, started[1])
    next.end()
  })

  it("refuses calls beyond those that may wait, and all after the stop", async () => {
    const { supervisor } = setup()
    const gate = Promise.withResolvers<void>()
    const work = supervisor.exclusively(0, () => gate.promise)
    const waiting = [supervisor.enter("call"), supervisor.enter("call")]
    const refused = await supervisor.enter("call").catch((error: unknown) => error)
    assert.propertyVal(refused, "reason", "busy")
    gate.resolve()
    await work
    for (const call of await Promise.all(waiting)) call.end()
    await supervisor.stop(0)
    const stopped = await supervisor.enter("call").catch((error: unknown) => error)
    assert.propertyVal(stopped, "reason", "stopped")
  })

  it("hands the failure of a start to those who wait", async () => {
    const { fail, supervisor } = setup()
    fail(new Error("no such program"))
    const refused = await supervisor.enter("call").catch((error: unknown) => error)
    assert.propertyVal(refused, "message", "no such program")
    fail(undefined)
    const call = await supervisor.enter("call")
    call.end()
  })
})

describe("supervisor with a budget", () => {
  it("ends a process that uses more than the budget, though each call is within its limit", async () => {
    const { ends, started, supervisor } = setup(1000)
    for (let used = 40; ends.length === 0; used += 40) {
      const call = await supervisor.enter("call")
      started[0]!.usage = { cpuMillis: used, memoryBytes: 0 }
      call.end()
      assert.isBelow(used, 2000)
    }
    assert.deepStrictEqual(ends, ["budget"])
    assert.isTrue(started[0]!.killed)
  })

  it("refuses work with the error of its refusal, also work that waited for the start", async () => {
    const { refusals, supervisor } = setup()
    const waiting = supervisor.enter("call")
    refusals.set("call", new Error("used up"))
    assert.propertyVal(await waiting.catch((error: unknown) => error), "message", "used up")
    const maintenance = await supervisor.enter("maintenance")
    maintenance.end()
    assert.strictEqual(supervisor.load, 0)
  })

  it("ends what is under way when the storage is used up, and starts no process by itself", async () => {
    const { ends, started, supervisor } = setup()
    const call = await supervisor.enter("call")
    const ended = endOf(call)
    supervisor.end("storage")
    assert.strictEqual(await ended, "storage")
    assert.deepStrictEqual(ends, ["storage"])
    assert.lengthOf(started, 1)
    assert.isUndefined(supervisor.process)
  })
})

describe("CPU budget", () => {
  const minute = 60_000

  it("lets a process use its budget within a minute at once, and refuses calls beyond it", () => {
    const budget = new CpuBudget(1000, 0)
    assert.strictEqual(budget.charge(999, 0), "within")
    assert.strictEqual(budget.waitMillis(0), 0)
    assert.strictEqual(budget.charge(1, 0), "spent")
    assert.strictEqual(budget.charge(100, 0), "spent")
    assert.strictEqual(budget.charge(1, 0), "overdrawn")
  })

  it("admits calls again when a quarter of the budget is repaid", () => {
    const budget = new CpuBudget(1000, 0)
    budget.charge(1000, 0)
    assert.strictEqual(budget.waitMillis(0), minute / 4)
    assert.strictEqual(budget.waitMillis(minute / 8), minute / 8)
    assert.strictEqual(budget.waitMillis(minute / 4), 0)
    assert.strictEqual(budget.usedMillis(minute), 0)
  })

  it("bounds what endless work uses over many minutes, however often it starts again", () => {
    const budget = new CpuBudget(1000, 0)
    let used = 0
    for (let now = 0; now < 10 * minute; now += 10) {
      if (budget.waitMillis(now) > 0) continue
      used += 10
      budget.charge(10, now)
    }
    // The budget of ten minutes, and what it had at the start.
    assert.isAtMost(used, 11 * 1000)
    assert.isAtLeast(used, 9 * 1000)
  })

  it("does not bound a process without a budget", () => {
    const budget = new CpuBudget(0, 0)
    assert.strictEqual(budget.charge(minute, 0), "within")
    assert.strictEqual(budget.waitMillis(0), 0)
  })
})

describe("CPU accounts", () => {
  it("divides CPU time among the calls under way", () => {
    const accounts = new CpuAccounts()
    const one = accounts.open(50)
    const other = accounts.open(50)
    assert.isFalse(accounts.charge(80, 10, 50, false))
    assert.deepStrictEqual([one.used, other.used], [40, 40])
    accounts.close(other)
    assert.isTrue(accounts.charge(11, 10, 50, false))
  })

  it("bounds the CPU time in which none of many calls ends", () => {
    const accounts = new CpuAccounts()
    const calls = Array.from({ length: 300 }, () => accounts.open(50))
    assert.isFalse(accounts.charge(1990, 10, 50, false))
    assert.isTrue(accounts.charge(20, 10, 50, false))
    // Calls that end explain what they have used, and so does output.
    for (const call of calls.slice(0, 20)) accounts.close(call)
    assert.isFalse(accounts.charge(980, 10, 50, false))
    accounts.progressed()
    assert.isFalse(accounts.charge(1990, 10, 50, false))
    // Four calls may use all that they have.
    const heavy = new CpuAccounts()
    for (let call = 0; call < 10; call += 1) heavy.open(1000)
    assert.isFalse(heavy.charge(3990, 10, 1000, false))
    assert.isTrue(heavy.charge(30, 10, 1000, false))
  })

  it("lets work outside calls use its share of each second", () => {
    const accounts = new CpuAccounts()
    assert.isFalse(accounts.charge(50, 1000, 50, true))
    assert.isFalse(accounts.charge(50, 1000, 50, true))
    assert.isTrue(accounts.charge(50, 10, 50, true))
    accounts.progressed()
    assert.isFalse(accounts.charge(40, 10, 50, true))
  })
})

describe("restarts", () => {
  it("waits longer before a restart the more processes failed within a minute", () => {
    let now = 0
    const pace = new RestartPace(() => now)
    const delays = Array.from({ length: 12 }, () => {
      pace.failed()
      return pace.delay()
    })
    assert.deepStrictEqual(delays.slice(0, 6), [0, 0, 0, 100, 200, 400])
    assert.strictEqual(delays.at(-1), 5000)
    now = 60_000
    assert.strictEqual(pace.delay(), 0)
  })

  it("reads the usage of a process whose name has spaces", () => {
    const text = `12 (a) b (c) S 1 1 1 0 -1 4194560 9 0 0 0 7 5 0 0 20 0 1 0 100 1000 3 18446744073709551615`
    assert.deepStrictEqual(parseStat(text), { cpuMillis: 120, memoryBytes: 3 * 4096 })
  })
})
