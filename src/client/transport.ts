/**
 * Frames over the current socket: calls with a reply, and notifications without. The connection decides
 * when there is a socket.
 */
import { Effect, Result } from "effect"
import { socket as limits } from "#rpc/limits"
import type { AuthFrame, Reply, Warn } from "#rpc/realtime"
import { Disconnected } from "./errors.ts"
import {
  encodeFrame,
  type Frame,
  type FrameData,
  type FrameError,
  type FramePayload,
  readReply
} from "./frames.ts"
import { makePendingReplies } from "./pending.ts"
import { abnormalClosure, type Closed, type WebSocketLike } from "./socket.ts"

/** Unsent bytes beyond which notifications are dropped: the uplink is too slow. */
const unsentMaxBytes = limits.outboxMaxBytes

export const disconnected = ({ code, reason }: Closed): Disconnected =>
  new Disconnected({ closeCode: code, reason, message: `The socket closed: ${code} ${reason}` })

/** Sends frames and matches replies to calls. */
export class FrameTransport {
  readonly #onWarning: (warning: Warn) => void
  readonly #pending = makePendingReplies()
  #socket: WebSocketLike | undefined
  #closed: Closed | undefined

  constructor(warned: (warning: Warn) => void) {
    this.#onWarning = warned
  }

  get socket(): WebSocketLike | undefined {
    return this.#socket
  }

  /** The error of calls without a socket. */
  get disconnected(): Disconnected {
    return disconnected(this.#closed ?? { code: abnormalClosure, reason: "not_connected" })
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
  }

  authenticate(auth: AuthFrame): void {
    this.#socket?.send(JSON.stringify(auth))
  }

  receive(reply: Reply): void {
    this.#pending.settle(reply)
  }

  /** Sends a frame and waits for its reply. */
  call<R extends Frame>(
    frame: R,
    payload: FramePayload<R>
  ): Effect.Effect<FrameData<R>, FrameError<R> | Disconnected> {
    const reply = Effect.callback<Reply, FrameError<R> | Disconnected>((resume) => {
      const socket = this.#socket
      if (socket === undefined) return resume(Effect.fail(this.disconnected))
      const rid = this.#pending.add((answer) =>
        resume(answer === undefined ? Effect.fail(this.disconnected) : Effect.succeed(answer))
      )
      const text = encodeFrame(frame, payload, rid)
      if (Result.isSuccess(text)) socket.send(text.success)
      else resume(Effect.fail(text.failure))
      return Effect.sync(() => this.#pending.forget(rid))
    })
    return Effect.flatMap(reply, (answer) => Effect.fromResult(readReply(frame, answer)))
  }

  /** Sends a frame without a reply. Failures become warnings. */
  notify<R extends Frame>(frame: R, payload: FramePayload<R>): void {
    const socket = this.#socket
    if (socket === undefined)
      return this.warn("disconnected", `${frame._tag} was not sent: the socket is closed.`)
    if (socket.bufferedAmount > unsentMaxBytes) {
      return this.warn(
        "slow_connection",
        `${frame._tag} was not sent: the socket has too much unsent data.`
      )
    }
    const text = encodeFrame(frame, payload)
    if (Result.isSuccess(text)) socket.send(text.success)
    else this.warn(text.failure._tag, text.failure.message)
  }

  warn(code: string, message: string): void {
    this.#onWarning({ t: "warn", code, message })
  }
}
