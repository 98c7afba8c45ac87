/**
 * Outgoing link to one other node: carries commands for its rooms and outputs of this node's rooms, all
 * of one flush in one call of the cluster's RPC. The reply is the acknowledgement; it names the rooms
 * that refused their commands.
 *
 * Delivery is at most once: a lost batch is never sent again. If the link closes, `onLost` runs for
 * every message without a reply. So what arrives is in order, and without a gap until `onLost` reports
 * one.
 */
import { rooms, runnerPort } from "#rpc/limits"
import type { RemoteRoomInputs, RemoteRoomOutputs } from "#entities/room/remote"
import type { FlushScheduler } from "#server/platform/flush"

/** A connection to the other node. */
export interface RunnerConnection {
  /**
   * Sends a batch; an empty one is a heartbeat. `replied` gets the ids of rooms that refused, since they
   * do not live there. After the first reply, calls arrive in the order in which they are made.
   */
  readonly call: (
    batch: string,
    replied: (refused: ReadonlyArray<string>) => void,
    failed: (reason: string) => void
  ) => void
  readonly close: () => void
}

/** Heartbeats without a reply until the node counts as silent, and until the link closes. */
const missedUntilSilent = 2
const missedUntilClose = 5

const backOffMillis = 50
const backOffMaxMillis = 1000
const idleMillis = 60_000

/** Commands for a room of the other node, or outputs of a room of this one. */
interface Message {
  readonly content: RemoteRoomInputs | RemoteRoomOutputs
  readonly onLost: () => void
}

/** Messages and their JSON. */
interface Batch {
  readonly text: string
  readonly messages: ReadonlyArray<Message>
}

/** UTF-8 takes at most three bytes for a character of a string; the rest is for the envelope. */
const batchMaxCharacters = runnerPort.frameMaxBytes / 4

/** So many messages are encoded at once, so that the size of what waits is known. */
const encodedAfter = 1024

const heartbeat: Batch = { text: "", messages: [] }

const halves = <A>(list: ReadonlyArray<A>): ReadonlyArray<ReadonlyArray<A>> =>
  list.length < 2 ? [list] : [list.slice(0, list.length >> 1), list.slice(list.length >> 1)]

const splitMessage = ({ content, onLost }: Message): ReadonlyArray<ReadonlyArray<Message>> =>
  "inputs" in content
    ? halves(content.inputs).map((inputs) => [{ content: { ...content, inputs }, onLost }])
    : halves(content.items).map((items) => [{ content: { ...content, items }, onLost }])

/** Encodes messages in order: as one batch, or as several if that is too large for a call. */
const encode = (messages: ReadonlyArray<Message>): ReadonlyArray<Batch> => {
  const [first] = messages
  if (first === undefined) return []
  const contents = messages.map(({ content }) => content)
  const text = JSON.stringify({
    inputs: contents.filter((content) => "inputs" in content),
    items: contents.filter((content) => "items" in content)
  })
  const parts = messages.length > 1 ? halves(messages) : splitMessage(first)
  if (text.length <= batchMaxCharacters || parts.length < 2) return [{ text, messages }]
  return parts.flatMap(encode)
}

/** Monotonic counters over all links of a node. */
export class LinkStats {
  frames = 0
  characters = 0
  /** Links that closed after the other node had replied at least once. */
  broken = 0
}

/** `alive`: replies; `silent`: has stopped to; `unknown`: no reply yet on this connection. */
export type LinkStatus = "alive" | "silent" | "unknown"

interface Options {
  /** `onEnded` may run more than once, also when the connection could not be opened. */
  readonly open: (onEnded: (reason: string) => void) => RunnerConnection
  /** Monotonic milliseconds. */
  readonly now: () => number
  readonly scheduler: Pick<FlushScheduler, "scheduleLink">
  readonly stats: LinkStats
  /** `wasAlive`: the other node had replied at least once on this connection. */
  readonly onClose: (reason: string, wasAlive: boolean) => void
}

export class RunnerLink {
  readonly #options: Options
  #connection: RunnerConnection | undefined
  #queued: Array<Message> = []
  /** Batches that wait for replies to earlier ones, and their characters. */
  #waiting: Array<Batch> = []
  #waitingCharacters = 0
  /** Batches without a reply. */
  readonly #calls = new Set<Batch>()
  /** Heartbeats since the last reply. */
  #missed = 0
  #hasReplied = false
  #failures = 0
  #closedUntil = -Infinity

  constructor(options: Options) {
    this.#options = options
  }

  /** Sends a message with the next flush. */
  send(content: RemoteRoomInputs | RemoteRoomOutputs, onLost: () => void): void {
    if (!this.#ensureOpen()) return onLost()
    this.#queued.push({ content, onLost })
    if (this.#queued.length >= encodedAfter) this.#encodeQueued()
    if (this.#waitingCharacters > rooms.linkWaitingMaxCharacters) {
      this.#end("the other node does not keep up")
    } else {
      this.#options.scheduler.scheduleLink(this)
    }
  }

  /** Status of the other node. Reading it opens a closed link, so poll it. */
  get status(): LinkStatus {
    this.#ensureOpen()
    if (!this.#hasReplied) return "unknown"
    return this.isAlive ? "alive" : "silent"
  }

  /** Whether the other node replies. Unlike `status`, this opens nothing. */
  get isAlive(): boolean {
    return this.#hasReplied && this.#missed < missedUntilSilent
  }

  /** Closed and unused for a minute: the link may be dropped. */
  get isIdle(): boolean {
    return this.#connection === undefined && this.#options.now() > this.#closedUntil + idleMillis
  }

  /** Call at even intervals. */
  heartbeat(): void {
    if (this.#connection === undefined) return
    if (this.#missed >= missedUntilClose) return this.#end("the other node does not answer")
    this.#missed += 1
    if (this.#calls.size === 0) this.#call(this.#connection, heartbeat)
  }

  /** Sends what has gathered since the last flush, unless too many batches have no reply yet. */
  flush(): void {
    const connection = this.#connection
    if (connection === undefined || !this.#hasReplied) return
    if (this.#calls.size >= rooms.linkCallsMax) return
    const { stats } = this.#options
    this.#encodeQueued()
    this.#waitingCharacters = 0
    for (const batch of this.#waiting.splice(0)) {
      stats.frames += 1
      stats.characters += batch.text.length
      this.#call(connection, batch)
    }
  }

  close(): void {
    if (this.#connection !== undefined) this.#end("this node stops")
  }

  /** Opens the link, unless it has just failed. */
  #ensureOpen(): boolean {
    if (this.#connection !== undefined) return true
    if (this.#options.now() < this.#closedUntil) return false
    const connection = this.#options.open((reason) => {
      if (connection === this.#connection) this.#end(reason)
    })
    this.#connection = connection
    this.heartbeat()
    return true
  }

  #encodeQueued(): void {
    for (const batch of encode(this.#queued.splice(0))) {
      this.#waiting.push(batch)
      this.#waitingCharacters += batch.text.length
    }
  }

  #call(connection: RunnerConnection, batch: Batch): void {
    this.#calls.add(batch)
    connection.call(
      batch.text,
      (refused) => {
        if (connection === this.#connection) this.#complete(batch, refused)
      },
      (reason) => {
        if (connection === this.#connection) this.#end(reason)
      }
    )
  }

  #complete(batch: Batch, refused: ReadonlyArray<string>): void {
    this.#calls.delete(batch)
    this.#hasReplied = true
    this.#missed = 0
    this.#failures = 0
    if (this.#queued.length + this.#waiting.length > 0) this.#options.scheduler.scheduleLink(this)
    for (const room of refused) {
      for (const { content, onLost } of batch.messages) {
        if ("inputs" in content && content.room === room) onLost()
      }
    }
  }

  #end(reason: string): void {
    const connection = this.#connection
    const batches = [...this.#calls, ...this.#waiting]
    const lost = [...batches.flatMap(({ messages }) => messages), ...this.#queued]
    const wasAlive = this.#hasReplied
    const backOff = Math.min(backOffMaxMillis, backOffMillis * 2 ** this.#failures)
    this.#connection = undefined
    this.#queued = []
    this.#waiting = []
    this.#waitingCharacters = 0
    this.#calls.clear()
    this.#hasReplied = false
    this.#missed = 0
    this.#failures += 1
    this.#closedUntil = this.#options.now() + backOff
    connection?.close()
    if (wasAlive) this.#options.stats.broken += 1
    this.#options.onClose(reason, wasAlive)
    for (const { onLost } of lost) onLost()
  }
}
