/**
 * Limits of what one client address may have open on this process. They count connections, and
 * requests in progress and WebSockets behind a trusted proxy, which carries many clients on few
 * connections. The address of a trusted proxy itself is not limited. An address that keeps sending
 * bodies in very many small pieces is refused for a while.
 */
import type { IncomingMessage } from "node:http"
import type { Socket } from "node:net"
import type { IpNetwork } from "effect/net"
import { ownAddress } from "#server/platform/client-address"

export const fineBodiesMax = 8
const fineBodiesSeconds = 60

/** The addresses of which fine bodies are remembered. */
const offendersMax = 10_000
const second = 1000

/** Bodies in too many small pieces from one address. */
interface Offender {
  bodies: number
  /** Time at which they are forgotten. */
  readonly until: number
}

export class ClientConnections {
  /** Number of refused connections, requests and WebSockets. */
  refused = 0
  readonly #now: () => number
  readonly #offenders = new Map<string, Offender>()
  readonly #max: number
  readonly #trusted: ReadonlyArray<IpNetwork.IpNetwork>
  readonly #open = new Map<string, number>()

  /** `now` in monotonic milliseconds. */
  constructor(max: number, trusted: ReadonlyArray<IpNetwork.IpNetwork>, now: () => number) {
    this.#max = max
    this.#trusted = trusted
    this.#now = now
  }

  /** Remembers that a client has sent a body in too many small pieces. */
  offended({ headersDistinct, socket }: IncomingMessage): void {
    const forwarded = headersDistinct["x-forwarded-for"]?.join(",")
    const client = ownAddress(socket.remoteAddress, forwarded, this.#trusted)
    if (client === undefined || this.#max === Number.POSITIVE_INFINITY) return
    const known = this.#offenderOf(client)
    if (known !== undefined) {
      known.bodies += 1
      return
    }
    const until = this.#now() + fineBodiesSeconds * second
    this.#offenders.set(client, { bodies: 1, until })
    const [oldest] = this.#offenders.keys()
    if (this.#offenders.size > offendersMax && oldest !== undefined) this.#offenders.delete(oldest)
  }

  #offenderOf(client: string): Offender | undefined {
    const offender = this.#offenders.get(client)
    if (offender === undefined || offender.until > this.#now()) return offender
    this.#offenders.delete(client)
    return undefined
  }

  /** Counts a connection until it closes; false if its address has too many. */
  connect(socket: Socket): boolean {
    const client = ownAddress(socket.remoteAddress, undefined, this.#trusted)
    return this.#take(client, (release) => socket.once("close", release))
  }

  /** Counts what a proxy forwards until `whenDone` calls back; false if the client has too much. */
  forward(request: IncomingMessage, whenDone: (release: () => void) => void): boolean {
    if (this.#trusted.length === 0) return true
    const { headersDistinct, socket } = request
    const forwarded = headersDistinct["x-forwarded-for"]?.join(",")
    if (forwarded === undefined) return true
    const isDirect = ownAddress(socket.remoteAddress, undefined, this.#trusted) !== undefined
    if (isDirect) return true
    return this.#take(ownAddress(socket.remoteAddress, forwarded, this.#trusted), whenDone)
  }

  #take(client: string | undefined, whenDone: (release: () => void) => void): boolean {
    if (client === undefined) return true
    const open = this.#open.get(client) ?? 0
    const isOffender = (this.#offenderOf(client)?.bodies ?? 0) >= fineBodiesMax
    if (open >= this.#max || isOffender) {
      this.refused += 1
      return false
    }
    this.#open.set(client, open + 1)
    whenDone(() => {
      const left = (this.#open.get(client) ?? 0) - 1
      if (left > 0) this.#open.set(client, left)
      else this.#open.delete(client)
    })
    return true
  }
}
