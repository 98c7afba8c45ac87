/** A line to another node: what it carries, when it says that something is lost, when it gives up. */
import { assert, describe, it } from "@effect/vitest"
import { rooms, socket } from "#rpc/limits"
import { FlushScheduler } from "#server/platform/flush"
import { pong, ping, LinkStats, RunnerLink } from "#server/cluster/runner-link"
import type { RunnerConnectionEvents } from "#server/cluster/runner-transport"

const { coalesceMillis } = socket

/** A line over wires that the test holds the other end of. */
const makeLine = () => {
  const clock = { now: 1_000_000 }
  const wires: Array<
    RunnerConnectionEvents & { readonly sent: Array<string>; closed: string | undefined }
  > = []
  const timers: Array<{ readonly millis: number; readonly run: () => void }> = []
  const ends: Array<string> = []
  const line = new RunnerLink({
    open: (events) => {
      const wire = { ...events, sent: new Array<string>(), closed: undefined }
      const opened: (typeof wires)[number] = wire
      wires.push(opened)
      return {
        send: (frame) => opened.sent.push(frame),
        close: (why) => {
          opened.closed = why
        }
      }
    },
    now: () => clock.now,
    carried: new LinkStats(),
    turn: new FlushScheduler(() => clock.now, {
      soon: (run) => timers.push({ millis: 0, run }),
      later: (run, millis) => timers.push({ millis, run })
    }),
    ended: (why) => ends.push(why)
  })
  /** The timers that were set come due; answers how long they had to wait. */
  const leave = (): ReadonlyArray<number> =>
    timers.splice(0).map(({ millis, run }) => {
      clock.now += millis
      run()
      return millis
    })
  const wire = (index = wires.length - 1) => {
    const found = wires[index]
    if (found === undefined) throw new Error("The line has not opened a wire")
    return found
  }
  const lost: Array<string> = []
  const submit = (room: string) =>
    line.submit({ room, node: "node_a", watch: 1, inputs: [] }, () => lost.push(room))
  const tell = (room: string, watch = 1) =>
    line.tell({ room, epoch: 1, watch, from: "here|1", items: [] }, () => lost.push(room))
  return { clock, ends, leave, line, lost, submit, tell, wire, wires }
}

const roomsOf = (frame: string | undefined): ReadonlyArray<string> =>
  Array.from((frame ?? "").matchAll(/"room":"([^"]*)"/g), ([, room]) => room ?? "")

describe("a line", () => {
  it("carries all that has gathered in one frame, in order", () => {
    const { leave, submit, tell, wire } = makeLine()
    submit("a")
    tell("b")
    submit("c")
    leave()
    assert.deepStrictEqual(wire().sent.map(roomsOf), [[], ["a", "c", "b"]])
  })

  it("sends at once when it is quiet, and gathers when it is busy", () => {
    const { clock, leave, submit } = makeLine()
    submit("a")
    assert.deepStrictEqual(leave(), [0])
    clock.now += 1
    submit("b")
    assert.deepStrictEqual(leave(), [coalesceMillis - 1])
    clock.now += coalesceMillis
    submit("c")
    assert.deepStrictEqual(leave(), [0])
  })

  it("says what may be lost when it ends, and not what a heartbeat has confirmed", () => {
    const { leave, line, lost, submit, tell, wire } = makeLine()
    submit("a")
    leave()
    wire().received(pong)
    line.heartbeat()
    assert.deepStrictEqual(wire().sent.filter((frame) => frame === ping).length, 2)
    tell("b")
    submit("b")
    leave()
    wire().received(pong)
    wire().ended("cut")
    assert.deepStrictEqual(lost, ["b", "b"])
    wire(0).ended("cut again")
    assert.lengthOf(lost, 2)
  })

  it("does not take an answer for what was given after the heartbeat", () => {
    const { leave, lost, submit, wire } = makeLine()
    submit("a")
    leave()
    wire().received(pong)
    wire().ended("cut")
    assert.deepStrictEqual(lost, ["a"])
  })

  it("says once which commands were refused", () => {
    const { leave, lost, submit, tell, wire } = makeLine()
    submit("a")
    submit("b")
    tell("a")
    leave()
    wire().received(JSON.stringify(["a", "unheard of"]))
    assert.deepStrictEqual(lost, ["a"])
    wire().received(JSON.stringify(["a"]))
    assert.deepStrictEqual(lost, ["a"])
    wire().ended("cut")
    assert.deepStrictEqual(lost, ["a", "b", "a"])
  })

  it("lives while heartbeats are answered, and ends when they are not", () => {
    const { ends, line, lost, submit, wire } = makeLine()
    assert.strictEqual(line.status, "unknown")
    wire().received(pong)
    assert.strictEqual(line.status, "lives")
    submit("a")
    line.heartbeat()
    assert.strictEqual(line.status, "lives")
    line.heartbeat()
    assert.strictEqual(line.status, "silent")
    wire().received(pong)
    assert.strictEqual(line.status, "lives")
    for (let beats = 0; beats < 5; beats++) line.heartbeat()
    assert.isEmpty(ends)
    line.heartbeat()
    assert.deepStrictEqual(ends, ["the other node does not answer"])
    assert.deepStrictEqual(wire().closed, "the other node does not answer")
    assert.strictEqual(line.status, "unknown")
    assert.isEmpty(lost)
  })

  it("opens again after a while, and takes nothing before that", () => {
    const { clock, leave, line, lost, submit, wire, wires } = makeLine()
    submit("a")
    wire().ended("refused")
    assert.deepStrictEqual(lost, ["a"])
    leave()
    submit("b")
    assert.deepStrictEqual(lost, ["a", "b"])
    assert.lengthOf(wires, 1)
    clock.now += 50
    submit("c")
    leave()
    assert.lengthOf(wires, 2)
    assert.deepStrictEqual(wire().sent.map(roomsOf), [[], ["c"]])
    wire().ended("refused")
    clock.now += 50
    assert.strictEqual(line.status, "unknown")
    assert.lengthOf(wires, 2)
    clock.now += 50
    assert.strictEqual(line.status, "unknown")
    assert.lengthOf(wires, 3)
  })

  it("gathers while the other node is busy with what it has been sent", () => {
    const { clock, leave, submit, wire } = makeLine()
    submit("a")
    leave()
    clock.now += 100
    submit("b")
    leave()
    submit("c")
    leave()
    assert.deepStrictEqual(wire().sent.map(roomsOf), [[], ["a"]])
    wire().received(pong)
    leave()
    assert.deepStrictEqual(wire().sent.map(roomsOf), [[], ["a"], ["b", "c"], []])
    assert.strictEqual(wire().sent.at(-1), ping)
  })

  it("ends when more has gathered than it may hold", () => {
    const { clock, leave, ends, lost, submit } = makeLine()
    submit("a")
    leave()
    clock.now += 100
    for (let i = 0; i < rooms.watchBufferItems; i++) submit("b")
    leave()
    assert.isEmpty(ends)
    submit("b")
    assert.lengthOf(ends, 1)
    assert.deepStrictEqual(lost, ["a", "b"])
  })

  it("may be forgotten when nobody has needed it for long", () => {
    const { clock, line, submit, wire } = makeLine()
    submit("a")
    clock.now += 3_600_000
    assert.isFalse(line.isIdle)
    wire().ended("cut")
    clock.now += 1000
    assert.isFalse(line.isIdle)
    clock.now += 60_000
    assert.isTrue(line.isIdle)
  })

  it("hangs up on whoever answers with something else", () => {
    const { ends, lost, submit, wire } = makeLine()
    submit("a")
    wire().received("Hello?")
    assert.lengthOf(ends, 1)
    assert.isDefined(wire().closed)
    assert.deepStrictEqual(lost, ["a"])
  })

  it("remembers no more than one loss a room, however much it carries", () => {
    const { leave, lost, submit, wire } = makeLine()
    for (let i = 0; i < 1000; i++) {
      submit("a")
      leave()
    }
    wire().ended("cut")
    assert.deepStrictEqual(lost, ["a"])
  })
})
