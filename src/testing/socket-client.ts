/**
 * A scripted socket client for tests: sends frames, waits for expected ones, and records everything it
 * received, so that a failure shows the whole conversation. Speaks raw WebSocket and JSON.
 */
import { Deferred, Effect, type Scope } from "effect"
import { type RawData, WebSocket } from "ws"

/** A received frame. */
export interface ReceivedFrame {
  readonly t: string
  readonly [field: string]: unknown
}

/** Close code and reason of the socket. */
export interface Closed {
  readonly code: number
  readonly reason: string
}

/** A connected socket. */
export interface SocketClient {
  readonly ws: WebSocket
  /** All frames received so far, in order. */
  readonly received: ReadonlyArray<ReceivedFrame>
  /** Sends a frame without waiting. */
  readonly send: (frame: object) => Effect.Effect<void>
  /** Sends raw text. */
  readonly sendText: (text: string) => Effect.Effect<void>
  /** Returns the next untaken frame of a type and, if given, of this shape. */
  readonly next: (
    t: string,
    matches?: (frame: ReceivedFrame) => boolean
  ) => Effect.Effect<ReceivedFrame>
  /** Sends a frame with a `rid` and takes its reply. */
  readonly request: (frame: object) => Effect.Effect<ReceivedFrame>
  /** Waits for the close. */
  readonly closed: Effect.Effect<Closed>
  readonly close: (code?: number) => Effect.Effect<void>
  /** Cuts the connection without a close frame. */
  readonly terminate: Effect.Effect<void>
}

const timeoutMillis = 15_000

const textOf = (data: RawData): string =>
  Array.isArray(data)
    ? Buffer.concat(data).toString()
    : Buffer.isBuffer(data)
      ? data.toString()
      : Buffer.from(data).toString()

interface Waiter {
  readonly matches: (frame: ReceivedFrame) => boolean
  readonly onFrame: (frame: ReceivedFrame) => void
}

/** All received frames, those not taken yet, and the callers that wait for one. */
class Transcript {
  readonly received: Array<ReceivedFrame> = []
  readonly #untaken: Array<ReceivedFrame> = []
  readonly #waiters: Array<Waiter> = []

  add(frame: ReceivedFrame): void {
    this.received.push(frame)
    const index = this.#waiters.findIndex((waiter) => waiter.matches(frame))
    const [waiter] = index < 0 ? [] : this.#waiters.splice(index, 1)
    if (waiter === undefined) this.#untaken.push(frame)
    else waiter.onFrame(frame)
  }

  take(matches: (frame: ReceivedFrame) => boolean): Effect.Effect<ReceivedFrame> {
    return Effect.callback<ReceivedFrame>((resume) => {
      const index = this.#untaken.findIndex(matches)
      const [received] = index < 0 ? [] : this.#untaken.splice(index, 1)
      if (received !== undefined) return resume(Effect.succeed(received))
      this.#waiters.push({ matches, onFrame: (frame) => resume(Effect.succeed(frame)) })
    })
  }

  toString(): string {
    return this.received.map((frame) => JSON.stringify(frame)).join("\n")
  }
}

/** Dies after a timeout in real time, even on a test clock. */
const withTimeout = <A>(effect: Effect.Effect<A>, message: () => string): Effect.Effect<A> =>
  Effect.raceFirst(
    effect,
    Effect.andThen(
      pause(timeoutMillis),
      Effect.suspend(() => Effect.die(new Error(message())))
    )
  )

/** Sleeps in real time, even on a test clock. */
export const pause = (millis: number): Effect.Effect<void> =>
  Effect.callback((resume) => {
    const timer = setTimeout(() => resume(Effect.void), millis)
    return Effect.sync(() => clearTimeout(timer))
  })

const open = (
  url: string,
  origin: { readonly origin?: string },
  onFrame: (frame: ReceivedFrame) => void,
  onClosed: (closed: Closed) => void
): Effect.Effect<WebSocket, Error> =>
  Effect.callback((resume) => {
    const socket = new WebSocket(url, { ...origin, perMessageDeflate: false })
    socket.on("message", (data) => onFrame(JSON.parse(textOf(data))))
    socket.once("open", () => resume(Effect.succeed(socket)))
    socket.on("error", (error) => resume(Effect.fail(error)))
    socket.once("close", (code, reason) => onClosed({ code, reason: reason.toString() }))
  })

/** Connects to a URL. The scope closes the socket. */
export const connectSocket = (
  url: string,
  options: { readonly origin?: string } = {}
): Effect.Effect<SocketClient, Error, Scope.Scope> =>
  Effect.gen(function* () {
    const transcript = new Transcript()
    const closed = yield* Deferred.make<Closed>()
    let rid = 0
    const ws = yield* Effect.acquireRelease(
      open(
        url,
        options,
        (frame) => transcript.add(frame),
        (reason) => Deferred.doneUnsafe(closed, Effect.succeed(reason))
      ),
      (socket) => Effect.sync(() => socket.terminate())
    )
    const sendText = (text: string) => Effect.sync(() => ws.send(text))
    const send = (frame: object) => sendText(JSON.stringify(frame))
    const next: SocketClient["next"] = (t, matches = () => true) =>
      withTimeout(
        transcript.take((frame) => frame.t === t && matches(frame)),
        () => `Received no "${t}" frame. Received:\n${transcript}`
      )
    return {
      ws,
      received: transcript.received,
      send,
      sendText,
      next,
      request: (frame) =>
        Effect.suspend(() => {
          const id = `r${++rid}`
          const reply = next("reply", (candidate) => candidate["rid"] === id)
          return Effect.andThen(send({ ...frame, rid: id }), reply)
        }),
      closed: withTimeout(
        Deferred.await(closed),
        () => `The socket did not close. Received:\n${transcript}`
      ),
      close: (code = 1000) => Effect.sync(() => ws.close(code)),
      terminate: Effect.sync(() => ws.terminate())
    }
  })
