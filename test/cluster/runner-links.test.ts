/** Link to another node: batching, reports of lost batches, heartbeats, closing and reopening. */
import { assert, describe, it } from "@effect/vitest"
import {
  linkCallsMax,
  linkWaitingMaxCharacters,
  type RunnerConnection,
  RunnerLink
} from "#server/cluster/runner-link"
import { runnerPort } from "#server/cluster/runner-port-limits"
import { FlushScheduler } from "#server/platform/flush"
import { socketLimits } from "#server/platform/socket-limits"

const { coalesceMillis, loadMeasuredMillis } = socketLimits
const batchMaxCharacters = runnerPort.frameMaxBytes / 4

/** A connection that records what the link does. */
class TestConnection implements RunnerConnection {
  readonly ended: (reason: string) => void
  /** Calls without a reply. */
  readonly calls: Array<(refused: ReadonlyArray<string>) => void> = []
  /** All batches that are not heartbeats. */
  readonly sent: Array<string> = []
  closed = false

  constructor(ended: (reason: string) => void) {
    this.ended = ended
  }

  readonly call: RunnerConnection["call"] = (batch, replied) => {
    this.calls.push(replied)
    if (batch !== "") this.sent.push(batch)
  }

  readonly close = (): void => {
    this.closed = true
  }
}

/** A link whose connections the test controls from the other end. */
const makeLink = () => {
  const clock = { now: 1_000_000, busy: 0 }
  const connections: Array<TestConnection> = []
  const timers: Array<{ readonly millis: number; readonly run: () => void }> = []
  const ends: Array<string> = []
  const link = new RunnerLink({
    open: (ended) => {
      const connection = new TestConnection(ended)
      connections.push(connection)
      return connection
    },
    now: () => clock.now,
    scheduler: new FlushScheduler(() => clock.now, {
      soon: (run) => timers.push({ millis: 0, run }),
      later: (run, millis) => timers.push({ millis, run }),
      busyMillis: () => clock.busy
    }),
    onClose: (reason) => ends.push(reason)
  })
  /** Runs the timers that are set, on the test's clock; returns their delays. */
  const runTimers = (): ReadonlyArray<number> =>
    timers.splice(0).map(({ millis, run }) => {
      clock.now += millis
      run()
      return millis
    })
  const connection = (index = connections.length - 1) => {
    const found = connections[index]
    if (found === undefined) throw new Error("The link has not opened a connection")
    return found
  }
  /** The other node replies to the oldest call, and new batches leave. */
  const reply = (refused: ReadonlyArray<string> = []): void => {
    const call = connection().calls.shift()
    if (call === undefined) throw new Error("No call waits for a reply")
    call(refused)
    runTimers()
  }
  const lost: Array<string> = []
  const submit = (room: string, text = "") => {
    const command = { t: "send", playerId: "p", type: "m", data: text } as const
    link.send({ room, node: "node_a", watch: 1, inputs: [{ seq: -1, command }] }, () =>
      lost.push(room)
    )
  }
  const deliver = (room: string, frames: ReadonlyArray<string> = []) => {
    const items = frames.map((frame) => ({ kind: "event", to: null, except: null, frame }) as const)
    link.send({ room, epoch: 1, watch: 1, from: "here|1", items }, () => lost.push(room))
  }
  return { clock, ends, runTimers, link, lost, submit, deliver, reply, connection, connections }
}

/** A link whose connection has replied to its first heartbeat. */
const makeOpenLink = () => {
  const made = makeLink()
  assert.isFalse(made.link.probe())
  made.reply()
  made.clock.now += coalesceMillis
  return made
}

const roomsOf = (batch: string): ReadonlyArray<string> =>
  Array.from(batch.matchAll(/"room":"([^"]*)"/g), ([, room]) => room ?? "")

describe("a runner link", () => {
  it("sends everything of one flush in one call", () => {
    const { runTimers, submit, deliver, connection } = makeOpenLink()
    submit("a")
    deliver("b")
    submit("c")
    runTimers()
    assert.deepStrictEqual(connection().sent.map(roomsOf), [["a", "c", "b"]])
  })

  it("sends at once while idle, and coalesces while the event loop is busy", () => {
    const { clock, runTimers, submit } = makeOpenLink()
    submit("a")
    assert.deepStrictEqual(runTimers(), [0])
    clock.now += 1
    submit("b")
    assert.deepStrictEqual(runTimers(), [0])
    for (let interval = 0; interval < 10; interval++) {
      clock.now += loadMeasuredMillis
      clock.busy += loadMeasuredMillis
      submit("c")
      runTimers()
    }
    clock.now += 1
    submit("d")
    assert.deepStrictEqual(runTimers(), [coalesceMillis - 1])
  })

  it("sends nothing over a new runner link until the other node replies, so that calls arrive in order", () => {
    const { runTimers, submit, reply, connection } = makeLink()
    submit("a")
    runTimers()
    submit("b")
    runTimers()
    assert.isEmpty(connection().sent)
    reply()
    assert.deepStrictEqual(connection().sent.map(roomsOf), [["a", "b"]])
  })

  it("holds batches back while too many have no reply", () => {
    const { runTimers, submit, reply, connection } = makeOpenLink()
    const names = Array.from({ length: linkCallsMax + 2 }, (_, i) => `r${i}`)
    for (const name of names) {
      submit(name)
      runTimers()
    }
    assert.lengthOf(connection().sent, linkCallsMax)
    reply()
    assert.deepStrictEqual(roomsOf(connection().sent.at(-1) ?? ""), names.slice(-2))
  })

  it("splits what is too large for one call, in order", () => {
    const { runTimers, deliver, reply, connection, lost } = makeOpenLink()
    const third = "x".repeat(batchMaxCharacters / 3)
    deliver("a", [`1${third}`, `2${third}`, `3${third}`, `4${third}`])
    deliver("b", ["5"])
    runTimers()
    const { sent } = connection()
    for (const batch of sent) assert.isBelow(batch.length, batchMaxCharacters * 1.01)
    assert.deepStrictEqual(
      sent.join("").match(/"frame":"\d/g),
      ["1", "2", "3", "4", "5"].map((n) => `"frame":"${n}`)
    )
    reply()
    connection().ended("cut")
    assert.deepStrictEqual(lost, ["a", "b"])
  })

  it("reports the batches without a reply as lost when a runner link closes", () => {
    const { runTimers, lost, submit, deliver, reply, connection } = makeOpenLink()
    submit("a")
    runTimers()
    reply()
    deliver("b")
    runTimers()
    submit("c")
    connection().ended("cut")
    assert.deepStrictEqual(lost, ["b", "c"])
    connection(0).ended("cut again")
    assert.lengthOf(lost, 2)
  })

  it("closes the connection of a runner link that ends, and reports why", () => {
    const { runTimers, ends, lost, submit, connection } = makeOpenLink()
    submit("a")
    runTimers()
    connection().ended("the batch is invalid")
    assert.deepStrictEqual(ends, ["the batch is invalid"])
    assert.isTrue(connection().closed)
    assert.deepStrictEqual(lost, ["a"])
  })

  it("reports refused inputs, and nothing else of that room", () => {
    const { runTimers, lost, submit, deliver, reply } = makeOpenLink()
    submit("a")
    submit("b")
    deliver("a")
    runTimers()
    reply(["a", "unknown"])
    assert.deepStrictEqual(lost, ["a"])
  })

  it("keeps a runner link while calls are answered, and closes it after five heartbeats without a reply", () => {
    const { ends, link, lost, submit, reply, connection } = makeOpenLink()
    assert.isTrue(link.probe())
    submit("a")
    link.heartbeat()
    assert.isTrue(link.probe())
    link.heartbeat()
    assert.isFalse(link.probe())
    assert.lengthOf(connection().calls, 1)
    reply()
    assert.isTrue(link.probe())
    for (let missed = 0; missed < 5; missed++) link.heartbeat()
    assert.isEmpty(ends)
    link.heartbeat()
    assert.deepStrictEqual(ends, ["the other node does not answer"])
    assert.isTrue(connection().closed)
    assert.isFalse(link.probe())
    assert.deepStrictEqual(lost, ["a"])
  })

  it("reopens a runner link after a back-off, and takes nothing before that", () => {
    const { clock, runTimers, link, lost, submit, reply, connection, connections } = makeLink()
    submit("a")
    connection().ended("refused")
    assert.deepStrictEqual(lost, ["a"])
    runTimers()
    submit("b")
    assert.deepStrictEqual(lost, ["a", "b"])
    assert.lengthOf(connections, 1)
    clock.now += 50
    submit("c")
    runTimers()
    reply()
    assert.lengthOf(connections, 2)
    assert.deepStrictEqual(connection().sent.map(roomsOf), [["c"]])
    connection().ended("refused")
    clock.now += 50
    assert.isFalse(link.probe())
    assert.lengthOf(connections, 3)
    connection().ended("refused")
    clock.now += 50
    assert.isFalse(link.probe())
    assert.lengthOf(connections, 3)
    clock.now += 50
    assert.isFalse(link.probe())
    assert.lengthOf(connections, 4)
  })

  it("keeps the messages of 630 rooms at 60 Hz while the other node pauses for two seconds", () => {
    const { connection, ends, lost, reply, submit } = makeLink()
    const count = 2 * 60 * 630
    for (let i = 0; i < count; i++) submit(`r${i % 630}`, "x".repeat(100))
    assert.isEmpty(ends)
    reply()
    assert.lengthOf(connection().sent.flatMap(roomsOf), count)
    assert.isEmpty(lost)
  })

  it("closes a runner link when too many characters wait", () => {
    const { ends, lost, submit } = makeLink()
    const text = "x".repeat(16_384)
    let sent = 0
    while (ends.length === 0) {
      submit("a", text)
      sent += 1
      assert.isAtMost(sent, 2 * (linkWaitingMaxCharacters / text.length), "no bound")
    }
    assert.lengthOf(lost, sent)
  })

  it("counts a runner link as idle a minute after it has closed", () => {
    const { clock, link, submit, connection } = makeLink()
    submit("a")
    clock.now += 3_600_000
    assert.isFalse(link.isIdle)
    connection().ended("cut")
    clock.now += 1000
    assert.isFalse(link.isIdle)
    clock.now += 60_000
    assert.isTrue(link.isIdle)
  })
})
