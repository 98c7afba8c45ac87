/**
 * A line to one node: carries what this one has for its rooms and from its own, everything of a turn in
 * one frame. The other node answers what it refuses.
 *
 * A frame that was sent may not arrive, and the line does not send it again: whoever gave something
 * to a line that then ends is told, unless a later heartbeat was answered, since what was sent before
 * that has arrived. So what arrives is in order and without a gap until someone is told of one.
 */
import { Option, Schema } from "effect"
import { rooms } from "#rpc/limits"
import { RemoteRoomInputs, RemoteRoomOutputs } from "#entities/room/lines"
import type { FlushScheduler } from "#server/platform/flush"
import type { RunnerConnection, RunnerConnectionEvents } from "./runner-transport.ts"

/** Heartbeats, and their answers. Everything else is JSON. */
export const ping = "?"
export const pong = "!"

export const LinkBatch = Schema.fromJsonString(
  Schema.Struct({ inputs: Schema.Array(RemoteRoomInputs), items: Schema.Array(RemoteRoomOutputs) })
)

export type LinkBatch = typeof LinkBatch.Type

/** Answered to the freight: the rooms that are not here for the commands. */
const Refused = Schema.fromJsonString(Schema.Array(Schema.String))

const decodeRefused = Schema.decodeUnknownOption(Refused)

/** As many heartbeats without an answer are a bad sign, or the end of the line. */
const beatsUntilDoubt = 2
const beatsUntilEnd = 5

/** A busy line asks this often; a node that has not answered by then gets nothing more. */
const answerMillis = 100

const backOffMillis = 50
const backOffMaxMillis = 1000
const forgetMillis = 60_000

type OnLost = () => void

/** What all lines of a node have carried, in numbers that only grow. */
export class LinkStats {
  frames = 0
  characters = 0
  /** Lines that broke after the other node had been heard. */
  broken = 0
}

/** It answers, it has stopped to answer, or it has not answered (on this connection) at all. */
export type LinkStatus = "lives" | "silent" | "unknown"

export class RunnerLink {
  readonly #open: (events: RunnerConnectionEvents) => RunnerConnection
  readonly #now: () => number
  readonly #turn: Pick<FlushScheduler, "scheduleLink">
  readonly #carried: LinkStats
  readonly #ended: (why: string, answered: boolean) => void
  #wire: RunnerConnection | undefined
  #inputs: Array<RemoteRoomInputs> = []
  #items: Array<RemoteRoomOutputs> = []
  /** Whom to tell of a loss, by room: what was given since the last heartbeat, and before. */
  #since = new Map<string, OnLost>()
  #before = new Map<string, OnLost>()
  /** Heartbeats since the last answer. */
  #unanswered = 0
  #answered = false
  #failures = 0
  #closedUntil = 0
  #askedAt = 0
  /** The other node is busy with what it has been sent: what is given meanwhile gathers. */
  #held = false

  constructor(options: {
    readonly open: (events: RunnerConnectionEvents) => RunnerConnection
    /** Milliseconds. */
    readonly now: () => number
    readonly turn: Pick<FlushScheduler, "scheduleLink">
    readonly carried: LinkStats
    /** `answered`: the other node had been heard before that. */
    readonly ended: (why: string, answered: boolean) => void
  }) {
    this.#open = options.open
    this.#now = options.now
    this.#turn = options.turn
    this.#carried = options.carried
    this.#ended = options.ended
  }

  submit(inputs: RemoteRoomInputs, lost: OnLost): void {
    if (!this.#carries(`inputs ${inputs.room}`, lost)) return
    this.#inputs.push(inputs)
    this.#turn.scheduleLink(this)
  }

  tell(items: RemoteRoomOutputs, lost: OnLost): void {
    if (!this.#carries(`items ${items.room}`, lost)) return
    this.#items.push(items)
    this.#turn.scheduleLink(this)
  }

  /** What is heard of the other node. To be asked again and again: a line that is not open opens. */
  get status(): LinkStatus {
    this.#stand()
    if (!this.#answered) return "unknown"
    return this.#unanswered < beatsUntilDoubt ? "lives" : "silent"
  }

  /** Does the other node answer? Unlike `heard`, this opens nothing. */
  get isAlive(): boolean {
    return this.#answered && this.#unanswered < beatsUntilDoubt
  }

  /** Has nobody needed the line for long? Then it may be forgotten. */
  get isIdle(): boolean {
    return this.#wire === undefined && this.#now() > this.#closedUntil + forgetMillis
  }

  /** To be called at even intervals. */
  heartbeat(): void {
    if (this.#wire === undefined) return
    if (this.#unanswered >= beatsUntilEnd) {
      this.#end("the other node does not answer")
    } else {
      if (this.#unanswered === 0) this.#ask()
      else this.#unanswered += 1
    }
  }

  #ask(): void {
    this.#before = this.#since
    this.#since = new Map()
    this.#unanswered = 1
    this.#askedAt = this.#now()
    this.#wire?.send(ping)
  }

  close(): void {
    this.#wire?.close("this node stops")
  }

  #carries(key: string, lost: OnLost): boolean {
    if (!this.#stand()) {
      lost()
      return false
    }
    this.#since.set(key, lost)
    if (this.#inputs.length + this.#items.length < rooms.watchBufferItems) return true
    this.#end("the other node does not keep up")
    return false
  }

  /** Opens the line, unless it has just failed. */
  #stand(): boolean {
    if (this.#wire !== undefined) return true
    if (this.#now() < this.#closedUntil) return false
    const wire: RunnerConnection = this.#open({
      received: (frame) => {
        if (wire === this.#wire) this.#received(frame)
      },
      ended: (why) => {
        if (wire === this.#wire) this.#end(why)
      }
    })
    this.#wire = wire
    this.heartbeat()
    return true
  }

  #received(frame: string): void {
    if (frame === pong) {
      this.#answered = true
      this.#unanswered = 0
      this.#failures = 0
      this.#before = new Map()
      if (this.#held) this.#turn.scheduleLink(this)
      this.#held = false
      return
    }
    const refused = decodeRefused(frame)
    if (Option.isNone(refused)) return this.#end("what came is not what answers a line")
    for (const room of refused.value) {
      const key = `inputs ${room}`
      const lost = this.#since.get(key) ?? this.#before.get(key)
      this.#since.delete(key)
      this.#before.delete(key)
      lost?.()
    }
  }

  #end(why: string): void {
    const wire = this.#wire
    const told = [...this.#before.values(), ...this.#since.values()]
    const answered = this.#answered
    const backOff = Math.min(backOffMaxMillis, backOffMillis * 2 ** this.#failures)
    this.#wire = undefined
    this.#before = new Map()
    this.#since = new Map()
    this.#inputs = []
    this.#items = []
    this.#answered = false
    this.#unanswered = 0
    this.#held = false
    this.#failures += 1
    this.#closedUntil = this.#now() + backOff
    wire?.close(why)
    if (answered) this.#carried.broken += 1
    this.#ended(why, answered)
    for (const lost of told) lost()
  }

  /** Sends what the turn has brought. */
  flush(): void {
    const inputs = this.#inputs
    const items = this.#items
    if (inputs.length + items.length === 0) return
    const now = this.#now()
    const asked = now - this.#askedAt >= answerMillis
    this.#held = this.#unanswered > 0 && asked
    if (this.#held) return
    this.#inputs = []
    this.#items = []
    const frame = JSON.stringify({ inputs, items })
    this.#carried.frames += 1
    this.#carried.characters += frame.length
    this.#wire?.send(frame)
    if (asked) this.#ask()
  }
}
