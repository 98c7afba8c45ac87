/**
 * A TCP load balancer in front of the runners: gives each new connection to the next ready runner, and
 * tries another when that one refuses it.
 */
import { once } from "node:events"
import { connect, createServer, type Server, type Socket } from "node:net"

const probeMillis = 200
const probeTimeoutMillis = 1000

interface Backend {
  readonly port: number
  ready: boolean
  readonly probe: NodeJS.Timeout
}

const isReady = (port: number): Promise<boolean> =>
  fetch(`http://127.0.0.1:${port}/readyz`, {
    signal: AbortSignal.timeout(probeTimeoutMillis)
  }).then(
    async (response) => {
      await response.arrayBuffer()
      return response.status === 200
    },
    () => false
  )

export class Balancer {
  readonly url: string
  readonly #server: Server
  readonly #backends = new Map<number, Backend>()
  readonly #sockets = new Set<Socket>()
  #next = 0

  private constructor(server: Server, port: number) {
    this.#server = server
    this.url = `http://127.0.0.1:${port}`
    server.on("connection", (from) => {
      this.#sockets.add(from)
      from.once("close", () => this.#sockets.delete(from))
      this.#forward(from, this.#ready())
    })
  }

  static async open(): Promise<Balancer> {
    const server = createServer({ noDelay: true })
    server.listen(0, "127.0.0.1")
    await once(server, "listening")
    const address = server.address()
    return new Balancer(server, typeof address === "object" && address !== null ? address.port : 0)
  }

  /** Adds a ready runner and probes its readiness from now on. */
  add(port: number): void {
    const probe = setInterval(async () => {
      const ready = await isReady(port)
      const backend = this.#backends.get(port)
      if (backend !== undefined) backend.ready = ready
    }, probeMillis)
    this.#backends.set(port, { port, ready: true, probe })
  }

  remove(port: number): void {
    clearInterval(this.#backends.get(port)?.probe)
    this.#backends.delete(port)
  }

  close(): void {
    for (const port of this.#backends.keys()) this.remove(port)
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
  }

  /** The ports of the ready runners, the next one first. */
  #ready(): ReadonlyArray<number> {
    const ports = Array.from(this.#backends.values())
      .filter(({ ready }) => ready)
      .map(({ port }) => port)
    const first = ports.length === 0 ? 0 : this.#next++ % ports.length
    return [...ports.slice(first), ...ports.slice(0, first)]
  }

  #forward(from: Socket, [port, ...others]: ReadonlyArray<number>): void {
    if (port === undefined) return void from.destroy()
    const to = connect({ host: "127.0.0.1", port, noDelay: true })
    const refused = (): void => this.#forward(from, others)
    to.once("error", refused)
    from.once("close", () => to.destroy())
    to.once("connect", () => {
      to.off("error", refused)
      to.on("error", () => from.destroy())
      to.once("close", () => from.destroySoon())
      from.on("error", () => to.destroy())
      from.pipe(to)
      to.pipe(from)
    })
  }
}
