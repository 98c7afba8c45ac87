/**
 * Outgoing link to one other node. It carries commands for its rooms and outputs of this node's
 * rooms, all of one flush in one call of the cluster's RPC. The reply is the acknowledgement; it
 * names the rooms that refused their commands.
 *
 * Delivery is at most once: the link never repeats a lost batch. If the link closes, `onLost` runs
 * for every message without a reply. So messages arrive in order, and without a gap until `onLost`
 * reports one.
 */
import { MiB } from "#rpc/units"
import type { RemoteRoomInputs, RemoteRoomOutputs } from "#entities/room/remote"
import type { FlushScheduler } from "#server/platform/flush"
import { runnerPort } from "./runner-port-limits.ts"

/** Calls of a runner link without a reply at which it waits, and characters at which it closes. */
export const linkCallsMax = 8
export const linkWaitingMaxCharacters = 32 * MiB

/** A connection to the other node. */
export interface RunnerConnection {
  /**
   * Sends a batch; an empty one is a heartbeat. `replied` gets the ids of rooms that refused, since they
   * do not live there. After the first reply, calls arrive in the order in which they are made.
   */
  readonly call: (batch: string, replied: (refused: ReadonlyArray<string>) => void) => void
  readonly close: () => void
}

/** Heartbeats without a reply until the node counts as silent, and until the link closes. */
const missedUntilSilent = 2
const missedUntilClose = 5

const backOffMillis = 50
const backOffMaxMillis = 1000
const idleMillis = 60_000

/** Commands for a room of the other node, or outputs of a room of this one. */
type Content = RemoteRoomInputs | RemoteRoomOutputs

interface Message {
  readonly content: Content
  /** The content as JSON. */
  readonly text: string
  readonly onLost: () => void
}

/** Maximum characters of a batch. A character takes at most three bytes; the envelope takes the rest. */
const batchMaxCharacters = runnerPort.frameMaxBytes / 4

const halves = <A>(list: ReadonlyArray<A>): ReadonlyArray<ReadonlyArray<A>> =>
  list.length < 2 ? [] : [list.slice(0, list.length >> 1), list.slice(list.length >> 1)]

/** Encodes a message, as several in order if it is too large for a call. */
const encode = (content: Content, onLost: () => void): ReadonlyArray<Message> => {
  const text = JSON.stringify(content)
  const parts =
    text.length <= batchMaxCharacters
      ? []
      : "inputs" in content
        ? halves(content.inputs).map((inputs) => ({ ...content, inputs }))
        : halves(content.items).map((items) => ({ ...content, items }))
  if (parts.length === 0) return [{ content, text, onLost }]
  return parts.flatMap((part) => encode(part, onLost))
}

const isInput = ({ content }: Message): boolean => "inputs" in content

/** The messages as one batch. */
const batchOf = (messages: ReadonlyArray<Message>): string => {
  const inputs = messages.filter(isInput).map(({ text }) => text)
  const items = messages.filter((message) => !isInput(message)).map(({ text }) => text)
  return `{"inputs":[${inputs.join()}],"items":[${items.join()}]}`
}

interface Options {
  /** Opens a connection. `onEnded` may run more than once, also when it did not open or a call failed. */
  readonly open: (onEnded: (reason: string) => void) => RunnerConnection
  /** Returns monotonic milliseconds. */
  readonly now: () => number
  readonly scheduler: Pick<FlushScheduler, "scheduleLink">
  /** Callback for the close. `wasAlive`: the other node had replied on this connection. */
  readonly onClose: (reason: string, wasAlive: boolean) => void
}

export class RunnerLink {
  readonly #options: Options
  #connection: RunnerConnection | undefined
  /** Messages of the next batches, and their characters. */
  #queued: Array<Message> = []
  #queuedCharacters = 0
  /** Messages of each call without a reply. */
  readonly #calls = new Set<ReadonlyArray<Message>>()
  /** Heartbeats since the last reply. */
  #missed = 0
  #hasReplied = false
  #failures = 0
  #closedUntil = -Infinity

  constructor(options: Options) {
    this.#options = options
  }

  /** Sends a message with the next flush. */
  send(content: Content, onLost: () => void): void {
    if (!this.#ensureOpen()) return onLost()
    for (const message of encode(content, onLost)) {
      this.#queued.push(message)
      this.#queuedCharacters += message.text.length
    }
    if (this.#queuedCharacters > linkWaitingMaxCharacters) {
      this.#end("the other node does not keep up")
    } else {
      this.#options.scheduler.scheduleLink(this)
    }
  }

  /** Whether the other node replies. */
  get isAlive(): boolean {
    return this.#hasReplied && this.#missed < missedUntilSilent
  }

  /** Whether the other node replies; opens a closed link, so poll it. */
  probe(): boolean {
    return this.#ensureOpen() && this.isAlive
  }

  /** Whether the link has been closed and unused for a minute, so that the caller may drop it. */
  get isIdle(): boolean {
    return this.#connection === undefined && this.#options.now() > this.#closedUntil + idleMillis
  }

  /** Sends a heartbeat, or closes a link without replies. Call it at even intervals. */
  heartbeat(): void {
    if (this.#connection === undefined) return
    if (this.#missed >= missedUntilClose) return this.#end("the other node does not answer")
    this.#missed += 1
    if (this.#calls.size === 0) this.#call(this.#connection, "", [])
  }

  /** Sends the messages since the last flush, unless too many batches have no reply yet. */
  flush(): void {
    const connection = this.#connection
    if (connection === undefined || !this.#hasReplied) return
    while (this.#queued.length > 0 && this.#calls.size < linkCallsMax) {
      const messages = this.#takeBatch()
      this.#call(connection, batchOf(messages), messages)
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

  /** Removes as many messages from the queue as fit into a call, at least one, and returns them. */
  #takeBatch(): ReadonlyArray<Message> {
    let characters = 0
    const end = this.#queued.findIndex(({ text }, i) => {
      characters += text.length
      return i > 0 && characters > batchMaxCharacters
    })
    const messages = this.#queued.splice(0, end < 0 ? this.#queued.length : end)
    for (const { text } of messages) this.#queuedCharacters -= text.length
    return messages
  }

  #call(connection: RunnerConnection, text: string, messages: ReadonlyArray<Message>): void {
    this.#calls.add(messages)
    connection.call(text, (refused) => {
      if (connection === this.#connection) this.#complete(messages, refused)
    })
  }

  #complete(messages: ReadonlyArray<Message>, refused: ReadonlyArray<string>): void {
    this.#calls.delete(messages)
    this.#hasReplied = true
    this.#missed = 0
    this.#failures = 0
    if (this.#queued.length > 0) this.#options.scheduler.scheduleLink(this)
    for (const message of messages) {
      if (isInput(message) && refused.includes(message.content.room)) message.onLost()
    }
  }

  #end(reason: string): void {
    const connection = this.#connection
    const lost = [...this.#calls, this.#queued].flat()
    const wasAlive = this.#hasReplied
    const backOff = Math.min(backOffMaxMillis, backOffMillis * 2 ** this.#failures)
    this.#connection = undefined
    this.#queued = []
    this.#queuedCharacters = 0
    this.#calls.clear()
    this.#hasReplied = false
    this.#missed = 0
    this.#failures += 1
    this.#closedUntil = this.#options.now() + backOff
    connection?.close()
    this.#options.onClose(reason, wasAlive)
    for (const { onLost } of lost) onLost()
  }
}
