/** Connections of clients that keep to nothing: bytes as they come, halves that are never closed. */
import { connect, type Socket } from "node:net"
import { Deferred, Effect, type Scope } from "effect"
import { pause } from "#testing/socket-client"

/** A TCP connection that its client never closes. */
export class Wire {
  readonly #socket: Socket
  readonly #heard: Array<Buffer> = []
  readonly #ended = Deferred.makeUnsafe<void>()

  constructor(socket: Socket) {
    this.#socket = socket
    socket.on("data", (chunk: Buffer) => this.#heard.push(chunk))
    socket.on("error", () => undefined)
    for (const event of ["end", "close"]) {
      socket.on(event, () => Deferred.doneUnsafe(this.#ended, Effect.void))
    }
  }

  /** Everything that was heard so far. */
  get heard(): Buffer {
    return Buffer.concat(this.#heard)
  }

  /** The other side says no more. */
  get ended(): Effect.Effect<void> {
    return Deferred.await(this.#ended)
  }

  say(bytes: string | Uint8Array): void {
    if (!this.#socket.writable) return
    if (typeof bytes === "string") this.#socket.write(bytes, "latin1")
    else this.#socket.write(bytes)
  }

  /** Says this a byte at a time, and then its last byte over and over. */
  drip(bytes: string, everyMillis: number): Effect.Effect<never> {
    let next = 0
    return Effect.suspend(() => {
      this.say(bytes.charAt(Math.min(next++, bytes.length - 1)))
      return pause(everyMillis)
    }).pipe(Effect.forever)
  }

  /** Says this in packets of so many bytes. */
  trickle(bytes: Uint8Array, size: number): Effect.Effect<void> {
    return Effect.callback((resume) => {
      let next = 0
      const more = (): void => {
        if (next >= bytes.length || !this.#socket.writable) return resume(Effect.void)
        this.say(bytes.subarray(next, (next += size)))
        setImmediate(more)
      }
      more()
    })
  }

  /** Reads nothing any more. */
  deafen(): void {
    this.#socket.pause()
  }

  /** Is gone without a goodbye. */
  reset(): void {
    this.#socket.resetAndDestroy()
  }
}

/** Connects; the scope cuts the connection. */
export const openWire = (url: string): Effect.Effect<Wire, Error, Scope.Scope> => {
  const { hostname, port } = new URL(url)
  const opened = Effect.callback<Socket, Error>((resume) => {
    const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true })
    socket.setNoDelay(true)
    socket.once("error", (error) => resume(Effect.fail(error)))
    socket.once("connect", () => resume(Effect.succeed(socket)))
  })
  return Effect.acquireRelease(opened, (socket) => Effect.sync(() => socket.destroy())).pipe(
    Effect.map((socket) => new Wire(socket))
  )
}

/** As many connections, all open at a time, each of which says this. */
export const openWires = (url: string, count: number, bytes: string) =>
  Effect.forEach(
    Array.from({ length: count }, () => bytes),
    (says) => Effect.tap(openWire(url), (wire) => Effect.sync(() => wire.say(says))),
    { concurrency: 100 }
  )

/** An answer as its status and, if it is an error in the one form of errors, its code. */
export type Heard = readonly [status: number, code?: string]

/** The answers in what was heard, in their order. */
export const answersIn = (heard: Buffer): ReadonlyArray<Heard> => {
  const answers: Array<Heard> = []
  let rest = heard.toString("latin1")
  for (;;) {
    const [head, status] = /^HTTP\/1\.1 (\d{3})[^]*?\r\n\r\n/.exec(rest) ?? []
    if (head === undefined) return answers
    const end = head.length + Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0)
    const [, code] =
      /^\{"error":\{"code":"(\w+)","message":"/.exec(rest.slice(head.length, end)) ?? []
    answers.push(code === undefined ? [Number(status)] : [Number(status), code])
    rest = rest.slice(end)
  }
}
