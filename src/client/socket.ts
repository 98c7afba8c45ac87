/** A WebSocket as an effect that runs as long as the socket; interruption closes it. */
import { Effect } from "effect"
import type { WebSocketLike as WebSocketEvents } from "effect/socket/Socket"

/** The part of WebSocket that the client uses. Browsers and the package `ws` provide it. */
export interface WebSocketLike extends WebSocketEvents {
  readonly bufferedAmount: number
}

export type WebSocketClass = new (url: string) => WebSocketLike

/** Close code (of the service or RFC 6455) and reason of a socket. */
export interface Closed {
  readonly code: number
  readonly reason: string
}

/** The code of a socket that ended without a close frame. */
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
      // A close event follows every error. Without a listener, an error would end a Node process.
      socket.addEventListener("error", () => undefined)
      return Effect.sync(() => {
        isEnded = true
        socket.close(1000)
      })
    } catch (error) {
      return end({ code: abnormalClosure, reason: String(error) })
    }
  })
