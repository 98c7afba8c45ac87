/**
 * Limits what one client address may have open on this process: connections, and behind a trusted proxy,
 * which carries many clients on few connections, requests in progress and WebSockets. The address of a
 * trusted proxy itself is not limited.
 */
import type { IncomingMessage } from "node:http"
import type { Socket } from "node:net"
import type { IpNetwork } from "effect/net"
import { ownAddress } from "#server/platform/client-address"

export class ClientConnections {
  /** Refused connections, requests and WebSockets. */
  refused = 0
  readonly #max: number
  readonly #trusted: ReadonlyArray<IpNetwork.IpNetwork>
  readonly #open = new Map<string, number>()

  constructor(max: number, trusted: ReadonlyArray<IpNetwork.IpNetwork>) {
    this.#max = max
    this.#trusted = trusted
  }

  /** Counts a connection until it closes; false if its address has too many. */
  connect(socket: Socket): boolean {
    const client = ownAddress(socket.remoteAddress, undefined, this.#trusted)
    return this.#take(client, (release) => socket.once("close", release))
  }

  /** Counts what a proxy forwards until `whenDone` calls back; false if the client has too much. */
  forward(
    { headersDistinct, socket }: IncomingMessage,
    whenDone: (release: () => void) => void
  ): boolean {
    const forwarded = headersDistinct["x-forwarded-for"]?.join(",")
    if (forwarded === undefined || this.#trusted.length === 0) return true
    const isDirect = ownAddress(socket.remoteAddress, undefined, this.#trusted) !== undefined
    if (isDirect) return true
    return this.#take(ownAddress(socket.remoteAddress, forwarded, this.#trusted), whenDone)
  }

  #take(client: string | undefined, whenDone: (release: () => void) => void): boolean {
    if (client === undefined) return true
    const open = this.#open.get(client) ?? 0
    if (open >= this.#max) {
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
