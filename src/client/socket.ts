/** One WebSocket as an effect that lives as long as the socket: interrupting it closes the socket. */
import { Effect } from "effect"
import type { WebSocketLike as WebSocketEvents } from "effect/socket/Socket"

/** What the client uses of a WebSocket; that of a page and that of the package `ws` both fit. */
export interface WebSocketLike extends WebSocketEvents {
  readonly bufferedAmount: number
}

export type WebSocketClass = new (url: string) => WebSocketLike

/** How a socket ended: a close code of spec section 6 or of RFC 6455, and the reason with it. */
export interface Closed {
  readonly code: number
  readonly reason: string
}

/** The code of a socket that ended without a close. */
export const abnormalClosure = 1006

export const runSocket = (options: {
  readonly WebSocket: WebSocketClass
  readonly url: string
  readonly opened: (socket: WebSocketLike) => void
  readonly received: (text: string) => void
}): Effect.Effect<Closed> =>
  Effect.callback<Closed>((resume) => {
    let isEnded = false
    const end = (closed: Closed) => {
      isEnded = true
      resume(Effect.succeed(closed))
    }
    try {
      const socket = new options.WebSocket(options.url)
      socket.addEventListener("open", () => {
        if (!isEnded) options.opened(socket)
      })
      socket.addEventListener("message", ({ data }) => {
        if (!isEnded && typeof data === "string") options.received(data)
      })
      socket.addEventListener("close", ({ code = abnormalClosure, reason = "" }) =>
        end({ code, reason })
      )
      // A failure is always followed by a close; unheard, it would end a process.
      socket.addEventListener("error", () => undefined)
      return Effect.sync(() => {
        isEnded = true
        socket.close(1000)
      })
    } catch (error) {
      return end({ code: abnormalClosure, reason: String(error) })
    }
  })
