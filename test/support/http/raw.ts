/** HTTP as bytes, for what no client would send. */
import { connect, createServer, type Server, type Socket } from "node:net"
import { Effect, type Scope } from "effect"

/** Sends bytes and answers with everything that came back until the other side closed. */
export const sendRaw = (url: string, bytes: string): Effect.Effect<string> =>
  Effect.callback((resume) => {
    const { hostname, port } = new URL(url)
    let heard = ""
    const socket = connect(Number(port), hostname, () => socket.write(bytes))
    socket.on("data", (chunk) => (heard += chunk.toString("latin1")))
    socket.on("error", () => undefined)
    socket.on("close", () => resume(Effect.succeed(heard)))
    return Effect.sync(() => socket.destroy())
  })

/** A way to a TCP server that can be cut or blocked. */
export interface Proxy {
  readonly port: number
  /** Nothing gets through any more, connections stay open. */
  readonly freeze: Effect.Effect<void>
  /** New connections get through again; what was held back is lost. */
  readonly thaw: Effect.Effect<void>
  /** Whether something was held back since. */
  readonly heldBack: Effect.Effect<boolean>
  /** Connections are reset, new ones refused. */
  readonly cut: Effect.Effect<void>
}

const listen = (server: Server): Effect.Effect<number> =>
  Effect.callback((resume) => {
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      resume(Effect.succeed(typeof address === "object" && address !== null ? address.port : 0))
    })
  })

/** A proxy to a local port. */
export const proxyTo = (target: number): Effect.Effect<Proxy, never, Scope.Scope> =>
  Effect.gen(function* () {
    const sockets = new Set<Socket>()
    let frozen = false
    let heldBack = false
    const server = createServer((near) => {
      const far = connect(target, "127.0.0.1")
      for (const [from, to] of [
        [near, far],
        [far, near]
      ] as const) {
        sockets.add(from)
        from.on("data", (chunk) => {
          if (frozen) heldBack = true
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
      heldBack: Effect.sync(() => heldBack)
    }
  })
