/** A WebSocket with plain callbacks: it opens at once, and reports its end once. */

interface SocketEvent {
  readonly type: string
  readonly data?: unknown
  readonly code?: number
  readonly reason?: string
}

/** The part of WebSocket that the client uses. Browsers, Node 22 and the package `ws` provide it. */
export interface WebSocketLike {
  readonly bufferedAmount: number
  /** 1 while the socket is open, more once it closes. */
  readonly readyState?: number
  send(data: string): void
  close(code?: number): void
  addEventListener(
    name: "open" | "message" | "close" | "error",
    listener: (event: SocketEvent) => void
  ): void
}

export type WebSocketClass = new (url: string) => WebSocketLike

/** Close code (of the service or RFC 6455) and reason of a socket. */
export interface Closed {
  readonly code: number
  readonly reason: string
}

/** The code of a socket that ended without a close frame. */
export const abnormalClosure = 1006

/** Opens a socket and returns a function that closes it without a further callback. */
export const openSocket = (options: {
  readonly WebSocket: WebSocketClass
  readonly url: string
  readonly opened: (socket: WebSocketLike) => void
  readonly received: (text: string) => void
  readonly closed: (closed: Closed) => void
}): (() => void) => {
  let isEnded = false
  const end = (closed: Closed) => {
    if (isEnded) return
    isEnded = true
    options.closed(closed)
  }
  let socket: WebSocketLike | undefined
  try {
    const opened = (socket = new options.WebSocket(options.url))
    opened.addEventListener("open", () => {
      if (!isEnded) options.opened(opened)
    })
    opened.addEventListener("message", ({ data }) => {
      if (!isEnded && typeof data === "string") options.received(data)
    })
    opened.addEventListener("close", ({ code = abnormalClosure, reason = "" }) =>
      end({ code, reason })
    )
    // A close event follows every error. Without a listener, an error would end a Node process.
    opened.addEventListener("error", () => undefined)
  } catch (error) {
    queueMicrotask(() => end({ code: abnormalClosure, reason: String(error) }))
  }
  return () => {
    isEnded = true
    socket?.close(1000)
  }
}
