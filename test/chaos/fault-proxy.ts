/**
 * A TCP proxy with faults, for the connections between runners and to Postgres: slow, blocked, reset or
 * refusing.
 *
 * A blocked proxy acts like a cut cable: it reads nothing, closes nothing, and delivers what was sent
 * meanwhile once it heals. Unlike a cut cable it accepts new connections, since a listener in user space
 * cannot suppress the TCP handshake.
 */
import { once } from "node:events"
import { connect, createServer, type Server, type Socket } from "node:net"

/** The direction of bytes: to the target, or back. */
export type Direction = "there" | "back"

const directions: ReadonlyArray<Direction> = ["there", "back"]

class ProxiedConnection {
  readonly #ends: Readonly<Record<Direction, Socket>>
  readonly #blocked: ReadonlySet<Direction>

  constructor(
    from: Socket,
    to: Socket,
    blocked: ReadonlySet<Direction>,
    delayMillis: () => number
  ) {
    this.#ends = { there: from, back: to }
    this.#blocked = blocked
    from.setNoDelay(true)
    to.setNoDelay(true)
    this.#pump("there", to, delayMillis)
    this.#pump("back", from, delayMillis)
    for (const way of directions) this.flow(way)
  }

  /** Resumes reading, unless that direction is blocked. */
  flow(way: Direction): void {
    if (this.#blocked.has(way)) this.#ends[way].pause()
    else this.#ends[way].resume()
  }

  destroy(reset: boolean): void {
    for (const way of directions) {
      if (reset) this.#ends[way].resetAndDestroy()
      else this.#ends[way].destroy()
    }
  }

  #pump(way: Direction, to: Socket, delayMillis: () => number): void {
    const from = this.#ends[way]
    // Chunks keep their order whatever their delays; undefined is the end.
    const under: Array<Buffer | undefined> = []
    const pass = (): void => {
      const next = under.shift()
      if (next === undefined) return void to.end()
      if (to.destroyed || to.write(next)) return
      from.pause()
      to.once("drain", () => this.flow(way))
    }
    const take = (next: Buffer | undefined): void => {
      const delay = delayMillis()
      under.push(next)
      if (delay === 0 && under.length === 1) pass()
      else setTimeout(pass, delay)
    }
    from.on("data", take)
    from.once("end", () => take(undefined))
    from.on("error", () => this.destroy(false))
    from.once("close", () => to.destroySoon())
  }
}

export class FaultProxy {
  /** The port that new connections lead to. */
  target: number
  readonly port: number
  readonly #server: Server
  readonly #links = new Set<ProxiedConnection>()
  readonly #blocked = new Set<Direction>()
  #delayMillis = 0

  private constructor(server: Server, port: number, target: number) {
    this.#server = server
    this.port = port
    this.target = target
    server.on("connection", (from) => this.#join(from))
  }

  /** A proxy on a free port of 127.0.0.1 to another port there. */
  static async open(target: number): Promise<FaultProxy> {
    const server = createServer({ allowHalfOpen: true })
    server.listen(0, "127.0.0.1")
    await once(server, "listening")
    const address = server.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    return new FaultProxy(server, port, target)
  }

  /** Delays every byte, in each direction. */
  slow(millis: number): void {
    this.#delayMillis = millis
  }

  /** Blocks these directions, or both. */
  block(...blocked: ReadonlyArray<Direction>): void {
    for (const way of blocked.length === 0 ? directions : blocked) this.#blocked.add(way)
    this.#flow()
  }

  /** Ends delays and blocks; open connections go on. */
  heal(): void {
    this.#delayMillis = 0
    this.#blocked.clear()
    this.#flow()
  }

  /** Resets every connection. */
  reset(): void {
    for (const link of this.#links) link.destroy(true)
  }

  /** Refuses new connections, as if no process listened. */
  refuse(): void {
    this.#server.close()
  }

  /** Accepts new connections again. */
  async accept(): Promise<void> {
    if (this.#server.listening) return
    this.#server.listen(this.port, "127.0.0.1")
    await once(this.#server, "listening")
  }

  close(): void {
    this.#server.close()
    this.reset()
  }

  #flow(): void {
    for (const link of this.#links) for (const way of directions) link.flow(way)
  }

  #join(from: Socket): void {
    const to = connect({ host: "127.0.0.1", port: this.target, allowHalfOpen: true })
    const link = new ProxiedConnection(from, to, this.#blocked, () => this.#delayMillis)
    this.#links.add(link)
    to.once("close", () => this.#links.delete(link))
  }
}
