/**
 * A TCP proxy that can be slow, silent, broken or gone, for the wires between runners and to Postgres.
 *
 * Silence is that of a cut cable: nothing is read, nothing is closed, and what was sent meanwhile
 * arrives when it ends. (A connection that is opened meanwhile is taken and then silent, which a cut
 * cable would not do: a listener in user space cannot refuse to shake hands.)
 */
import { once } from "node:events"
import { connect, createServer, type Server, type Socket } from "node:net"

/** The way of the bytes: to where the proxy leads, or back. */
export type Way = "there" | "back"

const ways: ReadonlyArray<Way> = ["there", "back"]

class Link {
  readonly #ends: Readonly<Record<Way, Socket>>
  readonly #blocked: ReadonlySet<Way>

  constructor(from: Socket, to: Socket, blocked: ReadonlySet<Way>, delayMillis: () => number) {
    this.#ends = { there: from, back: to }
    this.#blocked = blocked
    from.setNoDelay(true)
    to.setNoDelay(true)
    this.#pump("there", to, delayMillis)
    this.#pump("back", from, delayMillis)
    for (const way of ways) this.flow(way)
  }

  /** Reads on, unless that way is blocked. */
  flow(way: Way): void {
    if (this.#blocked.has(way)) this.#ends[way].pause()
    else this.#ends[way].resume()
  }

  destroy(reset: boolean): void {
    for (const way of ways) {
      if (reset) this.#ends[way].resetAndDestroy()
      else this.#ends[way].destroy()
    }
  }

  #pump(way: Way, to: Socket, delayMillis: () => number): void {
    const from = this.#ends[way]
    // Undefined is the end. Whatever the delays, things leave in the order they came.
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
  /** Where the proxy leads; may change, for what is opened from then on. */
  target: number
  readonly port: number
  readonly #server: Server
  readonly #links = new Set<Link>()
  readonly #blocked = new Set<Way>()
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

  /** Everything takes this much longer, each way. */
  slow(millis: number): void {
    this.#delayMillis = millis
  }

  /** Nothing gets through. */
  block(...blocked: ReadonlyArray<Way>): void {
    for (const way of blocked.length === 0 ? ways : blocked) this.#blocked.add(way)
    this.#flow()
  }

  /** All is well again; connections that stand go on. */
  heal(): void {
    this.#delayMillis = 0
    this.#blocked.clear()
    this.#flow()
  }

  /** Every connection ends with a reset. */
  reset(): void {
    for (const link of this.#links) link.destroy(true)
  }

  /** New connections are refused, as they are where no process listens. */
  refuse(): void {
    this.#server.close()
  }

  /** New connections are taken again. */
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
    for (const link of this.#links) for (const way of ways) link.flow(way)
  }

  #join(from: Socket): void {
    const to = connect({ host: "127.0.0.1", port: this.target, allowHalfOpen: true })
    const link = new Link(from, to, this.#blocked, () => this.#delayMillis)
    this.#links.add(link)
    to.once("close", () => this.#links.delete(link))
  }
}
