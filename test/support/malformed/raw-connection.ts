/** TCP connections of clients that violate the protocol: arbitrary bytes, half-open connections. */
import { connect, type Socket } from "node:net"
import { Deferred, Effect, type Scope } from "effect"
import { pause } from "#testing/socket-client"

/** A TCP connection that its client never closes. */
export class RawConnection {
  readonly #socket: Socket
  readonly #received: Array<Buffer> = []
  readonly #ended = Deferred.makeUnsafe<void>()
  /** Why the connection broke, such as `ECONNRESET`. */
  errorCode: string | undefined

  constructor(socket: Socket) {
    this.#socket = socket
    socket.on("data", (chunk: Buffer) => this.#received.push(chunk))
    socket.on("error", ({ code }: NodeJS.ErrnoException) => (this.errorCode = code))
    for (const event of ["end", "close"]) {
      socket.on(event, () => Deferred.doneUnsafe(this.#ended, Effect.void))
    }
  }

  /** All bytes received so far. */
  get received(): Buffer {
    return Buffer.concat(this.#received)
  }

  /** Waits until the service ends its side of the connection. */
  get ended(): Effect.Effect<void> {
    return Deferred.await(this.#ended)
  }

  send(bytes: string | Uint8Array): void {
    if (!this.#socket.writable) return
    if (typeof bytes === "string") this.#socket.write(bytes, "latin1")
    else this.#socket.write(bytes)
  }

  /** Sends the bytes one at a time, then repeats the last one. */
  drip(bytes: string, everyMillis: number): Effect.Effect<never> {
    let next = 0
    return Effect.suspend(() => {
      this.send(bytes.charAt(Math.min(next++, bytes.length - 1)))
      return pause(everyMillis)
    }).pipe(Effect.forever)
  }

  /** Sends the bytes in packets of `size` bytes. */
  trickle(bytes: Uint8Array, size: number): Effect.Effect<void> {
    return Effect.callback((resume) => {
      let next = 0
      const sendNext = (): void => {
        if (next >= bytes.length || !this.#socket.writable) return resume(Effect.void)
        this.send(bytes.subarray(next, (next += size)))
        setImmediate(sendNext)
      }
      sendNext()
    })
  }

  /** Stops reading, so that the buffers of the service fill up. */
  stopReading(): void {
    this.#socket.pause()
  }

  /** Waits for the first bytes, and stops reading. */
  get begun(): Effect.Effect<void> {
    return Effect.callback((resume) => {
      this.#socket.once("data", () => {
        this.#socket.pause()
        resume(Effect.void)
      })
    })
  }

  resumeReading(): void {
    this.#socket.resume()
  }

  /** Resets the connection without closing it first. */
  reset(): void {
    this.#socket.resetAndDestroy()
  }
}

/** Connects. The scope destroys the connection. */
export const openRawConnection = (
  url: string
): Effect.Effect<RawConnection, Error, Scope.Scope> => {
  const { hostname, port } = new URL(url)
  const opened = Effect.callback<Socket, Error>((resume) => {
    const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true })
    socket.setNoDelay(true)
    socket.once("error", (error) => resume(Effect.fail(error)))
    socket.once("connect", () => resume(Effect.succeed(socket)))
  })
  return Effect.acquireRelease(opened, (socket) => Effect.sync(() => socket.destroy())).pipe(
    Effect.map((socket) => new RawConnection(socket))
  )
}

/** Opens `count` connections at a time, each of which sends the bytes. */
export const openRawConnections = (url: string, count: number, bytes: string) =>
  Effect.forEach(
    Array.from({ length: count }, () => bytes),
    (sent) =>
      Effect.tap(openRawConnection(url), (connection) => Effect.sync(() => connection.send(sent))),
    { concurrency: 100 }
  )

/** The status of a response and, if its body is an error in the usual format, the error code. */
export type ResponseSummary = readonly [status: number, code?: string]

/** Parses the responses in the received bytes, in order. */
export const responsesIn = (received: Buffer): ReadonlyArray<ResponseSummary> => {
  const responses: Array<ResponseSummary> = []
  let rest = received.toString("latin1")
  for (;;) {
    const [head, status] = /^HTTP\/1\.1 (\d{3})[^]*?\r\n\r\n/.exec(rest) ?? []
    if (head === undefined) return responses
    const end = head.length + Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0)
    const [, code] =
      /^\{"error":\{"code":"(\w+)","message":"/.exec(rest.slice(head.length, end)) ?? []
    responses.push(code === undefined ? [Number(status)] : [Number(status), code])
    rest = rest.slice(end)
  }
}
