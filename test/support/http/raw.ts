/** Raw TCP for HTTP tests: arbitrary bytes, and a proxy that drops traffic. */
import { connect, createServer, type Server, type Socket } from "node:net"
import { Effect, type Scope } from "effect"

/** Sends bytes and returns all bytes received until the other side closes the connection. */
export const sendRaw = (url: string, bytes: string): Effect.Effect<string> =>
  Effect.callback((resume) => {
    const { hostname, port } = new URL(url)
    let received = ""
    const socket = connect(Number(port), hostname, () => socket.write(bytes))
    socket.on("data", (chunk) => (received += chunk.toString("latin1")))
    socket.on("error", () => undefined)
    socket.on("close", () => resume(Effect.succeed(received)))
    return Effect.sync(() => socket.destroy())
  })

/** A TCP proxy whose connections a test can freeze and cut. */
export interface Proxy {
  readonly port: number
  /** Drops all bytes from now on; connections stay open. */
  readonly freeze: Effect.Effect<void>
  /** Forwards bytes again; dropped bytes are lost. */
  readonly thaw: Effect.Effect<void>
  /** Whether the proxy has dropped any bytes. */
  readonly hasDropped: Effect.Effect<boolean>
  /** Destroys all connections and refuses new ones. */
  readonly cut: Effect.Effect<void>
}

const listen = (server: Server): Effect.Effect<number> =>
  Effect.callback((resume) => {
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      resume(Effect.succeed(typeof address === "object" && address !== null ? address.port : 0))
    })
  })

/** Starts a proxy to a local port. */
export const proxyTo = (target: number): Effect.Effect<Proxy, never, Scope.Scope> =>
  Effect.gen(function* () {
    const sockets = new Set<Socket>()
    let frozen = false
    let hasDropped = false
    const server = createServer((downstream) => {
      const upstream = connect(target, "127.0.0.1")
      for (const [from, to] of [
        [downstream, upstream],
        [upstream, downstream]
      ] as const) {
        sockets.add(from)
        from.on("data", (chunk) => {
          if (frozen) hasDropped = true
          else to.write(chunk)
        })
        from.on("error", () => undefined)
        from.on("close", () => to.destroy())
      }
    })
    const cut = Effect.sync(() => {
      server.close()
      for (const socket of sockets) socket.destroy()
    })
    const port = yield* listen(server)
    yield* Effect.addFinalizer(() => cut)
    return {
      port,
      cut,
      freeze: Effect.sync(() => {
        frozen = true
      }),
      thaw: Effect.sync(() => {
        frozen = false
      }),
      hasDropped: Effect.sync(() => hasDropped)
    }
  })
