/**
 * Order of the requests of one connection. A client may send a request before it has the response to the
 * one before. Node hands over all of them at once, which multiplies what a connection can hold by
 * thousands, so each waits here until the response before it has been sent.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import type { Duplex } from "node:stream"
import { http as limits } from "#rpc/limits"

interface Connection {
  /** The response to the latest request. */
  newest: ServerResponse
  waiting: number
}

export class Pipeline {
  readonly #connections = new WeakMap<Duplex, Connection>()

  /** Runs the request when the response before it has been sent. */
  add({ socket }: IncomingMessage, response: ServerResponse, run: () => void): void {
    const connection = this.#connections.get(socket)
    const before = connection?.newest
    if (connection === undefined) {
      this.#connections.set(socket, { newest: response, waiting: 0 })
    } else {
      connection.newest = response
    }
    if (connection === undefined || before === undefined || before.writableFinished) return run()
    if (connection.waiting >= limits.pipelinedMax) return void socket.destroy()
    connection.waiting += 1
    before.once("close", () => {
      connection.waiting -= 1
      if (!socket.destroyed) run()
    })
  }

  /** The response that is still to be sent; undefined if there is none. */
  pending(socket: Duplex): ServerResponse | undefined {
    const newest = this.#connections.get(socket)?.newest
    return newest === undefined || newest.writableFinished ? undefined : newest
  }
}
