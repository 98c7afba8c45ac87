/**
 * A member of a room that misbehaves: stops reading, or sends far more than it may. Its seat is kept,
 * so it comes back to the same room after it was closed.
 */
import { once } from "node:events"
import { setTimeout as wait } from "node:timers/promises"
import { WebSocket } from "ws"
import type { Target } from "../wire/protocol.ts"
import { socketUrl } from "./service.ts"

export interface Closed {
  readonly code: number
  /** What it was sent since it stopped reading, or came in. */
  readonly bytes: number
  /** How many `rate_limited` warnings it received. */
  readonly warnings: number
}

/** Frames of a flood in one step, and the step: more than twice what a connection may send. */
const floodFrames = 25
const floodStepMs = 5
const answerTimeoutMs = 10_000

export class Offender {
  readonly #target: Target
  readonly #token: string
  #socket: WebSocket | undefined
  #bytes = 0
  #warnings = 0
  #closed: Promise<number> = Promise.resolve(0)

  constructor(target: Target, token: string) {
    this.#target = target
    this.#token = token
  }

  /** Connects and comes into the room, for the first time or again. */
  async enter(frame: { readonly t: "join" | "resume"; readonly roomId: string }): Promise<void> {
    const socket = new WebSocket(`${socketUrl(this.#target)}/v1/realtime`, {
      perMessageDeflate: false
    })
    this.#socket = socket
    this.#bytes = 0
    this.#warnings = 0
    this.#closed = once(socket, "close").then(([code]) => Number(code))
    await once(socket, "open")
    const welcome = this.#heard(socket, '"t":"welcome"')
    socket.send(JSON.stringify({ t: "auth", key: this.#target.key, token: this.#token }))
    await welcome
    const reply = this.#heard(socket, '"t":"reply"')
    socket.send(JSON.stringify({ ...frame, rid: "1" }))
    const answer = await reply
    if (!answer.includes('"ok":true')) throw new Error(`${frame.t} refused: ${answer}`)
    socket.on("message", (data) => {
      const text = data.toString()
      this.#bytes += text.length
      if (text.startsWith('{"t":"warn"') && text.includes('"rate_limited"')) this.#warnings++
    })
  }

  /** Stops reading; what it is sent piles up at the sender. */
  pause(): void {
    this.#bytes = 0
    this.#socket?.pause()
  }

  /** Resumes reading to the end of the stream and returns how the socket was closed. */
  async readOn(): Promise<Closed> {
    this.#socket?.resume()
    const code = await this.#closed
    return { code, bytes: this.#bytes, warnings: this.#warnings }
  }

  /** Sends without end, until it is closed. */
  async flood(): Promise<Closed> {
    const socket = this.#socket
    const frame = JSON.stringify({ t: "send", type: "flood" })
    while (socket?.readyState === WebSocket.OPEN) {
      for (let i = 0; i < floodFrames; i++) socket.send(frame)
      await wait(floodStepMs)
    }
    return this.readOn()
  }

  stop(): void {
    this.#socket?.terminate()
  }

  #heard(socket: WebSocket, what: string): Promise<string> {
    const { promise, reject, resolve } = Promise.withResolvers<string>()
    const timer = setTimeout(() => reject(new Error(`no ${what} came`)), answerTimeoutMs)
    const listen = (data: WebSocket.RawData): void => {
      const text = data.toString()
      if (!text.includes(what)) return
      clearTimeout(timer)
      socket.off("message", listen)
      resolve(text)
    }
    socket.on("message", listen)
    return promise
  }
}
