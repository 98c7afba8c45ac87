/** Connections on the runner port that have not authenticated yet: a bounded number, in total and per address. */
import type { Socket } from "node:net"
import { runnerPort } from "./runner-port-limits.ts"

/**
 * Closes the oldest connection when a further one exceeds a bound. A runner authenticates within
 * milliseconds, so connections that are held open push each other out and no runner.
 */
export class Unauthenticated {
  /** Remote addresses, oldest connection first. */
  readonly #addresses = new Map<Socket, string>()

  get size(): number {
    return this.#addresses.size
  }

  add(socket: Socket, address: string): void {
    const same = Array.from(this.#addresses).filter(([, other]) => other === address)
    const [oldest] = this.#addresses.keys()
    const [oldestSame] = same
    if (oldestSame !== undefined && same.length >= runnerPort.unauthenticatedPerAddressMax) {
      this.#close(oldestSame[0])
    } else if (oldest !== undefined && this.size >= runnerPort.unauthenticatedMax) {
      this.#close(oldest)
    }
    this.#addresses.set(socket, address)
  }

  /** Removes a connection that has authenticated or closed. */
  delete(socket: Socket): void {
    this.#addresses.delete(socket)
  }

  #close(socket: Socket): void {
    this.#addresses.delete(socket)
    socket.destroy()
  }
}
