/**
 * Frames over the current socket: calls with a reply, and notifications without. The connection decides
 * when there is a socket.
 */
import { outboxMaxBytes } from "#rpc/client-limits"
import { closeCodes } from "#rpc/close-codes"
import { ClientError, codeOf } from "./errors.ts"
import {
  encodeFrame,
  type Frame,
  type FrameData,
  type FramePayload,
  readReply,
  type Reply
} from "./frames.ts"
import type { Log } from "./log.ts"
import { PendingReplies } from "./pending.ts"
import { abnormalClosure, type Closed, type WebSocketLike } from "./socket.ts"
import { type Timers, withTimeout } from "./timers.ts"
import type { Warn } from "./wire.ts"

export const disconnected = ({ code, reason }: Closed): ClientError<"disconnected"> =>
  new ClientError("disconnected", `The socket closed: ${code} ${reason}`, {
    closeCode: code,
    reason
  })

/** The first frame of a socket, and its renewal. */
export interface AuthFrame {
  readonly t: "auth"
  readonly key?: string
  readonly token: string
}

/** Sends frames and matches replies to calls. */
export class FrameTransport {
  readonly #onWarning: (warning: Warn) => void
  readonly #timers: Timers
  readonly #log: Log
  readonly #pending = new PendingReplies()
  #socket: WebSocketLike | undefined
  /** Frames without a reply that were sent since the last frame arrived. */
  #unheard = 0
  #closed: Closed = { code: abnormalClosure, reason: "not_connected" }

  constructor(timers: Timers, log: Log, warned: (warning: Warn) => void) {
    this.#timers = timers
    this.#log = log
    this.#onWarning = warned
  }

  get socket(): WebSocketLike | undefined {
    return this.#socket
  }

  /** The error of calls without a socket. */
  get disconnected(): ClientError<"disconnected"> {
    return disconnected(this.#closed)
  }

  /** Uses an opened socket, and authenticates with its first frame. */
  open(socket: WebSocketLike, auth: AuthFrame): void {
    this.#socket = socket
    this.authenticate(auth)
  }

  /** The socket closed: fails every call that waits for a reply. */
  close(closed: Closed): void {
    this.#socket = undefined
    this.#closed = closed
    this.#pending.end()
    const isBroken = closed.code === abnormalClosure || closed.code === closeCodes.idle
    if (isBroken && this.#unheard > 0) {
      this.warn("disconnected", `The connection broke: ${this.#unheard} frames may be lost.`)
    }
    this.heard()
  }

  authenticate(auth: AuthFrame): void {
    this.#log("sent", "auth")
    this.#socket?.send(JSON.stringify(auth))
  }

  /** A frame arrived. */
  heard(): void {
    this.#unheard = 0
  }

  receive(reply: Reply): void {
    this.#pending.settle(reply)
  }

  /** Sends a frame and waits for its reply, for ever without a timeout. */
  async call<F extends Frame>(
    frame: F,
    payload: FramePayload<F>,
    timeoutMillis?: number
  ): Promise<FrameData<F>> {
    const socket = this.#socket
    if (socket === undefined) throw this.disconnected
    let rid = ""
    const replied = new Promise<Reply | undefined>((resolve) => {
      rid = this.#pending.add(resolve)
    })
    try {
      this.#send(socket, encodeFrame(frame, payload, rid))
      const reply = await (timeoutMillis === undefined
        ? replied
        : withTimeout(
            this.#timers,
            replied,
            timeoutMillis,
            () => new ClientError("timed_out", `No reply to ${frame}.`)
          ))
      if (reply === undefined) throw this.disconnected
      return readReply(frame, reply)
    } catch (error) {
      this.#log("refused", frame, error)
      throw error
    } finally {
      this.#pending.forget(rid)
    }
  }

  /** Sends a frame without a reply. Failures become warnings. */
  notify<F extends Frame>(frame: F, payload: FramePayload<F>, isOnline: boolean): void {
    const socket = this.#socket
    // A socket that closes drops frames without an error.
    if (socket === undefined || !isOnline || (socket.readyState ?? 1) > 1)
      return this.warn("disconnected", `${frame} was not sent: the socket is closed.`)
    if (socket.bufferedAmount > outboxMaxBytes) {
      return this.warn("slow_connection", `${frame} was not sent: the socket is slow.`)
    }
    try {
      this.#send(socket, encodeFrame(frame, payload))
      this.#unheard++
    } catch (error) {
      this.warn(codeOf(error) ?? "invalid_frame", String(error))
    }
  }

  warn(code: string, message: string): void {
    this.#onWarning({ t: "warn", code, message })
  }

  #send(socket: WebSocketLike, text: string): void {
    this.#log("sent", text)
    socket.send(text)
  }
}
