/**
 * How long new connections wait until this process accepts them. A busy process accepts few in each
 * iteration of its event loop; the others wait in the kernel, where nothing shows since when. So the process
 * connects to itself, again and again: its own connection waits behind them. Processes that share a port
 * (`node:cluster`) cannot: any of them may accept that connection.
 */
import cluster from "node:cluster"
import { connect, type Server, type Socket } from "node:net"
import { Clock, Context, Effect, Layer, Schedule } from "effect"
import { graces } from "#entities/reconnect-grace"
import { monotonicMillis } from "#entities/monotonic"
import { HttpServerHandle } from "./server.ts"

/** The address of this machine that reaches a server which listens on all of them. */
const loopbackOf = (address: string): string =>
  address === "0.0.0.0" ? "127.0.0.1" : address === "::" ? "::1" : address

/** One connection to the own server at a time. */
export class AcceptProbe {
  readonly #server: Server
  readonly #now: () => number
  #measured = 0
  #probe: { readonly socket: Socket; readonly startedAt: number } | undefined

  /** Makes a probe; `now` returns monotonic milliseconds. */
  constructor(server: Server, now: () => number) {
    this.#server = server
    this.#now = now
    server.prependListener("connection", (accepted: Socket) => {
      const { socket, startedAt } = this.#probe ?? {}
      // Another machine may use the same port.
      if (startedAt === undefined || accepted.remotePort !== socket?.localPort) return
      if (accepted.remoteAddress !== socket?.localAddress) return
      this.#measured = this.#now() - startedAt
      this.#end(accepted)
    })
  }

  /** The wait of the last probe, or of the one under way if that is longer. */
  get millis(): number {
    const waits = this.#probe === undefined ? 0 : this.#now() - this.#probe.startedAt
    return Math.max(this.#measured, waits)
  }

  /** Starts a probe, unless one is under way. */
  start(): void {
    if (cluster.isWorker) return
    const address = this.#server.listening ? this.#server.address() : null
    if (this.#probe !== undefined || address === null || typeof address === "string") return
    const socket = connect({ host: loopbackOf(address.address), port: address.port })
    // A server that refuses or drops connections lets nobody wait.
    socket.on("error", () => this.#fail(socket))
    socket.on("close", () => this.#fail(socket))
    this.#probe = { socket, startedAt: this.#now() }
  }

  stop(): void {
    this.#end()
  }

  #fail(socket: Socket): void {
    if (this.#probe?.socket !== socket) return
    this.#measured = 0
    this.#end()
  }

  #end(accepted?: Socket): void {
    const socket = this.#probe?.socket
    this.#probe = undefined
    socket?.destroy()
    accepted?.destroy()
  }
}

export class AcceptDelay extends Context.Service<
  AcceptDelay,
  {
    /** Milliseconds that a connection which is accepted now has waited. */
    readonly millis: () => number
  }
>()("server/http/accept-delay/AcceptDelay") {
  static readonly layer = Layer.effect(
    AcceptDelay,
    Effect.gen(function* () {
      const { server } = yield* HttpServerHandle
      const probe = new AcceptProbe(server, monotonicMillis(yield* Clock.Clock))
      yield* Effect.addFinalizer(() => Effect.sync(() => probe.stop()))
      yield* Effect.sync(() => probe.start()).pipe(
        Effect.repeat(Schedule.spaced(graces.lookMillis)),
        Effect.forkScoped
      )
      return AcceptDelay.of({ millis: () => probe.millis })
    })
  )
}
