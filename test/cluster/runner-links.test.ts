/** Link to another node: batching, reports of lost batches, heartbeats, closing and reopening. */
import { assert, describe, it } from "@effect/vitest"
import { rooms, socket } from "#rpc/limits"
import { FlushScheduler } from "#server/platform/flush"
import { pong, ping, LinkStats, RunnerLink } from "#server/cluster/runner-link"
import type { RunnerConnectionEvents } from "#server/cluster/runner-transport"

const { coalesceMillis } = socket

/** A link whose connections the test controls from the other end. */
const makeLink = () => {
  const clock = { now: 1_000_000 }
  const connections: Array<
    RunnerConnectionEvents & { readonly sent: Array<string>; closed: string | undefined }
  > = []
  const timers: Array<{ readonly millis: number; readonly run: () => void }> = []
  const ends: Array<string> = []
  const link = new RunnerLink({
    open: (events) => {
      const connection = { ...events, sent: new Array<string>(), closed: undefined }
      const opened: (typeof connections)[number] = connection
      connections.push(opened)
      return {
        send: (frame) => opened.sent.push(frame),
        close: (why) => {
          opened.closed = why
        }
      }
    },
    now: () => clock.now,
    stats: new LinkStats(),
    scheduler: new FlushScheduler(() => clock.now, {
      soon: (run) => timers.push({ millis: 0, run }),
      later: (run, millis) => timers.push({ millis, run })
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
  const lost: Array<string> = []
  const submit = (room: string) =>
    link.submit({ room, node: "node_a", watch: 1, inputs: [] }, () => lost.push(room))
  const deliver = (room: string, watch = 1) =>
    link.deliver({ room, epoch: 1, watch, from: "here|1", items: [] }, () => lost.push(room))
  return { clock, ends, runTimers, link, lost, submit, deliver, connection, connections }
}

const roomsOf = (frame: string | undefined): ReadonlyArray<string> =>
  Array.from((frame ?? "").matchAll(/"room":"([^"]*)"/g), ([, room]) => room ?? "")

describe("a runner link", () => {
  it("sends everything of one flush in one frame, in order", () => {
    const { runTimers, submit, deliver, connection } = makeLink()
    submit("a")
    deliver("b")
    submit("c")
    runTimers()
    assert.deepStrictEqual(connection().sent.map(roomsOf), [[], ["a", "c", "b"]])
  })

  it("sends at once while idle, and coalesces while busy", () => {
    const { clock, runTimers, submit } = makeLink()
    submit("a")
    assert.deepStrictEqual(runTimers(), [0])
    clock.now += 1
    submit("b")
    assert.deepStrictEqual(runTimers(), [coalesceMillis - 1])
    clock.now += coalesceMillis
    submit("c")
    assert.deepStrictEqual(runTimers(), [0])
  })

  it("reports a loss when it closes, except for batches that a heartbeat has acknowledged", () => {
    const { runTimers, link, lost, submit, deliver, connection } = makeLink()
    submit("a")
    runTimers()
    connection().received(pong)
    link.heartbeat()
    assert.deepStrictEqual(connection().sent.filter((frame) => frame === ping).length, 2)
    deliver("b")
    submit("b")
    runTimers()
    connection().received(pong)
    connection().ended("cut")
    assert.deepStrictEqual(lost, ["b", "b"])
    connection(0).ended("cut again")
    assert.lengthOf(lost, 2)
  })

  it("does not count a pong for batches sent after the ping", () => {
    const { runTimers, lost, submit, connection } = makeLink()
    submit("a")
    runTimers()
    connection().received(pong)
    connection().ended("cut")
    assert.deepStrictEqual(lost, ["a"])
  })

  it("reports refused inputs once", () => {
    const { runTimers, lost, submit, deliver, connection } = makeLink()
    submit("a")
    submit("b")
    deliver("a")
    runTimers()
    connection().received(JSON.stringify(["a", "unknown"]))
    assert.deepStrictEqual(lost, ["a"])
    connection().received(JSON.stringify(["a"]))
    assert.deepStrictEqual(lost, ["a"])
    connection().ended("cut")
    assert.deepStrictEqual(lost, ["a", "b", "a"])
  })

  it("stays alive while heartbeats are answered, and closes after five without a pong", () => {
    const { ends, link, lost, submit, connection } = makeLink()
    assert.strictEqual(link.status, "unknown")
    connection().received(pong)
    assert.strictEqual(link.status, "alive")
    submit("a")
    link.heartbeat()
    assert.strictEqual(link.status, "alive")
    link.heartbeat()
    assert.strictEqual(link.status, "silent")
    connection().received(pong)
    assert.strictEqual(link.status, "alive")
    for (let missed = 0; missed < 5; missed++) link.heartbeat()
    assert.isEmpty(ends)
    link.heartbeat()
    assert.deepStrictEqual(ends, ["the other node does not answer"])
    assert.deepStrictEqual(connection().closed, "the other node does not answer")
    assert.strictEqual(link.status, "unknown")
    assert.isEmpty(lost)
  })

  it("reopens after a back-off, and takes nothing before that", () => {
    const { clock, runTimers, link, lost, submit, connection, connections } = makeLink()
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
    assert.lengthOf(connections, 2)
    assert.deepStrictEqual(connection().sent.map(roomsOf), [[], ["c"]])
    connection().ended("refused")
    clock.now += 50
    assert.strictEqual(link.status, "unknown")
    assert.lengthOf(connections, 2)
    clock.now += 50
    assert.strictEqual(link.status, "unknown")
    assert.lengthOf(connections, 3)
  })

  it("holds batches back while the other node has not answered the last ping", () => {
    const { clock, runTimers, submit, connection } = makeLink()
    submit("a")
    runTimers()
    clock.now += 100
    submit("b")
    runTimers()
    submit("c")
    runTimers()
    assert.deepStrictEqual(connection().sent.map(roomsOf), [[], ["a"]])
    connection().received(pong)
    runTimers()
    assert.deepStrictEqual(connection().sent.map(roomsOf), [[], ["a"], ["b", "c"], []])
    assert.strictEqual(connection().sent.at(-1), ping)
  })

  it("closes when its buffer is full", () => {
    const { clock, runTimers, ends, lost, submit } = makeLink()
    submit("a")
    runTimers()
    clock.now += 100
    for (let i = 0; i < rooms.watchBufferItems; i++) submit("b")
    runTimers()
    assert.isEmpty(ends)
    submit("b")
    assert.lengthOf(ends, 1)
    assert.deepStrictEqual(lost, ["a", "b"])
  })

  it("counts as idle a minute after it has closed", () => {
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

  it("closes on an invalid reply", () => {
    const { ends, lost, submit, connection } = makeLink()
    submit("a")
    connection().received("Hello?")
    assert.lengthOf(ends, 1)
    assert.isDefined(connection().closed)
    assert.deepStrictEqual(lost, ["a"])
  })

  it("keeps one callback for each room, however many batches it sends", () => {
    const { runTimers, lost, submit, connection } = makeLink()
    for (let i = 0; i < 1000; i++) {
      submit("a")
      runTimers()
    }
    connection().ended("cut")
    assert.deepStrictEqual(lost, ["a"])
  })
})
