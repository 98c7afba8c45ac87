/**
 * Outgoing link to one other node: carries inputs for its rooms and outputs of this node's rooms, all
 * of one flush in one frame. The other node replies with the rooms that it refuses.
 *
 * Delivery is at most once: a lost frame is never sent again. If the link closes, `onLost` runs for
 * each batch that no acknowledged heartbeat covers. So what arrives is in order, and without a gap
 * until `onLost` reports one.
 */
import { Option, Schema } from "effect"
import { rooms, runnerPort } from "#rpc/limits"
import { RemoteRoomInputs, RemoteRoomOutputs } from "#entities/room/remote"
import type { FlushScheduler } from "#server/platform/flush"
import type { RunnerConnection, RunnerConnectionEvents } from "./runner-transport.ts"

/** A heartbeat and its reply. Every other frame is JSON. */
export const ping = "?"
export const pong = "!"

export const LinkBatch = Schema.fromJsonString(
  Schema.Struct({ inputs: Schema.Array(RemoteRoomInputs), items: Schema.Array(RemoteRoomOutputs) })
)

export type LinkBatch = typeof LinkBatch.Type

/** UTF-8 takes at most three bytes for a character of a string. */
const frameMaxCharacters = runnerPort.frameMaxBytes / 3

const halvesOf = <A>(list: ReadonlyArray<A>): ReadonlyArray<ReadonlyArray<A>> => {
  const middle = Math.ceil(list.length / 2)
  return [list.slice(0, middle), list.slice(middle)]
}

/** Frames of a batch, in order. Halves a batch above the limit, and a room's part of it if need be. */
export const framesOf = (batch: LinkBatch): ReadonlyArray<string> => {
  const frame = JSON.stringify(batch)
  if (frame.length <= frameMaxCharacters) return [frame]
  const { inputs, items } = batch
  const ofInputs = (part: LinkBatch["inputs"]) => framesOf({ inputs: part, items: [] })
  const ofItems = (part: LinkBatch["items"]) => framesOf({ inputs: [], items: part })
  if (inputs.length > 0 && items.length > 0) return [...ofInputs(inputs), ...ofItems(items)]
  if (inputs.length > 1) return halvesOf(inputs).flatMap(ofInputs)
  if (items.length > 1) return halvesOf(items).flatMap(ofItems)
  const [toRoom] = inputs
  if (toRoom !== undefined && toRoom.inputs.length > 1) {
    return halvesOf(toRoom.inputs).flatMap((part) => ofInputs([{ ...toRoom, inputs: part }]))
  }
  const [ofRoom] = items
  if (ofRoom !== undefined && ofRoom.items.length > 1) {
    return halvesOf(ofRoom.items).flatMap((part) => ofItems([{ ...ofRoom, items: part }]))
  }
  return [frame]
}

/** Reply to a batch: ids of rooms that did not take their inputs, since they do not live there. */
const Refused = Schema.fromJsonString(Schema.Array(Schema.String))

const decodeRefused = Schema.decodeUnknownOption(Refused)

/** Heartbeats without a pong until the node counts as silent, and until the link closes. */
const missedUntilSilent = 2
const missedUntilClose = 5

/** A busy link pings this often; until the pong arrives it sends no further batch. */
const pingMillis = 100

const backOffMillis = 50
const backOffMaxMillis = 1000
const idleMillis = 60_000

type OnLost = () => void

/** Monotonic counters over all links of a node. */
export class LinkStats {
  frames = 0
  characters = 0
  /** Links that closed after the other node had replied at least once. */
  broken = 0
}

/** `alive`: replies to pings; `silent`: has stopped to; `unknown`: no reply yet on this connection. */
export type LinkStatus = "alive" | "silent" | "unknown"

export class RunnerLink {
  readonly #open: (events: RunnerConnectionEvents) => RunnerConnection
  readonly #now: () => number
  readonly #scheduler: Pick<FlushScheduler, "scheduleLink">
  readonly #stats: LinkStats
  readonly #onClose: (reason: string, wasAlive: boolean) => void
  #connection: RunnerConnection | undefined
  #inputs: Array<RemoteRoomInputs> = []
  #items: Array<RemoteRoomOutputs> = []
  /** Callbacks by room, for batches after the last ping and for those that it covers. */
  #afterPing = new Map<string, OnLost>()
  #beforePing = new Map<string, OnLost>()
  /** Heartbeats since the last pong. */
  #missed = 0
  #hasReplied = false
  #failures = 0
  #closedUntil = -Infinity
  #pingedAt = -Infinity
  /** The other node has not replied to the last ping of a busy link: new batches wait. */
  #isWaiting = false

  constructor(options: {
    readonly open: (events: RunnerConnectionEvents) => RunnerConnection
    /** Monotonic milliseconds. */
    readonly now: () => number
    readonly scheduler: Pick<FlushScheduler, "scheduleLink">
    readonly stats: LinkStats
    /** `wasAlive`: the other node had replied at least once on this connection. */
    readonly onClose: (reason: string, wasAlive: boolean) => void
  }) {
    this.#open = options.open
    this.#now = options.now
    this.#scheduler = options.scheduler
    this.#stats = options.stats
    this.#onClose = options.onClose
  }

  submit(inputs: RemoteRoomInputs, onLost: OnLost): void {
    if (!this.#accepts(`inputs ${inputs.room}`, onLost)) return
    this.#inputs.push(inputs)
    this.#scheduler.scheduleLink(this)
  }

  deliver(items: RemoteRoomOutputs, onLost: OnLost): void {
    if (!this.#accepts(`items ${items.room}`, onLost)) return
    this.#items.push(items)
    this.#scheduler.scheduleLink(this)
  }

  /** Status of the other node. Reading it opens a closed link, so poll it. */
  get status(): LinkStatus {
    this.#ensureOpen()
    if (!this.#hasReplied) return "unknown"
    return this.#missed < missedUntilSilent ? "alive" : "silent"
  }

  /** Whether the other node replies. Unlike `status`, this opens nothing. */
  get isAlive(): boolean {
    return this.#hasReplied && this.#missed < missedUntilSilent
  }

  /** Closed and unused for a minute: the link may be dropped. */
  get isIdle(): boolean {
    return this.#connection === undefined && this.#now() > this.#closedUntil + idleMillis
  }

  /** Call at even intervals. */
  heartbeat(): void {
    if (this.#connection === undefined) return
    if (this.#missed >= missedUntilClose) {
      this.#end("the other node does not answer")
    } else {
      if (this.#missed === 0) this.#ping()
      else this.#missed += 1
    }
  }

  #ping(): void {
    this.#beforePing = this.#afterPing
    this.#afterPing = new Map()
    this.#missed = 1
    this.#pingedAt = this.#now()
    this.#connection?.send(ping)
  }

  close(): void {
    this.#connection?.close("this node stops")
  }

  #accepts(key: string, onLost: OnLost): boolean {
    if (!this.#ensureOpen()) {
      onLost()
      return false
    }
    this.#afterPing.set(key, onLost)
    if (this.#inputs.length + this.#items.length < rooms.watchBufferItems) return true
    this.#end("the other node does not keep up")
    return false
  }

  /** Opens the link, unless it has just failed. */
  #ensureOpen(): boolean {
    if (this.#connection !== undefined) return true
    if (this.#now() < this.#closedUntil) return false
    const connection: RunnerConnection = this.#open({
      received: (frame) => {
        if (connection === this.#connection) this.#receive(frame)
      },
      ended: (reason) => {
        if (connection === this.#connection) this.#end(reason)
      }
    })
    this.#connection = connection
    this.heartbeat()
    return true
  }

  #receive(frame: string): void {
    if (frame === pong) {
      this.#hasReplied = true
      this.#missed = 0
      this.#failures = 0
      this.#beforePing = new Map()
      if (this.#isWaiting) this.#scheduler.scheduleLink(this)
      this.#isWaiting = false
      return
    }
    const refused = decodeRefused(frame)
    if (Option.isNone(refused)) return this.#end("the other node sent an invalid reply")
    for (const room of refused.value) {
      const key = `inputs ${room}`
      const onLost = this.#afterPing.get(key) ?? this.#beforePing.get(key)
      this.#afterPing.delete(key)
      this.#beforePing.delete(key)
      onLost?.()
    }
  }

  #end(reason: string): void {
    const connection = this.#connection
    const unacknowledged = [...this.#beforePing.values(), ...this.#afterPing.values()]
    const wasAlive = this.#hasReplied
    const backOff = Math.min(backOffMaxMillis, backOffMillis * 2 ** this.#failures)
    this.#connection = undefined
    this.#beforePing = new Map()
    this.#afterPing = new Map()
    this.#inputs = []
    this.#items = []
    this.#hasReplied = false
    this.#missed = 0
    this.#isWaiting = false
    this.#failures += 1
    this.#closedUntil = this.#now() + backOff
    connection?.close(reason)
    if (wasAlive) this.#stats.broken += 1
    this.#onClose(reason, wasAlive)
    for (const onLost of unacknowledged) onLost()
  }

  /** Sends what has gathered since the last flush. */
  flush(): void {
    const inputs = this.#inputs
    const items = this.#items
    if (inputs.length + items.length === 0) return
    const now = this.#now()
    const isPingDue = now - this.#pingedAt >= pingMillis
    this.#isWaiting = this.#missed > 0 && isPingDue
    if (this.#isWaiting) return
    this.#inputs = []
    this.#items = []
    for (const frame of framesOf({ inputs, items })) {
      this.#stats.frames += 1
      this.#stats.characters += frame.length
      this.#connection?.send(frame)
    }
    if (isPingDue) this.#ping()
  }
}
