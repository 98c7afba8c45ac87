/** Rules of voice calls that take time or are rare: grace, time limit, coalescing, media. */
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import {
  type CallCommand,
  type CallEmission,
  type CallState,
  type ChannelMember,
  openCall,
  retryAfter,
  voiceCalls
} from "#entities/voice-session/model"
import { decide, listed, nextDeadline } from "#entities/voice-session/state"

class CallHarness {
  now = 1_000_000
  state: CallState
  emissions: Array<CallEmission> = []
  readonly channel = new Map<string, ChannelMember>()
  #sessions = 0

  constructor(mode: "p2p" | "sfu" = "sfu") {
    this.state = openCall({ channel: "lobby", voice: { mode, relayOnly: false } }, this.now)
  }

  run(command: CallCommand): string {
    const result = decide(this.state, command, this.now)
    if (Result.isFailure(result)) return result.failure._tag
    const list = listed(result.success.state, this.now)
    this.state = list.state
    this.emissions.push(...result.success.emissions, ...list.emissions)
    return "ok"
  }

  join(id: string, session?: string, relayOnly = false): string {
    const connectionId = `cn_${id}`
    this.channel.set(id, { connectionId, canSpeak: true })
    const newSession = `s${++this.#sessions}`
    const player = { playerId: id, connectionId, relayOnly, canSpeak: true, newSession, session }
    return this.run({ t: "join", ...player })
  }

  /** Changes a member of the channel; undefined removes it. */
  follow(id: string, member: ChannelMember | undefined): void {
    if (member === undefined) this.channel.delete(id)
    else this.channel.set(id, member)
    this.run({ t: "follow", memberOf: (player) => this.channel.get(player) })
  }

  wait(millis: number): void {
    const until = this.now + millis
    while (this.members.length > 0 && nextDeadline(this.state) <= until) {
      this.now = Math.max(this.now, nextDeadline(this.state))
      this.run({ t: "tick" })
    }
    this.now = until
  }

  take(): ReadonlyArray<CallEmission> {
    return this.emissions.splice(0)
  }

  get members(): ReadonlyArray<string> {
    return Array.from(this.state.members.keys())
  }
}

const eventsOf = (emissions: ReadonlyArray<CallEmission>) =>
  emissions.flatMap((emission) => (emission.kind === "event" ? [emission.event] : []))

describe("a voice call", () => {
  it("sends the list of members at once, and then at most four times a second", () => {
    const call = new CallHarness()
    call.join("ann")
    assert.lengthOf(eventsOf(call.take()), 1)
    for (const id of ["ben", "cat", "dan"]) call.join(id)
    assert.lengthOf(eventsOf(call.take()), 0)
    call.wait(voiceCalls.stateMillis)
    const [state, ...more] = eventsOf(call.take())
    assert.isEmpty(more)
    assert.lengthOf(state?.t === "voice_state" ? state.members : [], 4)
  })

  it("keeps a member without a connection for ten seconds", () => {
    const call = new CallHarness()
    call.join("ann")
    call.join("ben")
    call.follow("ben", { connectionId: undefined, canSpeak: true })
    call.wait(voiceCalls.graceSeconds * 1000 - 1)
    assert.deepStrictEqual(call.members, ["ann", "ben"])
    call.wait(1)
    assert.deepStrictEqual(call.members, ["ann"])
    call.follow("ann", { connectionId: "cn_later", canSpeak: true })
    call.wait(voiceCalls.graceSeconds * 1000)
    assert.deepStrictEqual(call.members, [])
  })

  it("ends a voice call after four hours with time_limit", () => {
    const call = new CallHarness()
    call.join("ann")
    call.wait(voiceCalls.callSeconds * 1000 - 1)
    assert.deepStrictEqual(call.members, ["ann"])
    call.take()
    call.wait(1)
    assert.deepStrictEqual(eventsOf(call.take()), [
      { t: "voice_closed", channel: "lobby", reason: "time_limit" }
    ])
    assert.deepStrictEqual(call.members, [])
  })

  it("opens a microphone only for members who may speak and want to", () => {
    const call = new CallHarness()
    call.join("ann")
    call.take()
    const microphones = () =>
      call.take().flatMap((it) => (it.kind === "microphone" ? [it.open] : []))
    const publish = (on: boolean) => call.run({ t: "publish", playerId: "ann", session: "s1", on })
    publish(true)
    assert.deepStrictEqual(microphones(), [true])
    call.follow("ann", { connectionId: "cn_ann", canSpeak: false })
    assert.deepStrictEqual(microphones(), [false])
    publish(false)
    publish(true)
    assert.deepStrictEqual(microphones(), [])
    call.follow("ann", { connectionId: "cn_ann", canSpeak: true })
    assert.deepStrictEqual(microphones(), [true])
    assert.strictEqual(
      call.run({ t: "publish", playerId: "ann", session: "s9", on: true }),
      "not_in_channel"
    )
  })

  it("closes the media of a session that is replaced, left, failed or removed", () => {
    const call = new CallHarness()
    const closed = () => call.take().flatMap((it) => (it.kind === "closed" ? [it.session] : []))
    call.join("ann")
    call.join("ann", "s1")
    assert.deepStrictEqual(closed(), [])
    call.join("ann")
    assert.deepStrictEqual(closed(), ["s1"])
    call.run({ t: "leave", playerId: "ann", connectionId: "cn_ann" })
    assert.deepStrictEqual(closed(), ["s3"])
    call.join("ben")
    call.run({ t: "failed", session: "s4", retryAfterMs: 300 })
    assert.deepStrictEqual(eventsOf(call.take()).at(-1), {
      t: "voice_closed",
      channel: "lobby",
      reason: "unavailable",
      retryAfterMs: 300
    })
    assert.deepStrictEqual(call.members, [])
    call.join("cat")
    call.take()
    call.follow("cat", undefined)
    assert.deepStrictEqual(closed(), ["s5"])
  })

  it("sends each member of a lost call a time of its own to join again", () => {
    const call = new CallHarness()
    const ids = ["ann", "ben", "cat"]
    for (const id of ids) call.join(id)
    call.take()
    const fractions = [0, 0.5, 1 - Number.EPSILON]
    const retryAfterMs = () => retryAfter(fractions.shift() ?? 0)
    call.run({ t: "end", reason: "unavailable", retryAfterMs })
    const closed = call
      .take()
      .flatMap((it) =>
        it.kind === "event" && it.event.t === "voice_closed" ? [[it.to, it.event.retryAfterMs]] : []
      )
    assert.deepStrictEqual(closed, [
      [["ann"], 200],
      [["ben"], 850],
      [["cat"], 1500]
    ])
  })

  it("hides addresses when one of two members must be relayed", () => {
    const call = new CallHarness("p2p")
    call.join("ann")
    call.join("ben", undefined, true)
    call.join("cat")
    call.take()
    const data = { candidate: "candidate:1 1 udp 1 10.0.0.1 9 typ host" }
    const signal = (from: string, to: string) => {
      const connectionId = `cn_${from}`
      call.run({ t: "signal", playerId: from, connectionId, to, kind: "candidate", data })
      return call.take().length
    }
    assert.strictEqual(signal("ann", "cat"), 1)
    assert.strictEqual(signal("ann", "ben"), 0)
    assert.strictEqual(signal("ben", "ann"), 0)
  })

  it("replaces the session of a player who returns as a child, unless it was relayed", () => {
    const call = new CallHarness("p2p")
    call.join("ann")
    call.join("ben", undefined, true)
    call.take()
    const sessionOf = (id: string) => call.state.members.get(id)?.session
    call.join("ben", sessionOf("ben"), true)
    assert.strictEqual(sessionOf("ben"), "s2")
    call.join("ann", sessionOf("ann"), false)
    assert.strictEqual(sessionOf("ann"), "s1")
    call.join("ann", sessionOf("ann"), true)
    assert.strictEqual(sessionOf("ann"), "s5")
    assert.deepStrictEqual(
      call.take().filter(({ kind }) => kind !== "event"),
      [
        { kind: "closed", session: "s1" },
        { kind: "opened", session: "s5" }
      ]
    )
    const server = new CallHarness("sfu")
    server.join("ann")
    server.join("ann", "s1", true)
    assert.strictEqual(server.state.members.get("ann")?.session, "s1")
  })
})
